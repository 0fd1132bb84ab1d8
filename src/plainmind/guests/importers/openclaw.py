"""Conversations of OpenClaw: transcripts of every version, their archives, the rows of its SQLite file (only read)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from io import BytesIO

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import sha256_bytes, sha256_text
from plainmind.base.value import value
from plainmind.files.jsonl import open_plain_file
from plainmind.files.system import SYSTEM, read_range
from plainmind.guests.importers.originals import (
    PARTLY_READABLE,
    UNREADABLE,
    About,
    CannotUnpack,
    Conversation,
    JsonlConversation,
    Original,
    ReadPiece,
    ReadPosition,
    Translate,
    first_entries,
    folders_below,
    make_id,
    open_untouched,
    unpack,
)
from plainmind.sessions.entries import Entry, entries_in
from plainmind.sessions.transcript_files import read_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import apsw


# --- transcripts as rows ---

_SESSIONS = "SELECT DISTINCT session_id FROM transcript_events ORDER BY session_id"
_EVENTS = """
    SELECT seq, event_json, NULL
      FROM transcript_events
     WHERE session_id = :session AND seq > :after
  ORDER BY seq
"""
_EVENTS_ALSO_PACKED = """
    SELECT seq, event_json, event_zstd
      FROM transcript_events
     WHERE session_id = :session AND seq > :after
  ORDER BY seq
"""
_EVENT = "SELECT event_json FROM transcript_events WHERE session_id = :session AND seq = :at"
_HEADER = "SELECT event_json FROM transcript_events WHERE session_id = :session ORDER BY seq LIMIT 1"
_NODES = "SELECT session_key, current_session_id, entry_json FROM session_nodes"
_COLUMNS = "SELECT name FROM pragma_table_info(:table)"
_BEFORE_ALL = -(1 << 62)
_MOST_ENTRY_BYTES = 1 << 20

Fields = Callable[["str | None", Entry], Entry]


def conversations_in(
    path: str, translation: Callable[[], Translate], fields: Fields
) -> Iterator[Conversation]:
    """Give the conversations of a database, each to be read before the next is asked for."""
    import apsw

    try:
        with open_untouched(path) as database:
            known = _read_registry(database)

            def about(session: str, header: Entry | None = None) -> About:
                return About(session, header or {}, fields(*known.get(session, (None, {}))))

            yield from archives_in(database, lambda: thaw(translation()), about)
            columns = {name for (name,) in database.execute(_COLUMNS, {"table": "transcript_events"})}
            if not {"session_id", "seq", "event_json"} <= columns:
                return
            sql = _EVENTS_ALSO_PACKED if "event_zstd" in columns else _EVENTS
            for (session,) in database.execute(_SESSIONS).fetchall():
                yield Rows(database, sql, about(str(session), _header(database, session)), translation)
    except apsw.Error as error:
        raise PlainmindError(
            f"{path} cannot be read: {error}",
            hint="it may be in the middle of a change; try again, or stop OpenClaw first",
        ) from error


@value
class Rows:
    """A conversation in the database."""

    database: apsw.Connection
    sql: str
    about: About
    translation: Callable[[], Translate]

    def still_has(self, place: ReadPosition) -> bool:
        """Whether the row at a place is the same."""
        if not place.tail:
            return True
        row = self.database.execute(_EVENT, {"session": self.about.id, "at": place.at}).fetchone()
        return row is not None and _tail_of(row[0]) == place.tail

    def pieces(self, after: ReadPosition) -> Iterator[ReadPiece]:
        """Read the rows behind a place, in their order."""
        translate = self.translation()
        since = {"session": self.about.id, "after": after.at if after.tail else _BEFORE_ALL}
        for seq, plain, packed in self.database.execute(self.sql, since):
            yield _piece_of_row(seq, plain, packed, translate)


def _piece_of_row(seq: int, plain: Any, packed: Any, translate: Translate) -> ReadPiece:
    place = ReadPosition(seq, seq, _tail_of(plain))
    if plain is None and packed is not None:
        try:
            data = unpack(bytes(packed), most=1 << 26)
        except CannotUnpack as error:
            return ReadPiece(seq, ReadPosition(), damage=str(error), is_curable=True)
    else:
        data = _bytes(plain)
    read = entries_in(data)
    entries = tuple(entry for found in read.entries for entry in translate(found, data, seq))
    damage = PARTLY_READABLE if read.is_damaged else None
    return ReadPiece(seq, place, entries, damage if read.entries else UNREADABLE)


def _tail_of(found: object) -> str:
    return sha256_bytes(_bytes(found))[:16]


def _bytes(found: object) -> bytes:
    if isinstance(found, str):
        return found.encode("utf-8", "surrogatepass")
    return found if isinstance(found, bytes) else b""


def _header(database: apsw.Connection, session: object) -> Entry:
    row = database.execute(_HEADER, {"session": session}).fetchone()
    found = entries_in(_bytes(row[0])).entries if row is not None else ()
    if not found or found[0].get("type") != "session":
        return {}
    return {name: kept for name, kept in found[0].items() if name not in {"type", "id"}}


def _read_registry(database: apsw.Connection) -> dict[str, tuple[str | None, Entry]]:
    columns = {name for (name,) in database.execute(_COLUMNS, {"table": "session_nodes"})}
    known: dict[str, tuple[str | None, Entry]] = {}
    if {"session_key", "current_session_id", "entry_json"} <= columns:
        for key, session, entry in database.execute(_NODES):
            data = _bytes(entry)
            found = entries_in(data).entries if len(data) < _MOST_ENTRY_BYTES else ()
            known[str(session)] = (str(key), found[0] if found else {})
    return known


# --- archives: whole transcripts in a column, and cold ones, whose lines hold rows ---

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_ARCHIVES = """
    SELECT rowid, session_id, archive_sha256, encoding = 'zstd'
      FROM session_transcript_archives
  ORDER BY session_id, created_at
