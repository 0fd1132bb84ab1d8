"""`sessions`: list, show and search conversations, and the way to everything else that is done with them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from plainmind.cli.console import Console
from plainmind.cli.opening import opened
from plainmind.cli.options import commands_below, describe, whole_number
from plainmind.cli.wording import size_in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.listing_sessions import Listed
    from plainmind.memory.showing_sessions import Shown

NAME_HELP = "its key, its id, or the beginning of one"


def add_sessions(parser: argparse.ArgumentParser) -> None:
    """Say what `sessions` takes."""
    describe(
        parser,
        """\
Look at conversations and change them. Without a word more, lists them.

They are kept in ~/.plainmind/agents/main/sessions (`sessions.path` moves it), one file each, as JSON lines.""",
        examples=(
            "plainmind sessions list",
            'plainmind sessions search "what did we say about the hull?"',
            "plainmind sessions show claude-code:5f0c",
        ),
        run=run_list,
    )
    add = commands_below(parser)

    listing = add("list", "list sessions, the latest first", "plainmind sessions list -n 20", run_list)
    listing.add_argument("-n", dest="most", metavar="N", type=whole_number(1), help="at most N")
    listing.add_argument("--archived", action="store_true", help="list the archives instead")
    showing = add(
        "show",
        "show what was said, with the lines that a search cites",
        "plainmind sessions show agent:main:main -n 20",
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
    from plainmind.cli.sessions_changing import add_changes
    from plainmind.cli.sessions_exporting import add_session_export

    add_session_export(add)
    add_changes(add)


def _add_search(add: Callable[..., argparse.ArgumentParser]) -> None:
    from plainmind.cli.searching import add_search

    text = "find what was said, by meaning and by word"
    example = 'plainmind sessions search "which wood for the hull?"'
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
    from plainmind.cli.searching import run_search

    arguments.settings = {"sources": "memory,sessions", **arguments.settings}
    return run_search(arguments, console)


def run_list(arguments: argparse.Namespace, console: Console) -> int:
    """Print one line a session."""
    from plainmind.memory.listing_sessions import listed_archives, listed_sessions

    is_of_archives = getattr(arguments, "archived", False)
    with opened(arguments) as memory:
        store = memory.sessions
        listed = listed_archives if is_of_archives else listed_sessions
        rows = listed(store, memory.redactor())[: getattr(arguments, "most", None)]
    if console.json:
        named = "archives" if is_of_archives else "sessions"
        console.result({"folder": store.folder, named: [_row_as_json(row) for row in rows]})
        return 0
    for row in rows:
        _print_row(row, console)
    if not rows and is_of_archives:
        console.note("nothing was archived")
    elif not rows:
        console.note(f"there are no sessions in {store.folder} yet")
        console.hint(
            "bring some: plainmind import claude-code (or openclaw, codex, messages); `plainmind chat` begins one"
        )
    return 0


def _print_row(row: Listed, console: Console) -> None:
    if console.quiet:
        console.answer(console.shown(row.name))
        return
    when = console.styled(_minute(row.said_ms), "dim")
    name = console.styled(console.shown(row.name), "path")
    key = "" if row.key == row.name else f"{row.key}  "
    more = f"{console.shown(key)}{console.shown(' '.join(row.title.split()))}"
    console.answer(f"{when}  {size_in_words(row.size_bytes):>9}  {name}  {more}".rstrip())


def run_show(arguments: argparse.Namespace, console: Console) -> int:
    """Print a conversation."""
    from plainmind.memory.showing_sessions import (
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


def _row_as_json(row: Listed) -> dict[str, Any]:
    named = {"key": row.key} if row.key == row.name else {"name": row.name, "key": row.key or None}
    facts = {
        **named,
        "id": row.id,
        "path": row.path,
        "format": row.format,
        "updatedAt": row.said_ms,
        "bytes": row.size_bytes,
    }
    return {**facts, "entry": row.entry} if row.entry else facts


def _minute(milliseconds: int) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M}"
