"""`edit`, `forget`, `history`, `restore` and `undo`: text that is changed, that goes for good, and that comes back."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from plainmind.base.errors import NotFound, PlainmindError, shell_word
from plainmind.base.lazy import IGNORECASE, pattern
from plainmind.base.model import PRIVATE
from plainmind.base.value import replace
from plainmind.cli.console import Console, plural, size_in_words, visible
from plainmind.cli.options import (
    describe,
    open_memory,
    text_of,
    text_of_argument,
    text_of_file,
    whole_number,
)
from plainmind.text.note_format import without_note_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.files.history import Version
    from plainmind.memory.forget import StillThere
    from plainmind.memory.memory import Memory
    from plainmind.notes.notebook import Forgotten


_MOST_COLUMNS = 50


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
    new = arguments.new and text_of_argument(arguments.new)
    new = new if arguments.new_file is None else text_of_file(arguments.new_file)
    if (old is None) != (new is None):
        missing = "--old" if old is None else "--new"
        raise PlainmindError(f"{missing} is missing", hint="give both texts, or neither to open your editor")
    with open_memory(arguments) as memory:
        if old is None or new is None:
            return _edit_by_hand(memory, arguments.path, console)
        edited = memory.edit(arguments.path, old, new, allow_shrink=arguments.allow_shrink)
    if console.json:
        console.result({"path": edited.path, "line": edited.line, "hash": edited.hash})
    else:
        console.say(f"changed {console.style(f'{edited.path}:{edited.line}', 'path')}")
    return 0


_BY_HAND = "edit by hand"


def _edit_by_hand(memory: Memory, path: str, console: Console) -> int:
    """Open the file itself, so that the editor shows where it is; what it was is in the history first."""
    import shlex
    import subprocess

    from plainmind.base.model import sha256_bytes

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise PlainmindError(
            "there is no editor to open", hint="set EDITOR, or give the texts with --old and --new"
        )
    place = memory.keep_version(path, reason=_BY_HAND)
    before = _content(place)
    try:
        ended = subprocess.run([*shlex.split(editor), place], check=False)  # noqa: S603 (the user's own editor)
    except (FileNotFoundError, PermissionError, ValueError) as error:
        raise PlainmindError(f"the editor `{editor}` could not be started", hint="check EDITOR") from error
    changed = _content(place) != before
    if changed and before is not None and _content(place) is not None:
        memory.notes.notebook.tell_edited(path, base_hash=sha256_bytes(before), reason=_BY_HAND)
    memory.sync()
    if console.json:
        console.result({"path": path, "changed": changed, "editorStatus": ended.returncode})
    else:
        console.say(f"changed {path}" if changed else f"{path} is as it was")
    if ended.returncode:
        raise PlainmindError(f"the editor ended with status {ended.returncode}", hint=f"look at {place}")
    return 0


def _content(place: str) -> bytes | None:
    try:
        with open(place, "rb") as file:
            return file.read()
    except FileNotFoundError:  # the editor removed it
        return None


_CITATION = pattern(r"(?P<path>.+\.md)(?:#L|:)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?", IGNORECASE)
_MOST_NAMES = 20  # `--json` has all of them


def add_forget(parser: argparse.ArgumentParser) -> None:
    """Say what `forget` takes."""
    describe(
        parser,
        """\
Remove lines and entries for good. Shows them and asks first.

