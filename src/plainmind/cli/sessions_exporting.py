"""`sessions export`: a conversation for people, for other programs, or as it is kept."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console
from plainmind.cli.opening import opened
from plainmind.cli.wording import size_in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from plainmind.memory.showing_sessions import Clean
    from plainmind.sessions.session import Session

    Add: TypeAlias = Callable[[str, str, str, Callable[..., int]], argparse.ArgumentParser]


def add_session_export(add: Add) -> None:
    """Say what `sessions export` takes."""
    parser = add(
        "export",
        "write a session as Markdown, as messages or as JSON lines, with secrets hidden",
        "plainmind sessions export agent:main:main --format markdown > talk.md",
        run_export_session,
    )
    parser.add_argument("name", metavar="NAME", help="its key, its id, or the beginning of one")
    parser.add_argument(
        "--format", choices=("jsonl", "markdown", "messages"), default="jsonl", help="(jsonl)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (stdout)")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--raw", action="store_true", help="leave secrets as they are")


def run_export_session(arguments: argparse.Namespace, console: Console) -> int:
    """Write one session."""
    from plainmind.memory.showing_sessions import find_session, without_secrets

    with opened(arguments) as memory:
        session = find_session(memory.sessions, arguments.name)
        clean: Clean = (lambda entry: entry) if arguments.raw else without_secrets(memory.redactor())
        pieces = _pieces(session, arguments.format, clean)
        if arguments.output is None:
            sys.stdout.flush()
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return 0
        path = os.path.abspath(arguments.output)
        _write(path, pieces, overwrite=arguments.force)
    size = os.path.getsize(path)
    if console.json:
        console.result({"id": session.id, "output": path, "format": arguments.format, "bytes": size})
    else:
        console.say(f"wrote {arguments.output} ({size_in_words(size)})")
    return 0


def _pieces(session: Session, form: str, clean: Clean) -> Iterator[bytes]:
    from plainmind.memory.showing_sessions import as_lines, as_markdown, as_messages, entry_of, title_of

    if form == "markdown":
        return as_markdown(session, clean, title_of(clean(entry_of(session))))
    return as_messages(session, clean) if form == "messages" else as_lines(session, clean)


def _write(path: str, pieces: Iterator[bytes], *, overwrite: bool) -> None:
    """Write beside the target and rename: a half-written export never has the name that was asked for."""
    from tempfile import mkstemp

    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise PlainmindError(f"there is no folder {folder}", hint="make it, or choose another place")
    if os.path.lexists(path) and not (overwrite and os.path.isfile(path)):
        raise PlainmindError(
            f"{path} exists already; nothing was written", hint="choose another name, or add --force"
        )
    descriptor, temporary = mkstemp(dir=folder, prefix=".export-", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.writelines(pieces)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
