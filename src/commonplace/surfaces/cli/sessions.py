"""`sessions`: list, show and search conversations, and the way to everything else that is done with them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from commonplace.surfaces.cli.console import Console
from commonplace.surfaces.cli.opening import opened
from commonplace.surfaces.cli.options import commands_below, describe, whole_number
from commonplace.surfaces.cli.wording import size_in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from commonplace.memory.showing_sessions import Shown
    from commonplace.sessions.store import SessionInfo

NAME_HELP = "its key, its id, or the beginning of one"


def add_sessions(parser: argparse.ArgumentParser) -> None:
    """Say what `sessions` takes."""
    describe(
        parser,
        """\
Look at conversations and change them. Without a word more, lists them.

They are kept in ~/.commonplace/agents/main/sessions (`sessions.path` moves it), one file each, as JSON lines.""",
        examples=(
            "commonplace sessions list",
            'commonplace sessions search "what did we say about the hull?"',
            "commonplace sessions show claude-code:5f0c",
        ),
        run=run_list,
    )
    add = commands_below(parser)

    listing = add("list", "list sessions, the latest first", "commonplace sessions list -n 20", run_list)
    listing.add_argument("-n", dest="most", metavar="N", type=whole_number(1), help="at most N")
    listing.add_argument("--archived", action="store_true", help="list the archives instead")
    showing = add(
        "show",
        "show what was said, with the lines that a search cites",
        "commonplace sessions show agent:main:main -n 20",
        run_show,
    )
    showing.add_argument("name", metavar="NAME", help=f"{NAME_HELP}; or what a search cites")
    showing.add_argument("-n", dest="most", metavar="N", type=whole_number(1), help="only the last N")
    showing.add_argument(
        "--from",
        dest="first_line",
        metavar="LINE",
        type=whole_number(1),
        help="from this line on (1, or the line of a citation)",
    )
    showing.add_argument(
        "--all", dest="everything", action="store_true", help="tools, thoughts and changes too"
    )
    _add_search(add)
    from commonplace.surfaces.cli.sessions_changing import add_changes
    from commonplace.surfaces.cli.sessions_exporting import add_session_export

    add_session_export(add)
    add_changes(add)


def _add_search(add: Callable[..., argparse.ArgumentParser]) -> None:
    from commonplace.surfaces.cli.searching import add_search

    text = "find what was said, by meaning and by word"
    example = 'commonplace sessions search "which wood for the hull?"'
    searching = add("search", text, example, run_search_sessions)
    add_search(searching)
    describe(
        searching,
        "Find what was said, by meaning and by word. Conversations are indexed for it, if they were not.",
        examples=(example,),
        run=run_search_sessions,
    )
    searching.set_defaults(source="sessions")


def run_search_sessions(arguments: argparse.Namespace, console: Console) -> int:
    """Search, with conversations among the sources whatever the settings say."""
    from commonplace.surfaces.cli.searching import run_search

    arguments.settings = {"sources": "memory,sessions", **arguments.settings}
    return run_search(arguments, console)


def run_list(arguments: argparse.Namespace, console: Console) -> int:
    """Print one line a session."""
    with opened(arguments) as memory:
        if getattr(arguments, "archived", False):
            return _list_archives(memory.sessions.archives(), console)
        rows = memory.sessions.list()[: getattr(arguments, "most", None)]
        folder = memory.sessions.folder
    if console.json:
        console.result({"folder": folder, "sessions": [_row_as_json(row) for row in rows]})
        return 0
    from commonplace.memory.showing_sessions import title_of

    for row in rows:
        if console.quiet:
            console.answer(console.shown(row.key))
            continue
        when = console.styled(_minute(row.updated_ms), "dim")
        title = console.shown(" ".join(title_of(row.entry).split()))
        key = console.styled(console.shown(row.key), "path")
        console.answer(f"{when}  {size_in_words(row.size_bytes):>9}  {key}  {title}".rstrip())
    if not rows:
        console.note(f"there are no sessions in {folder} yet")
        console.hint(
            "bring some: commonplace import claude-code (or openclaw, codex, messages); `commonplace chat` begins one"
        )
    return 0


def _list_archives(names: tuple[str, ...], console: Console) -> int:
    if console.json:
        console.result({"archives": list(names)})
        return 0
    for name in names:
        console.answer(console.shown(name))
    if not names:
        console.note("nothing was archived")
    return 0


def run_show(arguments: argparse.Namespace, console: Console) -> int:
    """Print a conversation."""
    from commonplace.memory.showing_sessions import (
        cited_path,
        entry_of,
        find_session,
        line_cited,
        shown,
        title_of,
    )

    with opened(arguments) as memory:
        session = find_session(memory.sessions, arguments.name)
        entry = entry_of(session)
        first_line = arguments.first_line or line_cited(arguments.name) or 1
        rows: Iterator[Shown] = (
            row for row in shown(session, everything=arguments.everything) if row.line >= first_line
        )
        if arguments.most is not None:
            from collections import deque

            rows = iter(deque(rows, maxlen=arguments.most))
        cited = cited_path(session, memory.sessions.folder)
        if console.json:
            fields = {"key": session.key, "id": session.id, "path": session.path, "format": session.format}
            lines = [_line_as_json(row) for row in rows]
            console.result({**fields, "citation": cited, "entry": entry, "lines": lines})
            return 0
        title = title_of(entry)
        console.say(console.styled(f"{console.shown(session.key or session.id)}", "path"))
        console.say(console.styled(f"{cited}{'  ' if title else ''}{console.shown(title)}", "dim"))
        count = 0
        for row in rows:
            count += 1
            _print_line(row, console)
    if not count:
        console.note("nothing was said in it")
    return 0


def _print_line(row: Shown, console: Console) -> None:
    when = f"  {_minute(row.time_ms)}" if row.time_ms else ""
    console.answer()
    console.answer(f"{console.styled(row.speaker, 'bold')}{console.styled(f'  L{row.line}{when}', 'dim')}")
    for line in console.shown(row.text).strip("\n").split("\n"):
        console.answer(f"  {line}".rstrip())


def _line_as_json(row: Shown) -> dict[str, Any]:
    entry = row.entry
    return {
        "line": row.line,
        "id": entry.get("id"),
        "speaker": row.speaker,
        "text": row.text,
        "timestamp": entry.get("timestamp"),
    }


def _row_as_json(row: SessionInfo) -> dict[str, Any]:
    return {
        "key": row.key,
        "id": row.id,
        "path": row.path,
        "format": row.format,
        "updatedAt": row.updated_ms,
        "bytes": row.size_bytes,
        "entry": row.entry,
    }


def _minute(milliseconds: int) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M}"
