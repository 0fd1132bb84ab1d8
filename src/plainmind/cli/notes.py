"""`init`, `remember`, `get`, `list`, `links` and `export`: the files of the memory."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from plainmind.base.errors import PlainmindError, shell_word
from plainmind.cli.console import SCHEMA_VERSION, Console, OutputLost, plural, size_in_words, visible
from plainmind.cli.options import (
    describe,
    looking_beside,
    open_memory,
    stands_beside,
    text_of,
    whole_number,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    from plainmind.memory.memory import Memory
    from plainmind.memory.workspace_setup import ExportedFile
    from plainmind.notes.discovery import Discovery
    from plainmind.notes.links import Link
    from plainmind.notes.notebook import Remembered


_MOST_SHOWN = 8


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
    from plainmind.memory.doctor import unread_files
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
        unread = unread_files(memory.notes.workspace, look.files)
    if console.json:
        fields = {"workspaceDir": memory.workspace, "created": list(created), "isFolderOfNotes": is_folder}
        left_out = [{"path": skipped.path, "reason": skipped.reason} for skipped in look.skipped]
        agents = None if told is None else {"path": told.path, "changed": told.changed}
        console.result(
            {
                **fields,
                "notes": len(look.files),
                "leftOut": left_out,
                "notRead": len(unread),
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
    _tell_what_is_read(console, look, unread, memory.workspace, is_folder=is_folder)
    if told is not None:
        console.say(
            f"{'wrote the instruction into' if told.changed else 'the instruction is already in'} {told.path}"
        )
    if arguments.agents:
        console.answer(RECALL_INSTRUCTION)
    else:
        _next_steps(console, memory.workspace, must_be_named=origin.kind == "flag")
    return 0


def _tell_what_is_read(
    console: Console, look: Discovery, unread: Sequence[str], workspace: str, *, is_folder: bool
) -> None:
    if unread:
        _tell_what_is_not_read(console, look, unread, workspace)
    if not is_folder:
        return
    size = size_in_words(sum(found.size for found in look.files))
    console.say(f"all Markdown in it is the memory: {plural(len(look.files), 'note')}, {size}")
    for skipped in look.skipped[:_MOST_SHOWN]:
        console.say(f"  left out: {visible(skipped.path)} ({skipped.reason})")
    if len(look.skipped) > _MOST_SHOWN:
        console.say(f"  and {len(look.skipped) - _MOST_SHOWN} more, which `plainmind status` names")
    console.say("the index is kept elsewhere; only `remember` and `edit` write into this folder")
    console.say("`plainmind init --agent-workspace` makes MEMORY.md and memory/ here, and reads only those")


def _tell_what_is_not_read(console: Console, look: Discovery, unread: Sequence[str], workspace: str) -> None:
    from plainmind.memory.doctor import unread_in_words

    console.say(f"only MEMORY.md and memory/ are the memory: {plural(len(look.files), 'note')}")
    console.say(visible(unread_in_words(unread)))
    place = shell_word(os.path.join(workspace, ".plainmindignore"))
    console.say(f"`touch {place}` makes all Markdown there the memory; `extraPaths` takes in single folders")


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
![[embed]] and `[text](note.md)`. Links that lead nowhere are marked.

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


def add_export(parser: argparse.ArgumentParser) -> None:
    """Say what `export` takes."""
    describe(
        parser,
        """\
Write every file of the memory into one: JSON lines (path, text, day, sha256, bytes) or a zip of the Markdown files.

Goes to stdout, or to the file that --output names; an existing file is not overwritten.""",
        examples=(
            "plainmind export > memory.jsonl",
            "plainmind export --format zip --output memory.zip",
        ),
        run=run_export,
    )
    parser.add_argument("--format", choices=("jsonl", "zip"), default="jsonl", help="what to write (jsonl)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (stdout)")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")


def run_export(arguments: argparse.Namespace, console: Console) -> int:
    """Write all files."""
    with open_memory(arguments) as memory:
        files = memory.export()
        if arguments.output is None:
            if arguments.format == "zip" and console.is_terminal:
                raise PlainmindError("a zip file is nothing for a terminal", hint="add --output memory.zip")
            sys.stdout.flush()
            _write(files, arguments.format, sys.stdout.buffer)
            return 0
        with new_file(os.path.abspath(arguments.output), overwrite=arguments.force) as stream:
            count = _write(files, arguments.format, stream)
    size = os.path.getsize(arguments.output)
    if console.json:
        fields = {"output": os.path.abspath(arguments.output), "format": arguments.format}
        console.result({**fields, "files": count, "bytes": size})
    else:
        console.say(f"wrote {plural(count, 'file')} to {arguments.output} ({size_in_words(size)})")
    return 0


def _write(files: Iterator[ExportedFile], form: str, stream: IO[bytes]) -> int:
    return _write_zip(files, stream) if form == "zip" else _write_lines(files, stream)


def _write_lines(files: Iterator[ExportedFile], stream: IO[bytes]) -> int:
    import json

    count = 0
    for file in files:
        count += 1
        fields = {
            "schema_version": SCHEMA_VERSION,
            "path": file.path,
            "text": file.text,
            "day": file.day,
            "sha256": file.sha256,
            "bytes": file.bytes,
        }
        stream.write(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    stream.flush()
    return count


def _write_zip(files: Iterator[ExportedFile], stream: IO[bytes]) -> int:
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    count = 0
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        for file in files:
            count += 1
            # A fixed time: the same memory gives the same bytes.
            entry = ZipInfo(file.path.lstrip("/"), date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, file.raw)
    return count


@contextmanager
def new_file(path: str, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """Write beside the target and rename: a half-written export never has the name that was asked for."""
    from tempfile import mkstemp

    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise PlainmindError(f"there is no folder {folder}", hint="make it, or choose another place")
    if os.path.lexists(path):
        _check_overwriting(path, overwrite=overwrite)
    descriptor, temporary = mkstemp(dir=folder, prefix=".export-", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _give_name(temporary, path, overwrite=overwrite)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _give_name(temporary: str, path: str, *, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(temporary, path)  # unlike a rename, refuses when something is there
        except FileExistsError:
            _check_overwriting(path, overwrite=False)
        except OSError:
            if os.path.lexists(path):
                _check_overwriting(path, overwrite=False)
        else:
            return
    # Asked for, or a file system without hard links.
    os.replace(temporary, path)


def _check_overwriting(path: str, *, overwrite: bool) -> None:
    if os.path.lexists(path) and not os.path.isfile(path):
        raise PlainmindError(f"{path} is not a file; nothing was written", hint="choose another name")
    if not overwrite:
        raise PlainmindError(
            f"{path} exists already; nothing was written", hint="choose another name, or add --force"
        )