"""
_ARCHIVE = "SELECT archive_blob FROM session_transcript_archives WHERE rowid = :row"
_COLD = """
    SELECT rowid, session_id, archive_sha256, 1
      FROM session_transcript_cold_archives
     WHERE storage = 'sqlite'
  ORDER BY session_id
"""
_COLD_ONE = "SELECT archive_blob FROM session_transcript_cold_archives WHERE rowid = :row"
_BY_TABLE = {
    "session_transcript_archives": (_ARCHIVES, _ARCHIVE),
    "session_transcript_cold_archives": (_COLD, _COLD_ONE),
}


def archives_in(
    database: apsw.Connection, translation: Callable[[], Translate], about: Callable[[str], About]
) -> Iterator[Archive]:
    """Give the transcripts that a database keeps as they were when they were put away."""
    tables = {name for (name,) in database.execute(_TABLES)}
    for table, (listing, one) in _BY_TABLE.items():
        if table in tables:
            for row, session, digest, is_packed in database.execute(listing).fetchall():
                yield Archive(
                    database, one, row, str(digest), bool(is_packed), about(str(session)), translation
                )


@value
class Archive:
    """A transcript in one column."""

    database: apsw.Connection
    sql: str
    row: object  # its number
    digest: str
    is_packed: bool
    about: About
    translation: Callable[[], Translate]

    @property
    def _end(self) -> ReadPosition:
        return ReadPosition(1, 0, self.digest[:16])

    def still_has(self, place: ReadPosition) -> bool:
        """Whether it is the archive that was read."""
        return place in (ReadPosition(), self._end)

    def pieces(self, after: ReadPosition) -> Iterator[ReadPiece]:
        """Unpack it and read its lines, unless it was read before."""
        if after == self._end:
            return
        found = self.database.execute(self.sql, {"row": self.row}).fetchone()
        data = found[0] if found is not None and isinstance(found[0], bytes) else b""
        try:
            plain = unpack(data) if self.is_packed else data
        except CannotUnpack as error:
            yield ReadPiece(1, ReadPosition(), damage=str(error), is_curable=True)
            return
        translate = self.translation()
        for number, line in enumerate(BytesIO(plain), 1):
            yield _piece_of_archive(line.rstrip(b"\n"), number, translate, self._end)


def _piece_of_archive(line: bytes, number: int, translate: Translate, end: ReadPosition) -> ReadPiece:
    read = entries_in(line)
    entries = tuple(entry for found in read.entries for entry in translate(found, line, number))
    damage = PARTLY_READABLE if read.entries else UNREADABLE
    return ReadPiece(number, end, entries, damage if read.is_damaged else None)


def thaw(translate: Translate) -> Translate:
    """Make what translates a line of a cold transcript: the rows of events among its records."""

    def of_record(record: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
        row = record.get("row")
        if record.get("kind") != "event" or not isinstance(row, dict):
            return () if "kind" in record else translate(record, raw, number)
        event = row.get("event_json")
        data = event.encode("utf-8", "surrogatepass") if isinstance(event, str) else b""
        seq = row.get("seq")
        place = seq if isinstance(seq, int) else number
        return tuple(entry for found in entries_in(data).entries for entry in translate(found, data, place))

    return of_record


_FILE = pattern(
    r"(?P<id>[^.][^/]*?)\.jsonl"
    r"(?P<kind>|\.(?:reset|deleted|archived)\.[^/]+?|\.imported-\d+|\.bak[^/]*|\.[^/]*\.bak)(?:\.zst)?"
)
# Neither is a transcript: a log of what the program did, and a copy that it makes before a compaction.
_NO_TRANSCRIPT = pattern(r".*\.(?:trajectory|checkpoint\.[^/]+)\.jsonl.*")
_UUID = pattern(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?:-topic-.+)?")
_FOLDERS = ("sessions", "session-sqlite-import-archive", "cold")
_DATABASE = "openclaw-agent.sqlite"
_MOST_REGISTRY_BYTES = 64 << 20
# What a registry says of a conversation; the rest is about how the program runs, or was counted by it.
_FIELDS = (
    "channel", "chatType", "displayName", "groupId", "groupChannel", "label", "origin", "provider", "spawnedBy",
    "space", "subject",
)  # fmt: skip
_UPGRADED = 3


class OpenClaw:
    """Reads the sessions of OpenClaw."""

    program = "openclaw"
    looks_for = "`agents/<agent>/sessions/*.jsonl` and `agents/<agent>/agent/openclaw-agent.sqlite`, as in ~/.openclaw"

    def __init__(self) -> None:
        self._registries: dict[str, dict[str, tuple[str, Entry]]] = {}

    def folders(self, path: str) -> list[str]:
        """In a state folder only the agents have conversations."""
        return folders_below(path, "agents")

    def original(self, path: str, given: str) -> Original | None:
        """Transcripts and archives of a sessions folder, and the database."""
        folder, name = os.path.split(path)
        agent = _agent_of(path)
        if name == _DATABASE or (path == given and name.endswith((".sqlite", ".db"))):
            return Original(path, agent, rank=3)
        if given not in {path, folder} and os.path.basename(folder) not in _FOLDERS:
            return None
        match = _FILE.fullmatch(name)
        if match is None or _NO_TRANSCRIPT.fullmatch(name):
            return Original(path, agent) if path == given else None
        kind = match["kind"]
        is_spare = kind.endswith(".bak") or kind.startswith(".bak")
        rank = 2 if not kind else 1 if kind.startswith(".imported") else 0
        return Original(path, agent, rank=rank, is_spare=is_spare)

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation; the database holds all of an agent."""
        path = original.path
        if path.endswith((".sqlite", ".db")):
            yield from conversations_in(path, Translation, fields_of)
            return
        first = first_entries(path, 1)
        cold = first[0].get("sessionId") if first and first[0].get("kind") == "header" else None
        if isinstance(cold, str) and cold:
            yield JsonlConversation(path, About(cold), lambda: thaw(Translation()))
            return
        header = first[0] if first and first[0].get("type") == "session" else {}
        session_id = _id_of(path, header)
        key, entry = self._registry_of(os.path.dirname(path)).get(session_id, (None, {}))
        kept = {name: found for name, found in header.items() if name not in {"type", "id"}}
        kept["version"] = (
            max(_UPGRADED, kept["version"]) if isinstance(kept.get("version"), int) else _UPGRADED
        )
        yield JsonlConversation(path, About(session_id, kept, fields_of(key, entry)), Translation)

    def _registry_of(self, folder: str) -> dict[str, tuple[str, Entry]]:
        """What the registry of a folder says, by session id."""
        if folder not in self._registries:
            self._registries[folder] = {
                entry["sessionId"]: (key, entry)
                for key, entry in _read_registry_file(os.path.join(folder, "sessions.json")).items()
                if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str)
            }
        return self._registries[folder]


