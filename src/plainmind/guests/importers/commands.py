"""`import`: conversations of other programs, once or whenever they grow."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from plainmind.base.errors import PlainmindError, shell_word
from plainmind.cli.console import Console, plural
from plainmind.cli.options import UsageError, describe, open_memory
from plainmind.files.safe_open import expand_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Any

    from plainmind.guests.importers.importer import ImportReport
    from plainmind.memory.memory import Memory

DEGRADED = 3
_MOST_NAMED = 10
_UNLESS_TOLD = "main"  # the agent that is meant when none is named
_ALL = "all"
_NOTES = "claude-memory"
_LEAST_PAUSE_S = 2.0
_CURSOR = "~/Library/Application Support/Cursor" if sys.platform == "darwin" else "~/.config/Cursor"
# Where each program keeps its conversations: a variable that says so, what lies below it, and where it is without.
_USUAL_PLACES = {
    "openclaw": ("OPENCLAW_STATE_DIR", "", "~/.openclaw"),
    "claude-code": ("CLAUDE_CONFIG_DIR", "", "~/.claude"),
    _NOTES: ("CLAUDE_CONFIG_DIR", "", "~/.claude"),
    "codex": ("CODEX_HOME", "", "~/.codex"),
    "copilot": ("COPILOT_HOME", "", "~/.copilot"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini", "~/.gemini"),
    "opencode": ("XDG_DATA_HOME", "opencode", "~/.local/share/opencode"),
    "cursor": ("", "", _CURSOR),
    "messages": ("", "", ""),
}


def _program(word: str) -> str:
    """A name, as it was typed; a place has to be named behind it."""
    if word not in {*_USUAL_PLACES, _ALL} and (os.sep in word or os.path.lexists(word)):
        raise UsageError(
            f"`{word}` is a place; say before it whose conversations lie there",
            f"for exported chats, or a list of messages: plainmind import messages {shell_word(word)}",
        )
    return word


def add_import(parser: argparse.ArgumentParser) -> None:
    """Say what `import` takes."""
    describe(
        parser,
        """\
Copy the conversations of another program, so that they can be searched. Doing it again adds only what is new, and what
a hook has kept already is not doubled. The originals are read and never changed. `messages` are exported chats:
ChatGPT's conversations.json, Claude's, and any list of {"role", "content"} as JSON or JSONL. `claude-memory` are the
notes that Claude Code makes for itself. `all` is everything that is found here; without a name, it is only shown.

