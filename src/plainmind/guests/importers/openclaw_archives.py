"""What OpenClaw puts away: whole transcripts in a column of its database, and cold ones, whose lines hold rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO

from plainmind.base.value import value
from plainmind.guests.importers.compressed import CannotUnpack, unpacked
from plainmind.guests.importers.lines import PARTLY_READABLE, UNREADABLE, Translate
from plainmind.guests.importers.protocol import About, Piece, Place
from plainmind.sessions.entries import Entry, entries_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import apsw

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
    def _end(self) -> Place:
        return Place(1, 0, self.digest[:16])

    def still_has(self, place: Place) -> bool:
        """Whether it is the archive that was read."""
        return place in (Place(), self._end)

    def pieces(self, after: Place) -> Iterator[Piece]:
        """Unpack it and read its lines, unless it was read before."""
        if after == self._end:
            return
        found = self.database.execute(self.sql, {"row": self.row}).fetchone()
        data = found[0] if found is not None and isinstance(found[0], bytes) else b""
        try:
            plain = unpacked(data) if self.is_packed else data
        except CannotUnpack as error:
            yield Piece(1, Place(), damage=str(error), is_curable=True)
            return
        translate = self.translation()
        for number, line in enumerate(BytesIO(plain), 1):
            yield _piece(line.rstrip(b"\n"), number, translate, self._end)


def _piece(line: bytes, number: int, translate: Translate, end: Place) -> Piece:
    read = entries_in(line)
    entries = tuple(entry for found in read.entries for entry in translate(found, line, number))
    damage = PARTLY_READABLE if read.entries else UNREADABLE
    return Piece(number, end, entries, damage if read.is_damaged else None)


def thawed(translate: Translate) -> Translate:
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