def fields_of(key: str | None, entry: Entry) -> Entry:
    """What of a registry's entry goes along with a conversation."""
    kept = {name: entry[name] for name in _FIELDS if entry.get(name) is not None}
    channel = _at(entry, "delivery", "route", "channel")
    if isinstance(channel, str) and "channel" not in kept:
        kept["channel"] = channel
    return kept | {"originalKey": key} if key else kept


def _at(found: object, *names: str) -> object:
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _read_registry_file(path: str) -> Entry:
    try:
        with open_plain_file(path) as fd:
            return read_object(read_range(SYSTEM, fd, 0, _MOST_REGISTRY_BYTES)) or {}
    except PlainmindError:
        return {}  # the conversations are whole without it


def _agent_of(path: str) -> str | None:
    parts = path.split(os.sep)
    for position in range(len(parts) - 2, 0, -1):
        if parts[position - 1] == "agents":
            return parts[position]
    return None


def _id_of(path: str, header: Entry) -> str:
    """The session's id: that of the file name, which archives keep, if it looks like one; else the header's."""
    match = _FILE.fullmatch(os.path.basename(path))
    in_name = match["id"] if match else os.path.basename(path)
    in_header = header.get("id")
    last = in_name.rpartition(".")[2]  # what moved to the database is called `<key>.<id>.jsonl.imported-…`
    if _UUID.fullmatch(last):
        return last
    if isinstance(in_header, str) and in_header:
        return in_name if in_name.startswith(in_header) else in_header
    return f"{in_name}-{sha256_text(os.path.realpath(path))[:8]}"


