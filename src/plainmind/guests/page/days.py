"""Time: what there was on each day, what was said in conversations, and what a session begins with."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, date, datetime
from itertools import islice
from threading import Lock

from plainmind.agent.recalls import lines_of_start
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.model import sha256_bytes, split_lines
from plainmind.guests.page import requests, shapes
from plainmind.guests.page.call import Call, Reply, page_of
from plainmind.guests.page.notes import version_row
from plainmind.guests.page.parts import recall_row
from plainmind.notes.workspace import day_of, decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plainmind.files.history import Version
    from plainmind.memory.session_pages import Listed
    from plainmind.notes.discovery import FoundFile


class LineCounts:
    """How many lines the dated notes have; only those that changed are counted again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, tuple[tuple[int, int], int]] = {}

    def of(self, call: Call, found: FoundFile) -> int:
        """How many lines of a file say something."""
        stamp = (found.mtime_ns, found.size)
        with self._lock:
            known = self._known.get(found.path)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            lines = split_lines(call.memory.text_of(found))
        except PlainmindError:
            return 0  # it cannot be read; the list of files says why
        count = sum(bool(line.strip()) and not line.startswith("#") for line in lines)
        with self._lock:
            self._known[found.path] = (stamp, count)
        return count


def _day(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise PlainmindError(f"`{text[:40]}` is no day", hint="write it as 2026-11-16") from error


def _is_change(version: Version) -> bool:
    return not version.operation.startswith("before ")


def list_days(call: Call) -> Reply:
    """How much there was on each day."""
    asked: requests.DaysQuery = call.query
    first, last = _day(asked.from_), _day(asked.to)
    notes, lines = Counter[str](), Counter[str]()
    for found in call.files():
        day = day_of(found.path)
        if day is not None and (first or day) <= day <= (last or day):
            notes[day] += 1
            lines[day] += call.keeper.line_counts.of(call, found)
    sessions, changes, recalls = Counter[str](), Counter[str](), Counter[str]()
    if call.caller.is_owner:
        sessions.update(_day_of_session(call, row) for row in call.keeper.session_rows(call))
        changes.update(_local_day(call, one.at) for one in call.memory.history() if _is_change(one))
        recalls.update(call.memory.recalls.days())
    counted = {*notes, *sessions, *changes, *recalls}
    shown = sorted(day for day in counted if (first or day) <= day <= (last or day))
    rows = (
        shapes.Day(day, notes[day], lines[day], sessions[day], changes[day], recalls[day]) for day in shown
    )
    every = sorted(counted)
    return Reply(shapes.Days(tuple(rows), every[0] if every else None, every[-1] if every else None))


def read_day(call: Call) -> Reply:
    """All that there is of one day."""
    day = _day(call.parameters["day"])
    assert day is not None
    notes = [_day_note(call, found) for found in call.files() if day_of(found.path) == day]
    sessions: list[Listed] = []
    changes: list[Version] = []
    recalls: tuple[shapes.RecallRow, ...] = ()
    if call.caller.is_owner:
        sessions = [row for row in call.keeper.session_rows(call) if _day_of_session(call, row) == day]
        changes = [
            one for one in call.memory.history() if _is_change(one) and _local_day(call, one.at) == day
        ]
        page = call.memory.recalls.page(200, day=day)
        recalls = tuple(map(recall_row, page.recalls))
    return Reply(
        shapes.OneDay(
            day,
            tuple(notes),
            tuple(session_row(call, row, is_archive=False) for row in sessions),
            tuple(map(version_row, changes[:500])),
            recalls,
        )
    )


def _day_note(call: Call, found: FoundFile) -> shapes.DayNote:
    data, _ = found.root.read(found.relative, max_bytes=call.memory.notes.workspace.max_file_bytes)
    text = call.shown(decode(data))
    etag = sha256_bytes(data)
    return shapes.DayNote(
        found.path, day_of(found.path), found.size, found.changed_at, found.scope, text, etag
    )


def _local_day(call: Call, at: str) -> str:
    return datetime.fromisoformat(at).astimezone(call.memory.now().tzinfo).date().isoformat()


def _day_of_session(call: Call, row: Listed) -> str:
    return _moment(row.said_ms).astimezone(call.memory.now().tzinfo).date().isoformat()


def _moment(milliseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)  # a time that no calendar has


# --- conversations ---


def list_conversations(call: Call) -> Reply:
    """List conversations, the one in which something was said last first."""
    asked: requests.SessionsQuery = call.query
    call.require_owner("conversations are their owner's")
    rows = _archive_rows(call) if asked.archived else call.keeper.session_rows(call)
    shown, following = page_of(rows, asked.limit, asked.cursor, lambda row: row.name, asked.offset)
    listed = tuple(session_row(call, row, is_archive=asked.archived) for row in shown)
    return Reply(shapes.Sessions(listed, len(rows), following))


def _archive_rows(call: Call) -> Sequence[Listed]:
    from plainmind.memory.session_pages import list_archives

    if not os.path.isdir(call.memory.conversations.folder):
        return []
    return list_archives(call.memory.sessions, call.memory.redactor())


def session_row(call: Call, row: Listed, *, is_archive: bool) -> shapes.SessionRow:
    """A conversation as lists show it."""
    folder = call.memory.conversations.folder
    return shapes.SessionRow(
        row.name,
        row.key,
        row.id,
        row.title,
        _moment(row.said_ms).isoformat(timespec="seconds"),
        row.size_bytes,
        row.format,
        f"sessions/{os.path.relpath(row.path, folder)}",
        is_archive,
    )


def read_conversation(call: Call) -> Reply:
    """Read what was said, from a line on."""
    from plainmind.memory.session_pages import cited_path, entry_of, find_session, line_cited, shown, title_of

    asked: requests.SpokenQuery = call.query
    call.require_owner("conversations are their owner's")
    name = call.parameters["name"]
    if not os.path.isdir(call.memory.conversations.folder):
        raise NotFound(f"there is no conversation `{name[:80]}`", hint="there are none yet")
    store, redactor = call.memory.sessions, call.memory.redactor()
    session = find_session(store, name)
    first = asked.from_ if asked.from_ > 1 else line_cited(name) or 1
    rows = (row for row in shown(session, everything=asked.all) if row.line >= first)
    taken = list(islice(rows, asked.limit + 1))
    following = taken.pop().line if len(taken) > asked.limit else None
    lines = tuple(
        shapes.SpokenLine(
            row.line,
            str(row.entry.get("id")) if row.entry.get("id") is not None else None,
            row.speaker,
            redactor.without_secrets(row.text),
            None if row.time_ms is None else _moment(row.time_ms).isoformat(timespec="seconds"),
        )
        for row in taken
    )
    return Reply(
        shapes.Spoken(
            session.key or os.path.relpath(session.path, store.folder),
            session.key or "",
            session.id,
            redactor.without_secrets(title_of(entry_of(session))),
            cited_path(session, store.folder),
            session.format,
            lines,
            following,
        )
    )


def read_start(call: Call) -> Reply:
    """What a session begins with, against its budget."""
    from plainmind.text.chunking import estimated_tokens

    recall = None if call.caller.is_page else call.scoped.begin_recall("start", asker=call.asker)
    begun = call.scoped.start_context()
    if recall is not None:
        recall.end(lines_of_start(begun), begun.text)
    most = call.scoped.limits.max_start_chars
    tokens = estimated_tokens(begun.text) if begun.text else 0
    return Reply(shapes.StartContext(begun.text, len(begun.text), most, tokens, begun.paths, begun.truncated))
