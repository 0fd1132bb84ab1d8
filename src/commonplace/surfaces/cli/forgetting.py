"""`forget`: remove lines for good, after showing them."""

from __future__ import annotations

import argparse
import sys

from commonplace.errors import CommonplaceError
from commonplace.surfaces.cli.console import Console, is_terminal
from commonplace.surfaces.cli.opening import opened, text_of
from commonplace.surfaces.cli.options import describe
from commonplace.surfaces.cli.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from commonplace.sources.forgotten import Forgotten


def add_forget(parser: argparse.ArgumentParser) -> None:
    """Say what `forget` takes."""
    describe(
        parser,
        """\
Remove lines for good. Shows them and asks first.

They go from the files of the workspace, the index, the cache and the history: `restore` cannot bring them back.""",
        examples=(
            'commonplace forget "the code of the door is"',
            "commonplace forget memory/2026-02-10.md#L3-L5 --dry-run",
            "commonplace forget 01JM2V7Q9Z5W8K3B4N6P7R8S9T --yes",
        ),
        run=run_forget,
    )
    parser.add_argument(
        "words",
        metavar="WHAT",
        nargs="+",
        help="lines by citation (`MEMORY.md#L3-L5`), a note by its id, or every line with this text; - reads stdin",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run_forget(arguments: argparse.Namespace, console: Console) -> int:
    """Show the lines, ask, remove them."""
    what = text_of(arguments.words)
    with opened(arguments) as memory:
        chosen = memory.forget(what, dry_run=True)
        if not console.json:
            _show(chosen, console)
        if arguments.dry_run:
            if console.json:
                console.result(_as_json(chosen))
            return 0
        if not arguments.yes and not _agreed(chosen, console):
            console.say("nothing was removed")
            return 1
        # What was shown is what goes: a file that changed since is refused.
        forgotten = memory.forget(chosen)
    if console.json:
        console.result(_as_json(forgotten))
    else:
        count = sum(lines.end_line - lines.start_line + 1 for lines in forgotten.lines)
        past = forgotten.versions_cleaned
        cleaned = f", also from {counted(past, 'older version')}" if past else ""
        console.say(f"removed {counted(count, 'line')}{cleaned}")
    return 0


def _show(chosen: Forgotten, console: Console) -> None:
    for lines in chosen.lines:
        last = "" if lines.end_line == lines.start_line else f"-{lines.end_line}"
        console.answer(console.styled(f"{console.shown(lines.path)}:{lines.start_line}{last}", "path"))
        for line in console.shown(lines.text).split("\n"):
            console.answer(f"  {line}".rstrip())


def _agreed(chosen: Forgotten, console: Console) -> bool:
    if console.json or not is_terminal(sys.stdin):
        raise CommonplaceError(
            f"nobody is there to ask whether {counted(len(chosen.lines), 'place')} may go; nothing was removed",
            hint="--yes removes it without asking, --dry-run only shows it",
        )
    print(
        f"Remove {'this' if len(chosen.lines) == 1 else 'these'} for good? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _as_json(forgotten: Forgotten) -> dict[str, Any]:
    return {
        "applied": forgotten.applied,
        "lines": [
            {"path": lines.path, "startLine": lines.start_line, "endLine": lines.end_line, "text": lines.text}
            for lines in forgotten.lines
        ],
        "versionsCleaned": forgotten.versions_cleaned,
    }
