"""`sessions` and `recalls`: what was said, and what agents asked of the memory, were given or were not."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

from plainmind.base.errors import PlainmindError, shell_word
from plainmind.cli.console import Console, fitting, plural, size_in_words
from plainmind.cli.options import (
    commands_below,
    describe,
    open_memory,
    text_of_argument,
    text_of_stdin,
    whole_number,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from plainmind.agent.recalls import Recall, RecalledLines
    from plainmind.memory.memory import Memory
    from plainmind.memory.session_pages import Clean, Listed, Shown
    from plainmind.sessions.entries import Entry
    from plainmind.sessions.store import Session

    Add: TypeAlias = Callable[[str, str, str, Callable[..., int]], argparse.ArgumentParser]


_MOST_COLUMNS = 200  # of a line that was recalled
_NAME_HELP = "its key, its id, or the beginning of one"


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
    parser.set_defaults(most=None, archived=False)
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
    showing.add_argument("name", metavar="NAME", help=f"{_NAME_HELP}; or what a search cites")
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
    _add_export(add)
    _add_changes(add)


def _add_search(add: Add) -> None:
    from plainmind.cli.search import add_search, run_search

    text = "find what was said, by meaning and by word"
    example = 'plainmind sessions search "which wood for the hull?"'
    searching = add("search", text, example, run_search)
    add_search(searching)
    describe(
        searching,
        "Find what was said, by meaning and by word. Conversations are indexed for it, if they were not.",
        examples=(example,),
        run=run_search,
    )
    searching.set_defaults(source="sessions")


def run_list(arguments: argparse.Namespace, console: Console) -> int:
    """Print one line a session."""
    from plainmind.memory.session_pages import list_archives, list_sessions

    with open_memory(arguments) as memory:
        store = memory.sessions
        if arguments.archived:
            rows = list_archives(store, memory.redactor())[: arguments.most]
        else:
            rows = list_sessions(store, memory.redactor())[: arguments.most]
    if console.json:
        named = "archives" if arguments.archived else "sessions"
        console.result({"folder": store.folder, named: [_row_as_json(row) for row in rows]})
        return 0
    for row in rows:
        _print_row(row, console)
    if not rows and arguments.archived:
        console.note("nothing was archived")
    elif not rows:
        console.note(f"there are no sessions in {store.folder} yet")
        console.hint(
            "bring some: plainmind import claude-code (or openclaw, codex, messages); `plainmind chat` begins one"
        )
    return 0


def _print_row(row: Listed, console: Console) -> None:
    if console.quiet:
        console.answer(console.printable(row.name))
        return
    when = console.style(_minute(row.said_ms), "dim")
    name = console.style(console.printable(row.name), "path")
    key = "" if row.key == row.name else f"{row.key}  "
    more = f"{console.printable(key)}{console.printable(' '.join(row.title.split()))}"
    console.answer(f"{when}  {size_in_words(row.size_bytes):>9}  {name}  {more}".rstrip())


def run_show(arguments: argparse.Namespace, console: Console) -> int:
    """Print a conversation."""
    from plainmind.memory.session_pages import (
        cited_path,
        entry_of,
        find_session,
        line_cited,
        shown,
        title_of,
    )

    with open_memory(arguments) as memory:
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
        console.say(console.style(f"{console.printable(session.key or session.id)}", "path"))
        console.say(console.style(f"{cited}{'  ' if title else ''}{console.printable(title)}", "dim"))
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
    console.answer(f"{console.style(row.speaker, 'bold')}{console.style(f'  L{row.line}{when}', 'dim')}")
    for line in console.printable(row.text).strip("\n").split("\n"):
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
    from plainmind.sessions.transcripts import local_minute

    return local_minute(milliseconds, None) or "at no time"


def _add_changes(add: Add) -> None:
    """Say what the commands take that change sessions."""
    parser = add(
        "archive",
        "put a session away: its key is free again, and it is still searched",
        "plainmind sessions archive agent:main:main",
        run_archive,
    )
    parser.add_argument("name", metavar="NAME", help=_NAME_HELP)
    parser = add(
        "delete",
        "remove sessions or archives for good, from disk and from every index; asks first",
        "plainmind sessions delete claude-code:5f0c",
        run_delete,
    )
    parser.add_argument("names", metavar="NAME", nargs="+", help=f"{_NAME_HELP}; or an archive")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser = add(
        "fork",
        "begin a session that goes on where another one is now, or was",
        "plainmind sessions fork agent:main:main agent:main:try",
        run_fork,
    )
    parser.add_argument("name", metavar="NAME", help=_NAME_HELP)
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
    parser.add_argument("name", metavar="NAME", nargs="?", help=f"{_NAME_HELP} (all)")
    parser = add(
        "compact",
        "let a summary stand for what was said so far; the transcript keeps everything",
        'plainmind sessions compact agent:main:main --summary "They chose larch." --keep 4',
        run_compact,
    )
    parser.add_argument("name", metavar="NAME", help=_NAME_HELP)
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
    from plainmind.memory.session_pages import find_session

    with open_memory(arguments) as memory:
        session = find_session(memory.sessions, arguments.name)
        path = memory.sessions.archive(session.key or session.id)
    if console.json:
        console.result({"key": session.key, "id": session.id, "path": path})
    else:
        console.say(f"archived {console.printable(session.key or session.id)} as {path}")
    return 0


def run_delete(arguments: argparse.Namespace, console: Console) -> int:
    """Ask, then remove them everywhere."""
    from plainmind.memory.session_pages import entry_of, find_session, title_of

    removed: list[dict[str, Any]] = []
    with open_memory(arguments) as memory:
        # All of them are found before the first goes.
        sessions = {
            session.path: session
            for session in (find_session(memory.sessions, one) for one in arguments.names)
        }
        for session in sessions.values():
            # An archive has no key, and is deleted by its own name.
            name = session.key or os.path.relpath(session.path, memory.sessions.folder)
            title = memory.redactor().without_secrets(title_of(entry_of(session)))
            shown = f"{name} ({title})" if title else name
            if not arguments.yes and not console.may_remove(shown, console.printable(shown)):
                console.say("it was not removed" if len(sessions) > 1 else "nothing was removed")
                continue
            cited = memory.delete_session(name)
            removed.append({"key": session.key, "id": session.id, "cited": list(cited)})
            if not console.json:
                console.say(f"removed {console.printable(shown)}")
    if console.json:
        console.result(removed[0] if len(sessions) == 1 else {"removed": removed})
    return 0 if len(removed) == len(sessions) else 1


def run_fork(arguments: argparse.Namespace, console: Console) -> int:
    """Begin a session with the branch of another."""
    from plainmind.memory.session_pages import find_session

    with open_memory(arguments) as memory:
        origin = find_session(memory.sessions, arguments.name)
        made = memory.sessions.fork(origin, text_of_argument(arguments.key), at=arguments.at)
    if console.json:
        console.result({"key": made.key, "id": made.id, "path": made.path})
    else:
        console.say(f"began {console.printable(str(made.key))} ({made.id})")
    return 0


def run_convert(arguments: argparse.Namespace, console: Console) -> int:
    """Write sessions in the other format."""
    from plainmind.memory.session_pages import find_session

    with open_memory(arguments) as memory:
        name = None
        if arguments.name is not None:
            session = find_session(memory.sessions, arguments.name)
            name = session.key or session.id
        count = memory.sessions.convert(arguments.format, name)
    if console.json:
        console.result({"format": arguments.format, "converted": count})
    else:
        console.say(f"converted {plural(count, 'session')} to {arguments.format}")
    return 0


def run_compact(arguments: argparse.Namespace, console: Console) -> int:
    """Add a summary."""
    from plainmind.memory.session_pages import find_session

    summary = text_of_stdin() if arguments.summary == "-" else text_of_argument(arguments.summary)
    with open_memory(arguments) as memory:
        session = find_session(memory.sessions, arguments.name)
        added = session.compact(summary, keep=arguments.keep)
    if console.json:
        console.result({"key": session.key, "id": session.id, "entry": added})
    else:
        console.say(f"compacted {console.printable(session.key or session.id)}")
    return 0


def _add_export(add: Add) -> None:
    """Say what `sessions export` takes."""
    parser = add(
        "export",
        "write a session as Markdown, as messages or as JSON lines, with secrets hidden",
        "plainmind sessions export agent:main:main --format markdown > talk.md",
        run_export_session,
    )
    parser.add_argument("name", metavar="NAME", help=_NAME_HELP)
    parser.add_argument(
        "--format", choices=("jsonl", "markdown", "messages"), default="jsonl", help="(jsonl)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (stdout)")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--raw", action="store_true", help="leave secrets as they are")


def run_export_session(arguments: argparse.Namespace, console: Console) -> int:
    """Write one session."""
    from plainmind.cli.notes import new_file
    from plainmind.memory.session_pages import find_session, without_secrets

    with open_memory(arguments) as memory:
        session = find_session(memory.sessions, arguments.name)
        clean: Clean = _as_it_is
        if not arguments.raw:
            clean = without_secrets(memory.redactor())
        pieces = _pieces(session, arguments.format, clean)
        if arguments.output is None:
            sys.stdout.flush()
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return 0
        path = os.path.abspath(arguments.output)
        with new_file(path, overwrite=arguments.force) as file:
            file.writelines(pieces)
    size = os.path.getsize(path)
    if console.json:
        console.result({"id": session.id, "output": path, "format": arguments.format, "bytes": size})
    else:
        console.say(f"wrote {arguments.output} ({size_in_words(size)})")
    return 0


def _as_it_is(entry: Entry) -> Entry:
    return entry


def _pieces(session: Session, form: str, clean: Clean) -> Iterator[bytes]:
    from plainmind.memory.session_pages import as_lines, as_markdown, as_messages, entry_of, title_of

    if form == "markdown":
        return as_markdown(session, clean, title_of(clean(entry_of(session))))
    return as_messages(session, clean) if form == "messages" else as_lines(session, clean)


_USUAL_MOST = 20
_KINDS = {"read": "(read)", "start": "(began a session)"}


def add_recalls(parser: argparse.ArgumentParser) -> None:
    """Say what `recalls` takes."""
    describe(
        parser,
        """\