They go from the files of the workspace, the entries, the index, the cache and the history: `restore` cannot bring them
back. So does a text that you deleted in an editor, and that only older versions or the index have. Conversations stay
as they are; those that have the text too are named.""",
        examples=(
            'plainmind forget "the code of the door is"',
            "plainmind forget memory/2026-02-10.md#L3-L5 --dry-run",
            "plainmind forget 01JM2V7Q9Z5W8K3B4N6P7R8S9T --yes",
        ),
        run=run_forget,
    )
    parser.add_argument(
        "words",
        metavar="WHAT",
        nargs="+",
        help="lines by citation (`MEMORY.md#L3-L5`), a note or an entry by its id, or every line with this text and"
        " every entry with its words; - reads stdin",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run_forget(arguments: argparse.Namespace, console: Console) -> int:
    """Show what would go, ask, remove it."""
    what = text_of(arguments.words)
    with open_memory(arguments) as memory:
        try:
            chosen = memory.forget(what, dry_run=True)
        except NotFound:
            _name_what_stays(memory.still_there([what]), console)
            raise
        going = {entry.id for entry in chosen.entries}
        staying = memory.still_there(chosen)
        staying = replace(staying, entries=tuple(id_ for id_ in staying.entries if id_ not in going))
        if not console.json:
            _show(chosen, console)
            _name_what_stays(staying, console)
            _tell(chosen.remarks, console)
        if arguments.dry_run:
            if console.json:
                console.result(_as_json(chosen, staying))
            return 0
        if not arguments.yes and not _agree(chosen, console):
            console.say("nothing was removed")
            return 1
        # What was shown is what goes: a file that changed since is refused.
        forgotten = memory.forget(chosen)
    if console.json:
        console.result(_as_json(forgotten, staying))
    else:
        _tell([remark for remark in forgotten.remarks if remark not in chosen.remarks], console)
        console.say(f"removed {_what_went(forgotten)}")
    return 0


def _show(chosen: Forgotten, console: Console) -> None:
    if not chosen.lines and not chosen.entries:
        console.say("no file has this any more; it would go from older versions and from the index")
    for lines in chosen.lines:
        last = "" if lines.end_line == lines.start_line else f"-{lines.end_line}"
        console.answer(console.style(f"{console.printable(lines.path)}:{lines.start_line}{last}", "path"))
        for line in console.printable(without_note_ids(lines.text)).split("\n"):
            console.answer(f"  {line}".rstrip())
    for entry in chosen.entries:
        whose = "" if entry.scope == PRIVATE else f" for {entry.scope}"
        console.answer(console.style(console.printable(f"entry {entry.id}{whose}"), "path"))
        for line in console.printable(entry.text).split("\n"):
            console.answer(f"  {line}".rstrip())


def _what_went(forgotten: Forgotten) -> str:
    lines = sum(part.end_line - part.start_line + 1 for part in forgotten.lines)
    entries, past = len(forgotten.entries), forgotten.versions_cleaned
    if not lines and not entries:
        return f"it from {plural(past, 'older version')}" if past else "what was left of it in the index"
    went = [plural(lines, "line")] if lines else []
    went += [plural(entries, "entry", "entries")] if entries else []
    return " and ".join(went) + (f", also from {plural(past, 'older version')}" if past else "")


def _tell(remarks: Sequence[str], console: Console) -> None:
    for remark in remarks:
        console.note(remark)


def _name_what_stays(staying: StillThere, console: Console) -> None:
    """Say where else the text is: nobody should believe that it is gone from there too."""
    if staying.entries:
        found = plural(len(staying.entries), "entry", "entries")
        console.note(f"this text stays in {found}: {_some(staying.entries)}")
        console.hint(f"`plainmind entries forget {_name(staying.entries, 'ID')}` removes it")
    if staying.sessions:
        found = plural(len(staying.sessions), "conversation")
        console.note(f"this text stays in {found}: {_some(staying.sessions)}")
        names = " ".join(map(shell_word, staying.sessions[:_MOST_NAMES]))
        console.hint(f"`plainmind sessions delete {names}` removes all that was said there")
    if staying.typed:
        console.note(f"this text stays in what you typed in chats: {staying.typed}")
        console.hint("delete that file, or the line in it")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _name(names: Sequence[str], placeholder: str) -> str:
    return shell_word(names[0]) if len(names) == 1 else placeholder


def _agree(chosen: Forgotten, console: Console) -> bool:
    places = len(chosen.lines) + len(chosen.entries)
    return console.may_remove(
        plural(places, "place") if places else "what is left of it",
        "these" if places > 1 else "this",
        hint="--yes removes it without asking, --dry-run only shows it",
    )


def _as_json(forgotten: Forgotten, staying: StillThere) -> dict[str, Any]:
    return {
        "applied": forgotten.applied,
        "lines": [
            {"path": lines.path, "startLine": lines.start_line, "endLine": lines.end_line, "text": lines.text}
            for lines in forgotten.lines
        ],
        "entries": [
            {"id": entry.id, "text": entry.text, "scope": entry.scope} for entry in forgotten.entries
        ],
        "versionsCleaned": forgotten.versions_cleaned,
        "remarks": list(forgotten.remarks),
        "stillIn": {
            "entries": list(staying.entries),
            "sessions": list(staying.sessions),
            "chatHistory": staying.typed,
        },
    }


def add_history(parser: argparse.ArgumentParser) -> None:
    """Say what `history` takes."""
    describe(
        parser,
        """\
