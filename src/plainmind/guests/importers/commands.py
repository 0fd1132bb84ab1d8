"""`import`: conversations of other programs, once or whenever they grow."""

from __future__ import annotations

import argparse
import os
import sys

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console, plural
from plainmind.cli.options import describe, open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.importers.importer import ImportReport
    from plainmind.memory.memory import Memory

DEGRADED = 3
_MOST_NAMED = 10
_UNLESS_TOLD = "main"  # the agent that is meant when none is named
# Where each program keeps its conversations, unless it was told otherwise.
_USUAL_PLACES = {
    "openclaw": ("OPENCLAW_STATE_DIR", "~/.openclaw"),
    "claude-code": ("CLAUDE_CONFIG_DIR", "~/.claude"),
    "codex": ("CODEX_HOME", "~/.codex"),
    "messages": ("", ""),
}


def add_import(parser: argparse.ArgumentParser) -> None:
    """Say what `import` takes."""
    describe(
        parser,
        """\
Copy the conversations of another program, so that they can be searched. Doing it again adds only what is new. The
originals are read and never changed. `messages` are exported chats: ChatGPT's conversations.json, Claude's, and any
list of {"role", "content"} as JSON or JSONL.

Writes to the session folder in ~/.plainmind. OpenClaw's agents keep their names; --agent puts all into one.""",
        examples=(
            "plainmind import claude-code",
            "plainmind import openclaw ~/.openclaw --dry-run",
            "plainmind import codex ~/.codex/sessions --watch",
            "plainmind import messages ~/Downloads/conversations.json",
        ),
        run=run_import,
    )
    parser.add_argument("program", choices=tuple(_USUAL_PLACES), help="whose conversations")
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        help="its state folder, a folder of transcripts, or one file (~/.openclaw, ~/.claude, ~/.codex)",
    )
    parser.add_argument(
        "--watch", action="store_true", help="go on importing whatever is added, until Ctrl-C"
    )
    parser.add_argument("--dry-run", action="store_true", help="read everything, write nothing")
    parser.add_argument(
        "--again", action="store_true", help="bring back what was archived or deleted here since its import"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 3 when something could not be read")


def run_import(arguments: argparse.Namespace, console: Console) -> int:
    """Import, and print what was done."""
    path = _path(arguments)
    if arguments.watch:
        if arguments.dry_run or arguments.again:
            raise PlainmindError(
                "--watch goes neither with --dry-run nor with --again",
                hint="run the import once with it first",
            )
        return _watch(arguments, path, console)
    with open_memory(arguments) as memory:
        with console.progress("importing") as progress:
            report = memory.import_sessions(
                arguments.program,
                path,
                into_one_agent=arguments.agent is not None,
                again=arguments.again,
                is_rehearsal=arguments.dry_run,
                progress=progress,
            )
        if console.json:
            is_searched = "sessions" in memory.sources
            console.result({"path": path, **_as_json(report), "searched": is_searched})
        else:
            console.say(summary(report))
            _print_notes(report, console)
            if not report.is_rehearsal:
                _say_how_to_search(memory, report, console)
    return DEGRADED if arguments.strict and (report.failed or report.damaged_count) else 0


def _path(arguments: argparse.Namespace) -> str:
    given: str | None = arguments.path
    if given is not None:
        return os.path.abspath(os.path.expanduser(given))
    variable, usual = _USUAL_PLACES[arguments.program]
    if not usual:
        raise PlainmindError(
            f"`import {arguments.program}` needs a PATH", hint="give the exported file, or a folder of them"
        )
    return os.path.abspath(os.path.expanduser(os.environ.get(variable) or usual))


def _watch(arguments: argparse.Namespace, path: str, console: Console) -> int:
    import signal
    import threading

    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with open_memory(arguments) as memory:
            console.say(f"importing from {path} (Ctrl-C ends it)")
            reports = memory.follow_sessions(
                arguments.program, path, wait=stop.wait, into_one_agent=arguments.agent is not None
            )
            failed: object = None
            for report in reports:
                if report.imported or report.failed != failed:  # what fails again and again is said once
                    _print_round(report, path, console)
                failed = report.failed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _print_round(report: ImportReport, path: str, console: Console) -> None:
    from datetime import datetime

    now = datetime.now().astimezone()
    if console.json:
        fields = {"at": now.isoformat(timespec="seconds"), "path": path, **_as_json(report)}
        console.result(fields, lines=True)
        return
    console.say(f"{now:%H:%M:%S} {summary(report)}")
    _print_notes(report, console)
    sys.stdout.flush()


def summary(report: ImportReport) -> str:
    """One line about an import."""
    verb = "would import" if report.is_rehearsal else "imported"
    begun = report.sessions_begun
    continued = len({row.id for row in report.imported if not row.is_new})
    parts = []
    if begun:
        parts.append(plural(begun, "new session"))
    if continued:
        parts.append(f"what is new in {plural(continued, 'session')}")
    rest = f", {report.unchanged:,} unchanged" if report.unchanged else ""
    if not parts:
        is_nothing = (report.empty or report.failed) and not report.unchanged
        return "nothing was imported" if is_nothing else f"nothing new to import{rest}"
    whose = f" of {' and '.join(report.exporters)}" if report.exporters else ""
    return f"{verb} {' and '.join(parts)}{whose}: {plural(report.messages, 'message')}{rest}"


def _print_notes(report: ImportReport, console: Console) -> None:
    if report.damaged_count:
        console.note(f"{plural(report.damaged_count, 'line')} could not be read, or not wholly:")
        for damage in report.damaged[:_MOST_NAMED]:
            console.note(f"  {damage.path}:{damage.line}: {damage.reason}")
        if report.damaged_count > _MOST_NAMED:
            console.note(f"  and {report.damaged_count - _MOST_NAMED:,} more; --json names up to 200")
    for failure in report.failed:
        reason = failure.reason.removeprefix(f"{failure.path} ")
        console.note(f"not imported: {failure.path}: {reason}")
    for empty in report.empty[:_MOST_NAMED]:
        console.note(f"nothing to take in {empty.path}: {empty.reason}")
    if len(report.empty) > _MOST_NAMED:
        console.note(f"and {len(report.empty) - _MOST_NAMED:,} files more, which --json names")
    if report.empty and not report.imported and report.program == "messages":
        console.hint(
            "give ChatGPT's conversations.json or Claude's, the archive that one of them is in, or a list of"
            ' {"role", "content"} as JSON or JSONL'
        )
    if report.left_out:
        count = plural(len(report.left_out), "conversation")
        console.note(f"{count} left out: archived or deleted here since; --again brings them back")


def _say_how_to_search(memory: Memory, report: ImportReport, console: Console) -> None:
    own = os.path.realpath(memory.sessions.folder)
    chosen = memory.agent_id
    agents = {chosen if os.path.dirname(row.path) == own else row.agent for row in report.imported}
    for agent in sorted(agent for agent in agents if agent is not None):
        option = "" if agent == _UNLESS_TOLD else f" --agent {agent}"
        only = " --source sessions" if agent == chosen and "sessions" not in memory.sources else ""
        console.hint(f'search them: plainmind search{option}{only} "…"')


def _as_json(report: ImportReport) -> dict[str, Any]:
    return {
        "program": report.program,
        "dryRun": report.is_rehearsal,
        "sessions": [
            {
                "key": row.key,
                "id": row.id,
                "agent": row.agent,
                "path": row.path,
                "original": row.original,
                "isNew": row.is_new,
                "entries": row.entries,
                "messages": row.messages,
            }
            for row in report.imported
        ],
        "messages": report.messages,
        "unchanged": report.unchanged,
        "withoutMessages": report.without_messages,
        "damaged": [
            {"path": damage.path, "line": damage.line, "reason": damage.reason} for damage in report.damaged
        ],
        "damagedCount": report.damaged_count,
        "failed": [{"path": failure.path, "reason": failure.reason} for failure in report.failed],
        "leftOut": [{"path": left.path, "reason": left.reason} for left in report.left_out],
        "empty": [{"path": empty.path, "reason": empty.reason} for empty in report.empty],
    }
