"""`init`, `remember`, `edit`, `get`, `list`, `links`, `history`, `restore` and `undo`: the files of the memory."""

from __future__ import annotations

import argparse
import os
import sys

from plainmind.base.errors import NotFound, PlainmindError, shell_word
from plainmind.cli.console import Console, OutputLost, plural, size_in_words, visible
from plainmind.cli.options import (
    describe,
    looking_beside,
    open_memory,
    stands_beside,
    text_of,
    text_of_argument,
    text_of_file,
    whole_number,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.files.history import Version
    from plainmind.memory.memory import Memory
    from plainmind.notes.discovery import Discovery
    from plainmind.notes.links import Link
    from plainmind.notes.notebook import Remembered

_MOST_SHOWN = 8
_MOST_COLUMNS = 50


def add_init(parser: argparse.ArgumentParser) -> None:
    """Say what `init` takes."""
    describe(
        parser,
        """\
Make a workspace: MEMORY.md for what stays true, memory/ for daily notes. What is there already is left alone.

A folder that holds Markdown becomes a folder of notes: all of it is the memory, but what .gitignore and
.plainmindignore name, hidden folders, templates and node_modules. Says what will be indexed; searching such a folder
works without `init` too.

Goes to DIR, or to the workspace that is used anyway (`plainmind status` names it), at first
~/.plainmind/workspace.""",
        examples=(
            "plainmind init",
            "plainmind init ~/vault",
            "plainmind init . --agent-workspace --write-agents-md",
        ),
        run=run_init,
    )
    parser.add_argument("folder", metavar="DIR", nargs="?", help="the folder to make a workspace of")
    parser.add_argument(
        "--agent-workspace",
        action="store_true",
        help="make MEMORY.md and memory/ although the folder holds notes: then only these are read",
    )
    parser.add_argument(
        "--agents", action="store_true", help="print a few lines that tell a coding agent to use the memory"
    )
    parser.add_argument(
        "--write-agents-md",
        "--write",
        dest="write",
        action="store_true",
        help="put these lines into AGENTS.md (or CLAUDE.md, when only that is there) of the workspace",
    )


_WHAT_IS_WHERE = {
    "MEMORY.md": "what stays true: people, preferences, decisions (`remember --durable`)",
    "memory/": "a file for each day (`remember`), and notes of any other name",
}


def run_init(arguments: argparse.Namespace, console: Console) -> int:
    """Create what is missing and say what to do next."""
    from plainmind.memory.workspace_setup import RECALL_INSTRUCTION

    if arguments.folder is not None:
        arguments.workspace = arguments.folder
    with open_memory(arguments) as memory:
        created = memory.create_workspace(of_agent=arguments.agent_workspace)
        told = memory.tell_agents() if arguments.write else None
        origin = memory.workspace_origin
        is_folder = memory.is_folder_of_notes
        is_beside = not created and stands_beside(memory)
        look = memory.look()
    if console.json:
        fields = {"workspaceDir": memory.workspace, "created": list(created), "isFolderOfNotes": is_folder}
        left_out = [{"path": skipped.path, "reason": skipped.reason} for skipped in look.skipped]
        agents = None if told is None else {"path": told.path, "changed": told.changed}
        console.result(
            {
                **fields,
                "notes": len(look.files),
                "leftOut": left_out,
                "agentsFile": agents,
                "instruction": RECALL_INSTRUCTION,
            }
        )
        return 0
    if created:
        console.say(f"made {' and '.join(created)} in {memory.workspace}")
        for name in created:
            if name in _WHAT_IS_WHERE:
                console.say(f"  {name:9}  {_WHAT_IS_WHERE[name]}")
    else:
        console.say(f"{memory.workspace} is a workspace already; nothing was changed")
    if is_beside:
        console.hint(
            "the folder you are in holds Markdown too: `plainmind init .` makes it a memory of its own"
        )
    if is_folder:
        _tell_what_is_read(console, look)
    if told is not None:
        console.say(
            f"{'wrote the instruction into' if told.changed else 'the instruction is already in'} {told.path}"
        )
    if arguments.agents:
        console.answer(RECALL_INSTRUCTION)
    else:
        _next_steps(console, memory.workspace, must_be_named=origin.kind == "flag")
    return 0


def _tell_what_is_read(console: Console, look: Discovery) -> None:
    size = size_in_words(sum(found.size for found in look.files))
    console.say(f"all Markdown in it is the memory: {plural(len(look.files), 'note')}, {size}")
    for skipped in look.skipped[:_MOST_SHOWN]:
        console.say(f"  left out: {visible(skipped.path)} ({skipped.reason})")
    if len(look.skipped) > _MOST_SHOWN:
        console.say(f"  and {len(look.skipped) - _MOST_SHOWN} more, which `plainmind status` names")
    console.say("the index is kept elsewhere; only `remember` and `edit` write into this folder")
    console.say("`plainmind init --agent-workspace` makes MEMORY.md and memory/ here, and reads only those")


def _next_steps(console: Console, workspace: str, *, must_be_named: bool) -> None:
    console.say("\nNext:")
    if must_be_named:
        console.say(
            f"  plainmind config set workspace {shell_word(workspace)}    use it from anywhere (or cd there)"
        )
    console.say('  plainmind remember "The printer is on VLAN 40."')
    console.say('  plainmind search "which VLAN is the printer on?"')


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
    with open_memory(arguments) as memory:
        note = memory.remember(text, durable=arguments.durable)
        elsewhere = memory.workspace if stands_beside(memory) else None
    try:
        _tell_where(note, console)
        if elsewhere is not None:
            console.hint(
                f"that is in {elsewhere}; `plainmind init .` makes a memory of the folder you are in"
            )
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(
            f"the note is kept in {note.path}:{note.start_line}, but that could not be printed: {error.strerror}",
            hint="do not write it again; the output is full or gone",
        ) from error
    return 0


def _tell_where(note: Remembered, console: Console) -> None:
    if console.json:
        fields = {"path": note.path, "startLine": note.start_line, "endLine": note.end_line, "id": note.id}
        console.result(fields | ({"missing": list(note.missing)} if note.missing else {}))
    else:
        last = "" if note.end_line == note.start_line else f"-{note.end_line}"
        console.say(f"noted in {console.style(f'{note.path}:{note.start_line}{last}', 'path')}")
    if note.missing:
        are = "an earlier note is" if len(note.missing) == 1 else f"{len(note.missing)} earlier notes are"
        console.note(f"{are} no longer in {note.path}: an editor may have saved an older text over it")
        for name in note.missing:
            console.hint(f"`plainmind restore {name}` puts it back, `plainmind forget {name}` lets it go")


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
    with open_memory(arguments) as memory, looking_beside(memory):
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
        from plainmind.text.note_format import without_note_ids

        console.answer(
            console.printable(without_note_ids(excerpt.text))
        )  # ids are for programs, which read JSON
    elif excerpt.first_line == 1:
        console.note(f"{excerpt.path} holds no text")
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
    with open_memory(arguments) as memory:
        files = memory.list()
        if console.quiet and not console.json:
            for found in files:
                console.answer(console.printable(found.path))
            return 0
        rows = [_row(memory, found) for found in files]
    if console.json:
        console.result({"workspaceDir": memory.workspace, "files": rows})
        return 0
    for row in rows:
        lines = "?" if row["lines"] is None else f"{row['lines']:,}"
        place = console.style(console.printable(row["path"]), "path")
        console.answer(f"{row['day'] or '-':10}  {size_in_words(row['bytes']):>9}  {lines:>7} lines  {place}")
        if row["error"]:
            console.note(row["error"])
    if not rows:
        console.note(f"there are no notes in {memory.workspace} yet")
        console.hint('write the first one: plainmind remember "…"')
    else:
        total = size_in_words(sum(row["bytes"] for row in rows))
        console.say(console.style(f"{plural(len(rows), 'file')}, {total}", "dim"))
    return 0


def _row(memory: Memory, found: Any) -> dict[str, Any]:

    from plainmind.base.model import split_lines
    from plainmind.notes.workspace import day_of

    lines: int | None = None
    error: str | None = None
    try:
        lines = len(split_lines(memory.text_of(found)))
    except PlainmindError as refused:
        error = str(refused)  # one file that cannot be read does not hide the others
    return {
        "path": found.path,
        "day": day_of(found.path),
        "bytes": found.size,
        "lines": lines,
        "modifiedAt": found.changed_at,
        "error": error,
    }


def add_links(parser: argparse.ArgumentParser) -> None:
    """Say what `links` takes."""
    describe(
        parser,
        """\
Show a note's links and the notes that link to it: [[Note]], [[Note|label]], [[Note#Heading]], [[Note#^block]],
![[embed]] and [text](note.md). Links that lead nowhere are marked.

Only reads.""",
        examples=("plainmind links 'Hash Table'", "plainmind links projects/lighthouse.md --json"),
        run=run_links,
    )
    parser.add_argument("path", metavar="NOTE", help="a path, a file name, a title or an alias")


def run_links(arguments: argparse.Namespace, console: Console) -> int:
    """Print what a note leads to, then what leads to it."""
    with open_memory(arguments) as memory, looking_beside(memory):
        found = memory.links(arguments.path)
    if console.json:
        from plainmind.notes.links import as_json

        console.result(as_json(found))
        return 0
    names = found.names
    console.answer(console.style(visible(found.path), "path"))
    called = dict.fromkeys((names.title, *names.aliases))
    for label, values in (("called", filter(None, called)), ("tags", (f"#{tag}" for tag in names.tags))):
        shown = ", ".join(values)
        if shown:
            console.answer(f"  {label}: {visible(shown)}")
    links, backlinks = (
        dict.fromkeys(found.links),
        dict.fromkeys(found.backlinks),
    )  # twice in a line is shown once
    console.answer(f"links to {plural(len(links), 'place')}" if links else "links to nothing")
    for link in links:
        place = (
            console.style(visible(_place_of(link)), "path")
            if link.path
            else f"{visible(link.target)}  (no such note)"
        )
        label = f"  as {visible(link.label)!r}" if link.label else ""
        console.answer(f"  line {link.line}: {'embeds ' if link.is_embed else ''}{place}{label}")
    console.answer(f"linked from {plural(len(backlinks), 'place')}" if backlinks else "linked from nowhere")
    for back in backlinks:
        place = console.style(f"{visible(back.path)}:{back.line}", "path")
        console.answer(f"  {place}  {console.printable(back.text)}")
    return 0


def _place_of(link: Link) -> str:
    """`Hash Table.md:12`, and what was meant when that is not there."""
    part = link.target.partition("#")[2]
    if not part:
        return str(link.path)
    return f"{link.path}:{link.target_line}" if link.target_line else f"{link.path} (has no `{part}`)"


def add_history(parser: argparse.ArgumentParser) -> None:
    """Say what `history` takes."""
    describe(
        parser,
        """\
Show what was changed through plainmind, newest first. Versions marked * can be shown and restored.

Only reads. Old versions are kept in ~/.plainmind for 90 days, unless the history's settings say otherwise.""",
        examples=(
            "plainmind history MEMORY.md",
            "plainmind history --show 01JM2V7Q9Z5W8K3B4N6P7R8S9T",
        ),
        run=run_history,
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help="only changes of this file")
    parser.add_argument(
        "-n", dest="most", metavar="N", type=whole_number(1), default=30, help="at most N (30)"
    )
    parser.add_argument("--show", metavar="ID", help="print what the file was in this version")


def run_history(arguments: argparse.Namespace, console: Console) -> int:
    """Print the changes, or one version."""
    with open_memory(arguments) as memory:
        path = arguments.path and arguments.path.removeprefix("./")
        versions = [] if arguments.show else memory.history(path)[: arguments.most]
        shown = arguments.show
        if path and not versions and any(version.id == path for version in memory.history()):
            shown = path
        if shown is not None:
            return _show(memory, shown, console)
        zone = memory.now().tzinfo
    if console.json:
        console.result({"versions": [_as_json(version) for version in versions]})
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


def _words_of(version: Version) -> str:
    """The beginning of a note that was added."""
    from plainmind.cli.console import fitting
    from plainmind.text.note_format import without_note_ids

    words = " ".join(without_note_ids(version.text or "").split())
    return f"  {visible(fitting(words, _MOST_COLUMNS))}" if words else ""


def _show(memory: Memory, version_id: str, console: Console) -> int:
    data = memory.read_version(version_id)
    if console.json:
        version = next((known for known in memory.history() if known.id == version_id), None)
        if version is None:
            raise NotFound(f"there is no version `{version_id}`", hint="`plainmind history` lists them")
        console.result({**_as_json(version), "text": data.decode("utf-8", "replace")})
    elif console.is_terminal:
        console.answer(console.printable(data.decode("utf-8", "replace").removesuffix("\n")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)  # to the byte: it may be on its way into a file
    return 0


def _as_json(version: Version) -> dict[str, Any]:
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
A file that somebody has changed since stays as it is, and what was forgotten stays forgotten.

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
        console.result({"path": undone.path, "operation": undone.operation, "text": text, "paths": paths})
        return 0
    place = console.style(undone.path, "path")
    what = "a note in" if undone.operation == "append" else f"the latest {undone.operation} of"
    others = f" and {plural(len(undone.others), 'other file')}" if undone.others else ""
    console.say(f"took back {what} {place}{others}")
    for line in console.printable(text).split("\n") if text else ():
        console.say(f"  {line}".rstrip())
    return 0