Show what was changed through plainmind, newest first. Versions marked * can be shown and restored.

Of cited lines it says since when each says what it says: since the day of its log, since it was noted, or since it was
corrected through plainmind.

Only reads. Old versions are kept in ~/.plainmind for 90 days, unless the history's settings say otherwise.""",
        examples=(
            "plainmind history MEMORY.md",
            "plainmind history MEMORY.md#L3-L7",
            "plainmind history --show 01JM2V7Q9Z5W8K3B4N6P7R8S9T",
        ),
        run=run_history,
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help="only changes of this file; or lines of it")
    parser.add_argument(
        "-n", dest="most", metavar="N", type=whole_number(1), default=30, help="at most N (30)"
    )
    parser.add_argument("--show", metavar="ID", help="print what the file was in this version")


def run_history(arguments: argparse.Namespace, console: Console) -> int:
    """Print the changes, or one version."""
    with open_memory(arguments) as memory:
        path = arguments.path and arguments.path.removeprefix("./")
        if path and (cited := _CITATION.fullmatch(path)):
            return _show_since(memory, cited["path"], int(cited["first"]), int(cited["last"] or 0), console)
        versions = [] if arguments.show else memory.history(path)[: arguments.most]
        shown = arguments.show
        if path and not versions and any(version.id == path for version in memory.history()):
            shown = path
        if shown is not None:
            return _show_version(memory, shown, console)
        zone = memory.now().tzinfo
    if console.json:
        console.result({"versions": [_version_as_json(version) for version in versions]})
        return 0
    from datetime import datetime

    width = max((len(version.what) for version in versions), default=0)
    for version in versions:
        mark = "*" if version.available else " "
        when = f"{datetime.fromisoformat(version.at).astimezone(zone):%Y-%m-%d %H:%M:%S}"
        place = console.style(console.printable(version.path), "path")
        size = f"{size_in_words(version.length):>9}"
        console.answer(
            f"{version.id} {mark} {when}  {version.what:{width}} {size}  {place}{_words_of(version)}"
        )
    if not versions:
        console.note(f"nothing was changed {'in ' + path if path else 'through plainmind'} yet")
    if any(version.available for version in versions):
        console.hint("what is marked * can be shown, `plainmind history --show ID`, and restored")
    return 0


def _show_since(memory: Memory, path: str, first: int, last: int, console: Console) -> int:
    """Print since when lines say what they say, as far as that is known."""
    from plainmind.base.model import split_lines
    from plainmind.notes.workspace import decode

    notebook = memory.notes.notebook
    lines = split_lines(decode(notebook.read_bytes(path)[1]))
    last = last or first
    if not 1 <= first <= last <= len(lines):
        raise NotFound(
            f"`{path}` has {plural(len(lines), 'line')}; there is no range {first}-{last}",
            hint=f"read it with `plainmind get {shell_word(path)}`",
        )
    rows = [
        {"line": number, "since": notebook.line_days.day_of(path, line), "text": without_note_ids(line)}
        for number, line in enumerate(lines[first - 1 : last], first)
        if line.strip()
    ]
    if console.json:
        console.result({"path": path, "lines": rows})
        return 0
    for row in rows:
        since = console.style(f"{row['since'] or '?':10}", "dim")
        place = console.style(console.printable(f"{path}:{row['line']}"), "path")
        console.answer(f"{since}  {place}  {console.printable(str(row['text']))}")
    if any(row["since"] is None for row in rows):
        console.note("of lines marked ? nobody knows: they were written in an editor")
    return 0


