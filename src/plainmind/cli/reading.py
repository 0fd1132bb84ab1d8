"""`get` and `list`: look into the files of the memory."""

from __future__ import annotations

import argparse

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console
from plainmind.cli.opening import opened
from plainmind.cli.options import describe, whole_number
from plainmind.cli.wording import counted, size_in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.facade import Memory

_DEFAULT_LINES = 120


def add_get(parser: argparse.ArgumentParser) -> None:
    """Say what `get` takes."""
    describe(
        parser,
        """\
Read lines of a file of the memory, or of a conversation, as a search cites them. Files outside the memory are refused.

Only reads.""",
        examples=(
            "plainmind get memory/network.md --from 16 --lines 5",
            "plainmind get MEMORY.md#L3-L7",
            "plainmind get 'sessions/5f0c7f0e.jsonl#L7'",
        ),
        run=run_get,
    )
    parser.add_argument(
        "path", metavar="PATH", help="a path as a search cites it; `#L3-L7` at its end means these lines"
    )
    parser.add_argument(
        "--from", dest="first_line", metavar="N", type=whole_number(1), default=1, help="the first line (1)"
    )
    parser.add_argument(
        "--lines",
        metavar="N",
        type=whole_number(1),
        default=_DEFAULT_LINES,
        help=f"at most N lines ({_DEFAULT_LINES})",
    )


def run_get(arguments: argparse.Namespace, console: Console) -> int:
    """Print lines."""
    with opened(arguments) as memory:
        excerpt = memory.get(arguments.path, first_line=arguments.first_line, line_count=arguments.lines)
    if console.json:
        fields: dict[str, Any] = {
            "path": excerpt.path,
            "text": excerpt.text,
            "from": excerpt.first_line,
            "lines": excerpt.line_count,
            "truncated": excerpt.truncated,
        }
        if excerpt.next_line is not None:
            fields["nextFrom"] = excerpt.next_line
        console.result(fields)
        return 0
    if excerpt.line_count:
        console.answer(console.shown(excerpt.text))
    else:
        console.note(f"{excerpt.path} has no line {excerpt.first_line}")
    if excerpt.next_line is not None:
        console.note(f"the file goes on: --from {excerpt.next_line}")
    elif excerpt.truncated:
        console.note("the line is longer than is shown")
    return 0


def add_list(parser: argparse.ArgumentParser) -> None:
    """Say what `list` takes."""
    describe(
        parser,
        """\
List the files of the memory, each with its day, size and number of lines; with --quiet only their paths.

Only reads.""",
        examples=("plainmind list", "plainmind list --json"),
        run=run_list,
    )


def run_list(arguments: argparse.Namespace, console: Console) -> int:
    """Print one line a file."""
    with opened(arguments) as memory:
        files = memory.list()
        if console.quiet and not console.json:
            for found in files:
                console.answer(console.shown(found.path))
            return 0
        rows = [_row(memory, found) for found in files]
    if console.json:
        console.result({"workspaceDir": memory.workspace, "files": rows})
        return 0
    for row in rows:
        lines = "?" if row["lines"] is None else f"{row['lines']:,}"
        place = console.styled(console.shown(row["path"]), "path")
        console.answer(f"{row['day'] or '-':10}  {size_in_words(row['bytes']):>9}  {lines:>7} lines  {place}")
        if row["error"]:
            console.note(row["error"])
    if not rows:
        console.note(f"there are no notes in {memory.workspace} yet")
        console.hint('write the first one: plainmind remember "…"')
    else:
        total = size_in_words(sum(row["bytes"] for row in rows))
        console.say(console.styled(f"{counted(len(rows), 'file')}, {total}", "dim"))
    return 0


def _row(memory: Memory, found: Any) -> dict[str, Any]:
    from datetime import UTC, datetime

    from plainmind.base.model import split_lines
    from plainmind.notes.dates import day_of

    lines: int | None = None
    error: str | None = None
    try:
        lines = len(split_lines(memory.parts.workspace.read(found)[0].text))
    except PlainmindError as refused:
        error = str(refused)  # one file that cannot be read does not hide the others
    return {
        "path": found.path,
        "day": day_of(found.path),
        "bytes": found.size,
        "lines": lines,
        "modifiedAt": datetime.fromtimestamp(found.mtime_ns / 1e9, UTC).isoformat(timespec="seconds"),
        "error": error,
    }
