"""`remember` and `edit`: write to the memory."""

from __future__ import annotations

import argparse
import os

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console
from plainmind.cli.opening import checked, opened, text_of, text_of_file
from plainmind.cli.options import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.facade import Memory


def add_remember(parser: argparse.ArgumentParser) -> None:
    """Say what `remember` takes."""
    describe(
        parser,
        """\
Write a note down. It is on the disk when the command ends, and the next search finds it.

Goes to the end of today's log, memory/YYYY-MM-DD.md in the workspace; with --durable to MEMORY.md.""",
        examples=(
            'plainmind remember "The printer is on VLAN 40."',
            'plainmind remember --durable "Prefers answers in one line."',
            "pbpaste | plainmind remember -",
        ),
        run=run_remember,
    )
    parser.add_argument("words", metavar="TEXT", nargs="+", help="the note; - reads stdin")
    parser.add_argument(
        "--durable", action="store_true", help="it stays true: write it to MEMORY.md, not to today's log"
    )


def run_remember(arguments: argparse.Namespace, console: Console) -> int:
    """Append a note and say where it stands."""
    text = text_of(arguments.words)
    with opened(arguments) as memory:
        note = memory.remember(text, durable=arguments.durable)
    if console.json:
        fields = {"path": note.path, "startLine": note.start_line, "endLine": note.end_line, "id": note.id}
        console.result(fields)
    else:
        last = "" if note.end_line == note.start_line else f"-{note.end_line}"
        console.say(f"noted in {console.styled(f'{note.path}:{note.start_line}{last}', 'path')}")
    return 0


def add_edit(parser: argparse.ArgumentParser) -> None:
    """Say what `edit` takes."""
    describe(
        parser,
        """\
Replace a text that stands exactly once in a file; or, without --old, open the file in $VISUAL or $EDITOR.

Changes the file in the workspace. What it was before is kept: `plainmind history` lists it.""",
        examples=(
            'plainmind edit MEMORY.md --old "VLAN 40" --new "VLAN 41"',
            "plainmind edit memory/network.md",
        ),
        run=run_edit,
    )
    parser.add_argument("path", metavar="PATH", help="the file, as a search cites it")
    old = parser.add_mutually_exclusive_group()
    old.add_argument("--old", metavar="TEXT", help="the text to replace, to the letter")
    old.add_argument("--old-file", metavar="FILE", help="the same, read from a file; - is stdin")
    new = parser.add_mutually_exclusive_group()
    new.add_argument("--new", metavar="TEXT", help="the text to put there; may be empty")
    new.add_argument("--new-file", metavar="FILE", help="the same, read from a file; - is stdin")
    parser.add_argument(
        "--allow-shrink", action="store_true", help="also when most of the file goes with the edit"
    )


def run_edit(arguments: argparse.Namespace, console: Console) -> int:
    """Replace text, or let the user's editor do it."""
    if arguments.old_file == "-" and arguments.new_file == "-":
        raise PlainmindError("stdin can only be one of the two texts", hint="save the other one to a file")
    # The old text may be bytes that are no UTF-8, just as they stand in the file; new ones are not added.
    old = arguments.old if arguments.old_file is None else text_of_file(arguments.old_file)
    new = arguments.new and checked(arguments.new)
    new = new if arguments.new_file is None else text_of_file(arguments.new_file)
    if (old is None) != (new is None):
        missing = "--old" if old is None else "--new"
        raise PlainmindError(f"{missing} is missing", hint="give both texts, or neither to open your editor")
    with opened(arguments) as memory:
        if old is None or new is None:
            return _edit_by_hand(memory, arguments.path, console)
        edited = memory.edit(arguments.path, old, new, allow_shrink=arguments.allow_shrink)
    if console.json:
        console.result({"path": edited.path, "line": edited.line, "hash": edited.hash})
    else:
        console.say(f"changed {console.styled(f'{edited.path}:{edited.line}', 'path')}")
    return 0


def _edit_by_hand(memory: Memory, path: str, console: Console) -> int:
    """Open the file itself, so that the editor shows where it is; what it was is in the history first."""
    import shlex
    import subprocess

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise PlainmindError(
            "there is no editor to open", hint="set EDITOR, or give the texts with --old and --new"
        )
    place = memory.keep_version(path, reason="edit by hand")
    before = _content(place)
    try:
        ended = subprocess.run([*shlex.split(editor), place], check=False)  # noqa: S603 (the user's own editor)
    except (FileNotFoundError, PermissionError, ValueError) as error:
        raise PlainmindError(f"the editor `{editor}` could not be started", hint="check EDITOR") from error
    memory.sync()
    changed = _content(place) != before
    if console.json:
        console.result({"path": path, "changed": changed, "editorStatus": ended.returncode})
    else:
        console.say(f"indexed {path} again" if changed else f"{path} is as it was")
    if ended.returncode:
        raise PlainmindError(f"the editor ended with status {ended.returncode}", hint=f"look at {place}")
    return 0


def _content(place: str) -> bytes | None:
    try:
        with open(place, "rb") as file:
            return file.read()
    except FileNotFoundError:  # the editor removed it
        return None
