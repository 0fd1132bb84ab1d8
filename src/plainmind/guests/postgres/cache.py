"""What a process has read of one generation, kept between searches within one budget of bytes.

Ids are never used again, so what belongs to an id stays right as long as the generation lives. What belongs to a
segment is kept under the stamp of its last change: an edit makes nothing else be read again. Ids and stamps come from
the clock: a server that has lost its last changes, by a failover, does not give them to something else.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Chunk, FileState, Source
from plainmind.base.value import value
from plainmind.guests.postgres.overview import Overview, read_overview
from plainmind.guests.postgres.segments import Segment, key_of
from plainmind.guests.postgres.session import Published, Tables, only_scopes
from plainmind.guests.postgres.wire import from_stored
from plainmind.guests.postgres.writer import unsigned_64
from plainmind.index import bm25
from plainmind.index.bm25 import Postings
from plainmind.index.reader import RecentlyUsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.postgres.connections import Connection

_MOST_BYTES = 96_000_000
_OVERHEAD = 200
_CHUNK_OVERHEAD = 600
_ABSENT = object()

_FILES = "SELECT path, source, hash, size, mtime_ns, inode, scope FROM {files}"
_POSITIONS = "SELECT segment, ids, lengths FROM {positions} WHERE segment = ANY(%s)"
_POSTINGS = """SELECT segment, term, positions, counts FROM {postings}
                WHERE segment = ANY(%s) AND term = ANY(%s)"""
_CHUNKS = """SELECT c.id, f.path, f.source, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
               FROM {chunks} c JOIN {files} f ON f.id = c.file
              WHERE c.id = ANY(%s)"""
_VECTORS = "SELECT id, vector FROM {vectors} WHERE id = ANY(%s)"


@value
class Positions:
    """The chunks of a segment by their positions."""

    ids: array[int]
    lengths: memoryview  # uint16


class GenerationCache:
    """Shared by the readers of one generation."""

    def __init__(self, generation: int) -> None:
        self.tables = Tables(generation)
        self._kept = RecentlyUsed(_MOST_BYTES)
        self._overview: Overview | None = None
        self._files: tuple[tuple[int, int], Mapping[tuple[Source, str], FileState]] | None = None

    def overview(self, db: Connection, now: Published) -> Overview:
        """What the index holds, in numbers, as this view sees it."""
        known = self._overview
        if known is None or known.contents != now.contents:
            self._overview = known = read_overview(db, self.tables, now)
        elif known.revision != now.revision or known.graph != now.graph:
            self._overview = known = known.at(now)
        return known

    def files(self, db: Connection, now: Overview) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file."""
        known, state = self._files, (now.revision, now.contents)
        if known is None or known[0] != state:
            found: dict[tuple[Source, str], FileState] = {}
            for stored, source, hash_, size, mtime_ns, inode, scope in db.execute(self.tables(_FILES)):
                path = from_stored(stored)
                found[source, path] = FileState(
                    path, source, hash_, size, mtime_ns, unsigned_64(inode), from_stored(scope)
                )
            self._files = known = (state, MappingProxyType(found))
        return known[1]

    def fetch(self, db: Connection, segments: Sequence[Segment], terms: Iterable[str]) -> None:
        """Read what is missing of the positions of segments and of the postings of terms, in one round trip."""
        _, lengthless = self._kept.get_all([_positions(each) for each in segments])
        _, lacking = self._kept.get_all([_postings(each, term) for term in terms for each in segments])
        if not lengthless and not lacking:
            return
        keys = {key_of(term): term for _, term, _, _ in lacking}
        numbers = list({number for _, _, number, _ in lacking})
        behind = {number for _, number, _ in lengthless}
        if behind:
            rows = db.execute(self.tables(_POSITIONS), (list(behind),), binary=True)
            self._keep_positions([each for each in segments if each.number in behind], rows)
        if lacking:
            rows = db.execute(self.tables(_POSTINGS), (numbers, list(keys)), binary=True)
            self._keep_postings(lacking, keys, rows)

    def positions(self, db: Connection, segment: Segment) -> Positions:
        """The ids and lengths of a segment."""
        found: Positions | None = self._kept.get(_positions(segment))
        if found is None:
            rows = db.execute(self.tables(_POSITIONS), ([segment.number],))
            found = self._keep_positions([segment], rows)[segment.number]
        return found

    def words(self, db: Connection, segment: Segment) -> tuple[int, int]:
        """How many chunks of a segment have words, and how many words they have together."""
        key = ("words", segment.number, segment.revision)
        found: tuple[int, int] | None = self._kept.get(key)
        if found is None:
            found = bm25.words_in(self.positions(db, segment).lengths)
            self._kept.put(key, found, _OVERHEAD)
        return found

    def postings(self, db: Connection, segment: Segment, term: str) -> Postings | None:
        """The postings of a term in a segment."""
        found: Any = self._kept.get(_postings(segment, term), _ABSENT)
        if found is _ABSENT:  # it had to make room for others
            key = key_of(term)
            rows = db.execute(self.tables(_POSTINGS), ([segment.number], [key]), binary=True)
            wanted = _postings(segment, term)
            found = self._keep_postings([wanted], {key: term}, rows)[wanted]
        return found  # type: ignore[no-any-return]

    def chunks(self, db: Connection, ids: Iterable[int], scopes: frozenset[str]) -> Mapping[int, Chunk]:
        """Chunks by id, which must be of these scopes: the server makes sure of that."""
        known, missing = self._kept.get_all([("chunk", id_) for id_ in ids])
        found: dict[int, Chunk] = {id_: chunk for (_, id_), chunk in known.items()}
        if missing:
            with only_scopes(db, scopes):
                rows = db.execute(self.tables(_CHUNKS), ([id_ for _, id_ in missing],), binary=True)
            fetched = {id_: chunk_of_row(*fields) for id_, *fields in rows}
            if len(fetched) < len(missing):
                raise IndexCorrupt(
                    "the index contradicts itself: a segment shows what its files do not",
                    hint="run `plainmind sync --force`: it is rebuilt from your notes",
                )
            self._kept.put_all(
                {
                    ("chunk", id_): (chunk, _CHUNK_OVERHEAD + 2 * len(chunk.text))
                    for id_, chunk in fetched.items()
                }
            )
            found |= fetched
        return found

    def vectors(self, db: Connection, ids: Sequence[int]) -> Mapping[int, bytes | None]:
        """Packed vectors by id, None for chunks without one."""
        found: dict[int, bytes | None]
        found, missing = self._kept.get_all(ids)
        if missing:
            rows = db.execute(self.tables(_VECTORS), (missing,), binary=True).fetchall()
            fetched: dict[int, bytes | None] = {**dict.fromkeys(missing), **dict(rows)}
            self.keep_vectors(fetched)
            found |= fetched
        return found

    def keep_vectors(self, vectors: Mapping[int, bytes | None]) -> None:
        """Remember vectors that were read."""
        self._kept.put_all({id_: (vector, _OVERHEAD + len(vector or b"")) for id_, vector in vectors.items()})

    def _keep_positions(
        self, segments: Sequence[Segment], rows: Iterable[Sequence[Any]]
    ) -> Mapping[int, Positions]:
        found = {
            number: Positions(array("q", ids), memoryview(lengths).cast("H")) for number, ids, lengths in rows
        }
        for each in segments:
            own = found.get(each.number)
            if own is None or len(own.ids) != each.used or len(own.lengths) != each.used:
                raise IndexCorrupt("a segment of the index is damaged", hint="run `plainmind sync --force`")
            self._kept.put(_positions(each), own, _OVERHEAD + 10 * each.used)
        return found

    def _keep_postings(
        self,
        wanted: Sequence[tuple[Any, ...]],
        keys: Mapping[str, str],
        rows: Iterable[Sequence[Any]],
    ) -> Mapping[tuple[Any, ...], Postings | None]:
        by_number = {(number, keys[key]): Postings(own, counts) for number, key, own, counts in rows}
        found = {each: by_number.get((each[2], each[1])) for each in wanted}
        self._kept.put_all(
            {each: (own, _OVERHEAD + len(each[1]) + (own.size if own else 0)) for each, own in found.items()}
        )
        return found


def _positions(segment: Segment) -> tuple[Any, ...]:
    return "positions", segment.number, segment.revision


def _postings(segment: Segment, term: str) -> tuple[Any, ...]:
    return "postings", term, segment.number, segment.posted


def chunk_of_row(  # noqa: PLR0917 (the columns of a row, in their order)
    path: str,
    source: Source,
    ordinal: int,
    start_line: int,
    end_line: int,
    text: str,
    context: str,
    day: str | None,
) -> Chunk:
    """The chunk that a row tells of."""
    return Chunk(
        from_stored(path), source, ordinal, start_line, end_line, from_stored(text), from_stored(context), day
    )
