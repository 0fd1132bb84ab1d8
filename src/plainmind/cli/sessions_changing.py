"""`sessions archive`, `delete`, `fork`, `convert` and `compact`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console, is_terminal
from plainmind.cli.opening import checked, opened, text_of_stdin
from plainmind.cli.options import whole_number
from plainmind.cli.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Add: TypeAlias = Callable[[str, str, str, Callable[..., int]], argparse.ArgumentParser]

_NAME = "its key, its id, or the beginning of one"


def add_changes(add: Add) -> None:
    """Say what the commands take that change sessions."""
    parser = add(
        "archive",
        "put a session away: its key is free again, and it is still searched",
        "plainmind sessions archive agent:main:main",
        run_archive,
    )
    parser.add_argument("name", metavar="NAME", help=_NAME)
    parser = add(
        "delete",
        "remove a session or an archive for good, from disk and from every index; asks first",
        "plainmind sessions delete claude-code:5f0c",
        run_delete,
    )
    parser.add_argument("name", metavar="NAME", help=f"{_NAME}; or an archive")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser = add(
        "fork",
        "begin a session that goes on where another one is now, or was",
        "plainmind sessions fork agent:main:main agent:main:try",
        run_fork,
    )
    parser.add_argument("name", metavar="NAME", help=_NAME)
    parser.add_argument("key", metavar="KEY", help="the key of the new one")
    parser.add_argument("--at", metavar="ID", help="the last entry to take along (the newest)")
    parser = add(
        "convert",
        "keep a session, or all of them, in the other format",
        "plainmind sessions convert json5",
        run_convert,
    )
    parser.add_argument(
        "format", choices=("jsonl", "json5"), help="append-only lines, or one document to read"
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help=f"{_NAME} (all)")
    parser = add(
        "compact",
        "let a summary stand for what was said so far; the transcript keeps everything",
        'plainmind sessions compact agent:main:main --summary "They chose larch." --keep 4',
        run_compact,
    )
    parser.add_argument("name", metavar="NAME", help=_NAME)
    parser.add_argument("--summary", metavar="TEXT", required=True, help="the summary; - reads stdin")
    parser.add_argument(
        "--keep",
        metavar="N",
        type=whole_number(0),
        default=0,
        help="leave the last N messages in the context (0)",
    )


def run_archive(arguments: argparse.Namespace, console: Console) -> int:
    """Rename the transcript and free the key."""
    from plainmind.memory.showing_sessions import find_session

    with opened(arguments) as memory:
        session = find_session(memory.sessions, arguments.name)
        path = memory.sessions.archive(session.key or session.id)
    if console.json:
        console.result({"key": session.key, "id": session.id, "path": path})
    else:
        console.say(f"archived {console.shown(session.key or session.id)} as {path}")
    return 0


def run_delete(arguments: argparse.Namespace, console: Console) -> int:
    """Ask, then remove it everywhere."""
    import os

    from plainmind.memory.showing_sessions import entry_of, find_session, title_of

    with opened(arguments) as memory:
        session = find_session(memory.sessions, arguments.name)
        # An archive has no key, and is deleted by its own name.
        name = session.key or os.path.relpath(session.path, memory.sessions.folder)
        title = memory.redactor().without_secrets(title_of(entry_of(session)))
        shown = f"{name} ({title})" if title else name
        if not arguments.yes and not _agreed(shown, console):
            console.say("nothing was removed")
            return 1
        cited = memory.delete_session(name)
    if console.json:
        console.result({"key": session.key, "id": session.id, "cited": list(cited)})
    else:
        console.say(f"removed {console.shown(shown)}")
    return 0


def _agreed(shown: str, console: Console) -> bool:
    if console.json or not is_terminal(sys.stdin):
        raise PlainmindError(
            f"nobody is there to ask whether {shown} may go; nothing was removed",
            hint="--yes removes it without asking",
        )
    print(f"Remove {console.shown(shown)} for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def run_fork(arguments: argparse.Namespace, console: Console) -> int:
    """Begin a session with the branch of another."""
    from plainmind.memory.showing_sessions import find_session

    with opened(arguments) as memory:
        origin = find_session(memory.sessions, arguments.name)
        made = memory.sessions.fork(origin, checked(arguments.key), at=arguments.at)
    if console.json:
        console.result({"key": made.key, "id": made.id, "path": made.path})
    else:
        console.say(f"began {console.shown(str(made.key))} ({made.id})")
    return 0


def run_convert(arguments: argparse.Namespace, console: Console) -> int:
    """Write sessions in the other format."""
    from plainmind.memory.showing_sessions import find_session

    with opened(arguments) as memory:
        name = None
        if arguments.name is not None:
            session = find_session(memory.sessions, arguments.name)
            name = session.key or session.id
        count = memory.sessions.convert(arguments.format, name)
    if console.json:
        console.result({"format": arguments.format, "converted": count})
    else:
        console.say(f"converted {counted(count, 'session')} to {arguments.format}")
    return 0


def run_compact(arguments: argparse.Namespace, console: Console) -> int:
    """Add a summary."""
    from plainmind.memory.showing_sessions import find_session

    summary = text_of_stdin() if arguments.summary == "-" else checked(arguments.summary)
    with opened(arguments) as memory:
        session = find_session(memory.sessions, arguments.name)
        added = session.compact(summary, keep=arguments.keep)
    if console.json:
        console.result({"key": session.key, "id": session.id, "entry": added})
    else:
        console.say(f"compacted {console.shown(session.key or session.id)}")
    return 0