Writes to the session folder in ~/.plainmind, notes to memory/claude-code in the workspace. OpenClaw's agents keep their
names; --agent puts all into one.""",
        examples=(
            "plainmind import",
            "plainmind import claude-code",
            "plainmind import all --watch",
            "plainmind import openclaw ~/.openclaw --dry-run",
            "plainmind import messages ~/Downloads/conversations.json",
        ),
        run=run_import,
    )
    parser.add_argument(
        "program",
        nargs="?",
        type=_program,
        choices=(*_USUAL_PLACES, _ALL),
        help="whose conversations (shows what there is)",
    )
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        help="its state folder, a folder of transcripts, or one file (~/.openclaw, ~/.claude, ~/.codex, …)",
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
    """Import, and print what was done; without a program, say what there is."""
    if arguments.watch and (arguments.dry_run or arguments.again):
        raise PlainmindError(
            "--watch goes neither with --dry-run nor with --again", hint="run the import once with it first"
        )
    if arguments.program is None and not arguments.watch:
        return _show(console)
    if arguments.program in {None, _ALL}:
        if arguments.path is not None:
            raise PlainmindError("`import all` takes no PATH", hint="name the program whose folder it is")
        return _watch_all(arguments, console) if arguments.watch else _import_all(arguments, console)
    path = _path(arguments)
    if arguments.watch:
        return _watch(arguments, path, console)
    with open_memory(arguments) as memory:
        report = _import_one(memory, arguments, arguments.program, path, console)
        if console.json:
            is_searched = "sessions" in memory.sources or arguments.program == _NOTES
            console.result({"path": path, **_as_json(report), "searched": is_searched})
        else:
            console.say(summary(report))
            _print_notes(report, console)
            if not report.is_rehearsal:
                _say_how_to_search(memory, report, console)
    return DEGRADED if arguments.strict and (report.failed or report.damaged_count) else 0


def _import_one(
    memory: Memory, arguments: argparse.Namespace, program: str, path: str, console: Console | None
) -> ImportReport:
    if program == _NOTES:
        from plainmind.guests.importers.claude_code import copy_notes

        return copy_notes(memory, path, again=arguments.again, is_rehearsal=arguments.dry_run)
    with console.progress("importing") if console is not None else nullcontext(None) as progress:
        report: ImportReport = memory.import_sessions(
            program,
            path,
            into_one_agent=arguments.agent is not None,
            again=arguments.again,
            is_rehearsal=arguments.dry_run,
            progress=progress,
        )
    return report


def _path(arguments: argparse.Namespace) -> str:
    given: str | None = arguments.path
    if given is not None:
        return os.path.abspath(expand_user(given))
    usual = _usual_place(arguments.program)
    if not usual:
        raise PlainmindError(
            f"`import {arguments.program}` needs a PATH", hint="give the exported file, or a folder of them"
        )
    return usual


def _usual_place(program: str) -> str:
    variable, below, usual = _USUAL_PLACES[program]
    told = os.environ.get(variable) if variable else None
    place = os.path.join(told, below) if told else usual
    return os.path.abspath(expand_user(place)) if place else ""


# --- all programs of this machine ---


def _found_here() -> Iterator[tuple[str, str, list[str]]]:
    """Each program that has something to import here: its place, and the files."""
    from plainmind.guests.importers.claude_code import find_notes
    from plainmind.guests.importers.importer import reader_of
    from plainmind.guests.importers.originals import find_originals

    for program in _USUAL_PLACES:
        place = _usual_place(program)
        if not place or not os.path.isdir(place):
            continue
        try:
            if program == _NOTES:
                files = [note.path for note in find_notes(place)]
            else:
                files = [original.path for original in find_originals(reader_of(program), place)]
        except PlainmindError:  # nothing there yet
            continue
        yield program, place, files


def _show(console: Console) -> int:
    """Say what could be imported here."""
    from datetime import datetime

    rows = [
        (program, place, files, max((os.stat(file).st_mtime for file in files), default=0.0))
        for program, place, files in _found_here()
    ]
    if console.json:
        found = [
            {
                "program": program,
                "path": place,
                "files": len(files),
                "latest": datetime.fromtimestamp(latest).astimezone().isoformat(timespec="seconds"),
            }
            for program, place, files, latest in rows
        ]
        console.result({"found": found})
        return 0
    if not rows:
        looked = ", ".join(name for name, (_, _, usual) in _USUAL_PLACES.items() if usual)
        console.say("no conversations of other programs were found on this machine")
        console.hint(f"looked for {looked}; `plainmind import PROGRAM PATH` names another place")
        return 0
    for program, place, files, latest in rows:
        what = plural(len(files), _kind_of_files(program, files))
        day = datetime.fromtimestamp(latest).astimezone()
        console.say(f"{program:<14} {what:<18} latest {day:%Y-%m-%d}  {place}")
    console.hint(f"`plainmind import {rows[0][0]}` copies one, `plainmind import all` each of them")
    console.hint("`plainmind import all --watch` goes on with whatever is added")
    return 0


def _kind_of_files(program: str, files: list[str]) -> str:
    if program == _NOTES:
        return "note"
    return "database" if files[0].endswith((".db", ".sqlite", ".vscdb")) else "transcript"


def _import_all(arguments: argparse.Namespace, console: Console) -> int:
    is_whole = True
    reports: list[dict[str, Any]] = []
    with open_memory(arguments) as memory:
        last: ImportReport | None = None
        for program, place, _ in _found_here():
            report = _round(memory, arguments, program, place, console)
            is_whole &= not (report.failed or report.damaged_count)
            if console.json:
                reports.append({"path": place, **_as_json(report)})
                continue
            console.say(f"{program}: {summary(report)}")
            _print_notes(report, console)
            last = report if report.imported else last
        if console.json:
            console.result({"imports": reports})
        elif last is not None and not last.is_rehearsal:
            _say_how_to_search(memory, last, console)
    return DEGRADED if arguments.strict and not is_whole else 0


@contextmanager
def _until_stopped() -> Iterator[threading.Event]:
    """Give what is set by Ctrl-C and by a call to end."""
    import signal
    import threading

    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch_all(arguments: argparse.Namespace, console: Console) -> int:
    """Import from every program, those too that are installed meanwhile, until it is stopped."""
    import time

    failed: dict[str, object] = {}
    with _until_stopped() as stop, open_memory(arguments) as memory:
        names = ", ".join(program for program, _, _ in _found_here()) or "no program yet"
        console.say(f"importing from {names} (Ctrl-C ends it)")
        while True:
            started = time.monotonic()
            for program, place, _ in _found_here():
                report = _round(memory, arguments, program, place, None)
                if report.imported or report.notes or report.failed != failed.get(program, ()):
                    _print_round(report, place, console)
                failed[program] = report.failed  # what fails again and again is said once
            if stop.wait(max(_LEAST_PAUSE_S, 10 * (time.monotonic() - started))):
                return 0


def _round(
    memory: Memory, arguments: argparse.Namespace, program: str, place: str, console: Console | None
) -> ImportReport:
    """Import from one of several programs: what fails is in the report, and the others are still imported."""
    try:
        return _import_one(memory, arguments, program, place, console)
    except PlainmindError as error:
        from plainmind.base.model import FileFailure
        from plainmind.guests.importers.importer import ImportReport

        reason = f"{error} ({error.hint})" if error.hint else str(error)
        return ImportReport(program, failed=(FileFailure(place, reason),))


def _watch(arguments: argparse.Namespace, path: str, console: Console) -> int:
    with _until_stopped() as stop, open_memory(arguments) as memory:
        console.say(f"importing from {path} (Ctrl-C ends it)")
        if arguments.program == _NOTES:
            from plainmind.guests.importers.claude_code import copy_notes
            from plainmind.guests.importers.importer import repeat_import

            reports: Iterator[ImportReport] = repeat_import(
                lambda: copy_notes(memory, path), _NOTES, path, wait=stop.wait
            )
        else:
            reports = memory.follow_sessions(
                arguments.program, path, wait=stop.wait, into_one_agent=arguments.agent is not None
            )
        failed: object = None
        for report in reports:
            if report.imported or report.notes or report.failed != failed:
                _print_round(report, path, console)
            failed = report.failed  # what fails again and again is said once
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
    if report.notes:
        rest = f", {report.unchanged:,} unchanged" if report.unchanged else ""
        return f"{verb} {plural(len(report.notes), 'note')}{rest}"
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
        if report.program == _NOTES:
            count = plural(len(report.left_out), "note")
            console.note(f"{count} left out: edited or deleted here since; --again takes the original")
        else:
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
        "notes": [
            {"path": note.path, "original": note.original, "isNew": note.is_new} for note in report.notes
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