def _words_of(version: Version) -> str:
    """The beginning of a note that was added."""
    from plainmind.cli.console import fitting
    from plainmind.text.note_format import without_note_ids

    words = " ".join(without_note_ids(version.text or "").split())
    return f"  {visible(fitting(words, _MOST_COLUMNS))}" if words else ""


def _show_version(memory: Memory, version_id: str, console: Console) -> int:
    data = memory.read_version(version_id)
    if console.json:
        version = next((known for known in memory.history() if known.id == version_id), None)
        if version is None:
            raise NotFound(f"there is no version `{version_id}`", hint="`plainmind history` lists them")
        console.result({**_version_as_json(version), "text": data.decode("utf-8", "replace")})
    elif console.is_terminal:
        console.answer(console.printable(data.decode("utf-8", "replace").removesuffix("\n")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)  # to the byte: it may be on its way into a file
    return 0


def _version_as_json(version: Version) -> dict[str, Any]:
    return {
        "id": version.id,
        "at": version.at,
        "path": version.path,
        "operation": version.operation,
        "bytes": version.length,
        "hash": version.hash,
        "previous": version.previous,
        "available": version.available,
    }


def add_restore(parser: argparse.ArgumentParser) -> None:
    """Say what `restore` takes."""
    describe(
        parser,
        """\
Bring back what a file was. What it is now goes into the history first, so this can be undone too. The id of a note puts
the note back that an editor has saved over, at the end of its file.

Changes the file in the workspace.""",
        examples=("plainmind history MEMORY.md", "plainmind restore 01JM2V7Q9Z5W8K3B4N6P7R8S9T"),
        run=run_restore,
    )
    parser.add_argument("version", metavar="ID", help="a version marked * in `plainmind history`")


def run_restore(arguments: argparse.Namespace, console: Console) -> int:
    """Write an old version over the file."""
    with open_memory(arguments) as memory:
        restored = memory.restore(arguments.version)
    if console.json:
        console.result({"path": restored.path, "hash": restored.hash})
    else:
        console.say(f"restored {console.style(restored.path, 'path')}")
    return 0


def add_undo(parser: argparse.ArgumentParser) -> None:
    """Say what `undo` takes."""
    describe(
        parser,
        """\
Take back the latest change that was made through Plainmind: a note, an edit, a restored version. Again, the one before.
A file that somebody has changed since stays as it is, and what was forgotten stays forgotten. A note that somebody else
has removed counts as taken back: then the change before it is. A file that a note has made goes with its last note.

Changes the file in the workspace; the history keeps what it was.""",
        examples=("plainmind undo",),
        run=run_undo,
    )


def run_undo(arguments: argparse.Namespace, console: Console) -> int:
    """Take back one change and say which."""
    from plainmind.text.note_format import without_note_ids

    with open_memory(arguments) as memory:
        undone = memory.undo()
    text = without_note_ids(undone.text).strip()
    if console.json:
        paths = [undone.path, *undone.others]
        console.result(
            {
                "path": undone.path,
                "operation": undone.operation,
                "text": text,
                "paths": paths,
                "remarks": list(undone.remarks),
            }
        )
        return 0
    _tell(undone.remarks, console)
    place = console.style(undone.path, "path")
    what = "a note in" if undone.operation == "append" else f"the latest {undone.operation} of"
    others = f" and {plural(len(undone.others), 'other file')}" if undone.others else ""
    console.say(f"took back {what} {place}{others}")
    for line in console.printable(text).split("\n") if text else ():
        console.say(f"  {line}".rstrip())
    return 0
