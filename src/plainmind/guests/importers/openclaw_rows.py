"""OpenClaw's transcripts as rows of its database."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_bytes
from plainmind.base.value import value
from plainmind.guests.importers.compressed import CannotUnpack, unpacked
from plainmind.guests.importers.lines import PARTLY_READABLE, UNREADABLE, Translate
from plainmind.guests.importers.openclaw_archives import archives_in, thawed
from plainmind.guests.importers.protocol import About, Conversation, Piece, Place
from plainmind.guests.importers.untouched import opened_untouched
from plainmind.sessions.entries import Entry, entries_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import apsw

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
        with opened_untouched(path) as database:
            known = _registered(database)

            def about(session: str, header: Entry | None = None) -> About:
                return About(session, header or {}, fields(*known.get(session, (None, {}))))

            yield from archives_in(database, lambda: thawed(translation()), about)
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

    def still_has(self, place: Place) -> bool:
        """Whether the row at a place is the same."""
        if not place.tail:
            return True
        row = self.database.execute(_EVENT, {"session": self.about.id, "at": place.at}).fetchone()
        return row is not None and _tail_of(row[0]) == place.tail

    def pieces(self, after: Place) -> Iterator[Piece]:
        """Read the rows behind a place, in their order."""
        translate = self.translation()
        since = {"session": self.about.id, "after": after.at if after.tail else _BEFORE_ALL}
        for seq, plain, packed in self.database.execute(self.sql, since):
            yield _piece(seq, plain, packed, translate)


def _piece(seq: int, plain: Any, packed: Any, translate: Translate) -> Piece:
    place = Place(seq, seq, _tail_of(plain))
    if plain is None and packed is not None:
        try:
            data = unpacked(bytes(packed), most=1 << 26)
        except CannotUnpack as error:
            return Piece(seq, Place(), damage=str(error), is_curable=True)
    else:
        data = _bytes(plain)
    read = entries_in(data)
    entries = tuple(entry for found in read.entries for entry in translate(found, data, seq))
    damage = PARTLY_READABLE if read.is_damaged else None
    return Piece(seq, place, entries, damage if read.entries else UNREADABLE)


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


def _registered(database: apsw.Connection) -> dict[str, tuple[str | None, Entry]]:
    columns = {name for (name,) in database.execute(_COLUMNS, {"table": "session_nodes"})}
    known: dict[str, tuple[str | None, Entry]] = {}
    if {"session_key", "current_session_id", "entry_json"} <= columns:
        for key, session, entry in database.execute(_NODES):
            data = _bytes(entry)
            found = entries_in(data).entries if len(data) < _MOST_ENTRY_BYTES else ()
            known[str(session)] = (str(key), found[0] if found else {})
    return known