Show what agents asked this memory and which lines they were given, through MCP, hooks, chat and other programs. Without
a word more, lists the latest. A search that you type yourself is not among them.

Kept on this machine alone, in ~/.plainmind/state, for 90 days (`recalls.days`); secrets in questions are hidden, and of
the lines only their place is kept. `forget` takes out what concerns it. `recalls.enabled` switches it off.""",
        examples=(
            "plainmind recalls",
            "plainmind recalls show 01KA5XB2",
            "plainmind recalls judge 01KA5XB2 outdated --line 2",
        ),
        run=run_list_recalls,
    )
    parser.set_defaults(most=_USUAL_MOST, day=None, since=None, until=None, cursor=None)
    add = commands_below(parser)

    listing = add(
        "list",
        "list recalls, the latest first",
        "plainmind recalls list --since 'last week'",
        run_list_recalls,
    )
    listing.add_argument(
        "-n", dest="most", metavar="N", type=whole_number(1), default=_USUAL_MOST, help="at most N (20)"
    )
    listing.add_argument("--day", metavar="DAY", help="only those of this day: 2026-11-16, yesterday")
    listing.add_argument(
        "--since", metavar="DAY", help="only from this day on: 2026-11-16, 2026-11, yesterday, last week"
    )
    listing.add_argument("--until", metavar="DAY", help="only up to this day")
    listing.add_argument(
        "--after", dest="cursor", metavar="CURSOR", help="go on behind what was listed before"
    )
    showing = add(
        "show", "show one recall with its lines", "plainmind recalls show 01KA5XB2", run_show_recall
    )
    showing.add_argument("id", metavar="ID", help="its id, or the beginning of it")
    judging = add(
        "judge",
        "say what a line was worth: later searches heed it",
        "plainmind recalls judge 01KA5XB2 useful",
        run_judge_recall,
    )
    judging.add_argument("id", metavar="ID", help="its id, or the beginning of it")
    judging.add_argument(
        "verdict",
        metavar="VERDICT",
        choices=("useful", "wrong", "outdated", "never-again", "none"),
        help="useful, wrong, outdated, never-again; none takes it back",
    )
    judging.add_argument(
        "--line",
        metavar="N",
        type=whole_number(1),
        default=1,
        help="which of its lines, as `show` counts (1)",
    )
    add("clear", "remove all recalls; verdicts stay", "plainmind recalls clear", run_clear_recalls)


def run_list_recalls(arguments: argparse.Namespace, console: Console) -> int:
    """Print one line a recall."""
    with open_memory(arguments) as memory:
        log = memory.recalls
        wanted = {"day": arguments.day, "since": arguments.since, "until": arguments.until}
        page = log.page(arguments.most, cursor=arguments.cursor, **wanted)
    again = "".join(f" --{name} {shell_word(words)}" for name, words in wanted.items() if words)
    if console.json:
        console.result(
            {"recalls": [recall_as_json(recall) for recall in page.recalls], "cursor": page.cursor}
        )
        return 0
    for recall in page.recalls:
        _print_recall_row(recall, console)
    if not page.recalls and again and log.is_on:
        console.note("no agent has asked anything then")
    elif not page.recalls:
        console.note("no agent has asked anything yet" if log.is_on else "recalls are not written down")
        console.hint(
            "`plainmind connect` lets an agent use this memory"
            if log.is_on
            else "`plainmind config set recalls.enabled true` switches it on"
        )
    elif page.cursor is not None:
        console.hint(f"there are more: plainmind recalls list{again} --after {page.cursor}")
    return 0


def run_show_recall(arguments: argparse.Namespace, console: Console) -> int:
    """Print one recall."""
    with open_memory(arguments) as memory:
        recall = memory.recalls.get(arguments.id)
        _print_recall(recall, console, partial(_words_recalled, memory))
    return 0


def run_judge_recall(arguments: argparse.Namespace, console: Console) -> int:
    """Set a verdict, and print the recall as it is now."""
    with open_memory(arguments) as memory:
        verdict = "" if arguments.verdict == "none" else arguments.verdict
        recall = memory.recalls.judge(arguments.id, verdict, line=arguments.line)
        _print_recall(recall, console, partial(_words_recalled, memory))
    return 0


def _words_recalled(memory: Memory, one: RecalledLines) -> str:
    """What the line says now that answered best; only its place and its mark were kept."""
    from plainmind.text.note_format import mark_of, words_of

    number = one.best_line or one.start_line
    try:
        line = memory.get(one.path, first_line=number, line_count=1).text.split("\n")[0] if number else ""
    except PlainmindError:  # forgotten, moved or deleted since
        return "(not there any more)"
    has_changed = one.mark and mark_of(line) != one.mark and not one.path.startswith("sessions/")
    return f"{words_of(line)}  (changed since)" if has_changed else words_of(line)


def run_clear_recalls(arguments: argparse.Namespace, console: Console) -> int:
    """Remove all recalls."""
    with open_memory(arguments) as memory:
        days = memory.recalls.clear()
    if console.json:
        console.result({"days": days})
    else:
        console.say(f"removed the recalls of {plural(days, 'day')}")
    return 0


def recall_as_json(recall: Recall) -> dict[str, Any]:
    """A recall for programs."""
    return {
        "id": recall.id,
        "at": recall.at,
        "kind": recall.kind,
        "question": recall.question,
        "surface": recall.surface,
        "host": recall.host,
        "session": recall.session,
        "agent": recall.agent,
        "scope": recall.scope,
        "tokens": recall.tokens,
        "milliseconds": recall.milliseconds,
        "lines": [
            {
                "path": one.path,
                "startLine": one.start_line,
                "endLine": one.end_line,
                "bestLine": one.best_line,
                "score": one.score,
                "given": one.is_given,
                "reason": one.reason,
                "verdict": one.verdict,
            }
            for one in recall.lines
        ],
    }


def _print_recall_row(recall: Recall, console: Console) -> None:
    if console.quiet:
        console.answer(recall.id)
        return
    when = console.style(recall.at[:16].replace("T", " "), "dim")
    who = console.style(console.printable(recall.host or recall.surface), "path")
    more = console.style(f"{_counts_of_recall(recall)}  {recall.id}", "dim")
    console.answer(f"{when}  {who}  {console.printable(_question_of_recall(recall))}  {more}")


def _print_recall(recall: Recall, console: Console, words_of: Callable[[RecalledLines], str]) -> None:
    if console.json:
        console.result(recall_as_json(recall))
        return
    who = "  ".join(filter(None, (recall.surface, recall.host, recall.session)))
    console.say(console.style(console.printable(_question_of_recall(recall)), "bold"))
    spent = f"{recall.tokens} tokens  {recall.milliseconds:g} ms"
    console.say(
        console.style(f"{recall.at.replace('T', ' ')}  {console.printable(who)}  {spent}  {recall.id}", "dim")
    )
    for number, one in enumerate(recall.lines, 1):
        console.answer(_line_of_recall(number, one, console))
        if words := words_of(one) if one.path else "":
            console.answer(f"{'':11}{fitting(console.printable(words), _MOST_COLUMNS)}")
    if not recall.lines:
        console.note("nothing was found")


def _line_of_recall(number: int, one: RecalledLines, console: Console) -> str:
    place = console.style(console.printable(_place_of_recall(one)), "path")
    score = "   " if one.score is None else f"{one.score:.2f}"
    outcome = console.style(f"not given: {one.reason}" if one.reason else "given", "dim")
    verdict = f"  {console.style(one.verdict, 'yellow')}" if one.verdict else ""
    return f"{number:>3}  {score}  {place}  {outcome}{verdict}"


def _place_of_recall(one: RecalledLines) -> str:
    from plainmind.base.model import CitedLines

    return str(CitedLines(one.path, one.start_line, one.end_line)) if one.start_line else one.path


def _question_of_recall(recall: Recall) -> str:
    return _KINDS.get(recall.kind) or f"“{recall.question}”"


def _counts_of_recall(recall: Recall) -> str:
    withheld = len(recall.withheld)
    others = f", {withheld} not" if withheld else ""
    return f"{len(recall.given)} given{others}  {recall.tokens} tokens  {recall.milliseconds:g} ms"