class Translation:
    """Copies the entries of one transcript as they are, versions without ids upgraded; total."""

    def __init__(self) -> None:
        self._ids: list[str] | None = None  # by index, for files of version 1; None: not from the beginning

    def __call__(self, found: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
        """Give the entry; the header is none."""
        if found.get("type") == "session":
            self._ids = [""] if number == 1 else self._ids
            return ()
        entry = _with_type(found)
        own_id = found.get("id")
        if not isinstance(own_id, str) or not own_id:
            own_id = make_id(number, raw)
            entry.pop("parentId", None)
        entry["id"] = own_id
        if self._ids is not None:
            self._ids.append(own_id)
        return (self._upgrade(entry),)

    def _upgrade(self, entry: Entry) -> Entry:
        message = entry.get("message")
        if isinstance(message, dict) and message.get("role") == "hookMessage":
            return entry | {"message": message | {"role": "custom"}}
        index = entry.get("firstKeptEntryIndex")
        if isinstance(index, int) and "firstKeptEntryId" not in entry:
            known = self._ids or []
            first = known[index] if 0 < index < len(known) else entry["id"]
            rest = {name: kept for name, kept in entry.items() if name != "firstKeptEntryIndex"}
            return rest | {"firstKeptEntryId": first}
        return entry


def _with_type(found: Entry) -> Entry:
    """An entry of any type, known or not; what has none is a message, or kept as what it is."""
    if isinstance(found.get("type"), str):
        return dict(found)
    if isinstance(found.get("role"), str):
        return {"type": "message", "message": found}
    return {"type": "custom", "customType": "openclaw.unknown", "data": found}
