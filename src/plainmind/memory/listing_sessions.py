"""Conversations as a list to choose from: when something was last said in each, and no secret in its title."""

from __future__ import annotations

import os
from itertools import islice

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.memory.showing_sessions import title_of, without_secrets
from plainmind.sessions.entries import Entry, Transcript, time_of
from plainmind.sessions.removing import ARCHIVED
from plainmind.sessions.store import SessionStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.redaction.engine import Redactor

_LOOKED_AT = 50  # entries, from the end: behind the last message there is seldom more than a change of model


@value
class Listed:
    """One conversation of the list."""

    name: str  # what every other command takes: its key, or the name of an archive
    key: str  # "" where nobody knows it any more
    id: str
    path: str
    format: str
    said_ms: int  # when something was last said; when the file was written, where no message has a time
    size_bytes: int
    entry: Entry  # of the registry, as a copy without secrets
    title: str  # without secrets too


def listed_sessions(store: SessionStore, redactor: Redactor) -> list[Listed]:
    """The conversations, the one in which something was said last first."""
    clean = without_secrets(redactor)
    rows = []
    for row in store.list():
        entry = clean(row.entry)
        said_ms = _last_said(store.transcript_at(row.path)) or row.updated_ms
        rows.append(
            Listed(
                row.key,
                row.key,
                row.id,
                row.path,
                row.format,
                said_ms,
                row.size_bytes,
                entry,
                title_of(entry),
            )
        )
    return _latest_first(rows)


def listed_archives(store: SessionStore, redactor: Redactor) -> list[Listed]:
    """The archives, the one in which something was said last first, with the keys that they had."""
    clean = without_secrets(redactor)
    rows = []
    for name in store.archives():
        transcript = store.transcript_at(os.path.join(store.folder, name))
        try:
            status = os.stat(transcript.path)
        except FileNotFoundError:
            continue  # deleted a moment ago
        known = _registered(transcript)
        said_ms = _last_said(transcript) or status.st_mtime_ns // 1_000_000
        key, entry = known.get("sessionKey"), known.get("entry")
        cleaned = clean(entry) if isinstance(entry, dict) else {}
        rows.append(
            Listed(
                name,
                key if isinstance(key, str) else "",
                os.path.basename(name).partition(".json")[0],
                transcript.path,
                transcript.format,
                said_ms,
                status.st_size,
                cleaned,
                title_of(cleaned),
            )
        )
    return _latest_first(rows)


def _registered(transcript: Transcript) -> Entry:
    """What the registry knew of an archive: it was written down as its last line; else the first one has the key."""
    try:
        for placed in islice(transcript.backwards(), _LOOKED_AT):
            if placed.entry is not None and placed.entry.get("customType") == ARCHIVED:
                data = placed.entry.get("data")
                return data if isinstance(data, dict) else {}
        return transcript.header() or {}
    except PlainmindError:
        return {}  # it is listed all the same, and whoever opens it is told


def _latest_first(rows: list[Listed]) -> list[Listed]:
    return sorted(rows, key=lambda row: (-row.said_ms, row.name))


def _last_said(transcript: Transcript) -> int | None:
    """The time of the last message, by its own words: copying a file, or touching it, says nothing new."""
    try:
        for placed in islice(transcript.backwards(), _LOOKED_AT):
            if placed.entry is not None and placed.entry.get("type") == "message":
                return time_of(placed.entry)
    except PlainmindError:
        return None
    return None
