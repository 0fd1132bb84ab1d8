"""What a process has read of one generation, kept between searches within one budget of bytes.

Ids are never used again, so what belongs to an id stays right as long as the generation lives. What belongs to a
segment is kept under the revision at which it last changed: an edit makes nothing else be read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence

import apsw

from plainmind.base.model import Chunk, FileState, Source
from plainmind.index.arithmetic.parts import Absences
from plainmind.index.bm25 import words_in
from plainmind.index.cache import RecentlyUsed
from plainmind.index.drivers.sqlite.admission import NOTHING, absent_with, hidden_positions, lengths_without
from plainmind.index.drivers.sqlite.connection import one_row
from plainmind.index.drivers.sqlite.overview import Overview, read_files, read_overview
from plainmind.index.drivers.sqlite.rough import RoughVectors
from plainmind.index.drivers.sqlite.segments import (
    Segment,
    read_absences,
    read_audience,
    read_lengths,
    read_signs,
)
from plainmind.index.drivers.sqlite.texts import StoredChunk, unsqueezed
from plainmind.index.kernels import BYTES_PER_NUMBER
from plainmind.index.postings import Postings
from plainmind.index.signs import signs_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    T = TypeVar("T")
Scopes: TypeAlias = "frozenset[int]"  # by their numbers

# What may be kept beside the signs, which every search looks through, and in all.
BESIDE_SIGNS = 40_000_000
BESIDE_ROUGH_VECTORS = 14_000_000
MOST_BYTES = 104_000_000
_OVERHEAD = 200  # of an entry: its key, its value's header, its place in a dictionary
_CHUNK_OVERHEAD = 500
_HIDDEN_VECTOR = 9  # bytes: its flag, and its position among the absent ones
_INFLATED = 3  # times its stored size is a text that was read, and what it was read from, at most

_REVISION = "SELECT value, contents FROM revision"
_CHUNKS = """SELECT c.id, f.path, f.source, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
               FROM chunks c JOIN files f ON f.id = c.file_id
              WHERE c.id IN (SELECT value FROM json_each(?))"""
_POSTINGS = "SELECT positions, counts FROM postings WHERE segment = ? AND term = ?"
_VECTORS = "SELECT id, vector FROM vectors WHERE id IN (SELECT value FROM json_each(?))"
_ABSENT = object()


class GenerationCache:
    """Shared by the readers of one generation."""

    def __init__(self) -> None:
        self._kept = RecentlyUsed(BESIDE_SIGNS)
        self._keeps_vectors = True
        self._rough = RoughVectors()
        self._overview: Overview | None = None
        self._files: tuple[int, Mapping[tuple[Source, str], FileState]] | None = None

    def overview(self, db: apsw.Connection) -> Overview:
        """What the index holds, in numbers, as the view of this connection sees it."""
        revision, contents = one_row(db, _REVISION)  # the first read fixes what the view sees
        known = self._overview
        if known is not None and known.contents == contents:
            found = known if known.revision == revision else known.at(revision)
        else:
            found = read_overview(db, revision, contents)
            signs = found.chunk_count * signs_width(found.dims)
            self._kept.most_bytes = min(MOST_BYTES, BESIDE_SIGNS + signs)
            # Of more than fit, hardly one is asked for again before it has to go, and others with it.
            vectors = found.chunk_count * (_OVERHEAD + BYTES_PER_NUMBER * found.dims)
            self._keeps_vectors = vectors <= BESIDE_SIGNS
            self._rough.keep(found.first_ids)
        self._overview = found
        return found

    def files(self, db: apsw.Connection, revision: int) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file."""
        known = self._files
        if known is None or known[0] != revision:
            self._files = known = (revision, read_files(db))
        return known[1]

    def hidden(self, db: apsw.Connection, segment: Segment, scopes: Scopes) -> bytes | None:
        """Which positions of a segment are hidden from those who may see only these scopes; None: all."""
        key = ("hidden", segment.first_id, segment.revision, scopes)
        found: bytes | None = self._kept.get(key, _ABSENT)
        if found is _ABSENT:
            found = hidden_positions(read_audience(db, segment), scopes)
            self._kept.put(key, found, _OVERHEAD + len(found or b""))
        return found

    def lengths(self, db: apsw.Connection, segment: Segment, scopes: Scopes | None = None) -> memoryview:
        """The lengths of a segment's chunks: of all, or of those of some scopes where some but not all are hidden."""
        key = ("lengths", segment.first_id, segment.revision, scopes)

        def read() -> memoryview:
            if scopes is None:
                return memoryview(read_lengths(db, segment)).cast("H")
            hidden = self.hidden(db, segment, scopes) or NOTHING
            return lengths_without(self.lengths(db, segment), hidden)

        return self._once(key, read, 2 * segment.used)

    def absences(self, db: apsw.Connection, segment: Segment, scopes: Scopes | None = None) -> Absences:
        """Which of a segment's chunks have no vector, or one that is hidden from who may see only some scopes."""
        key = ("absent", segment.first_id, segment.revision, scopes)

        def read() -> Absences:
            if scopes is None:
                return Absences(read_absences(db, segment))
            hidden = self.hidden(db, segment, scopes) or NOTHING
            return Absences(absent_with(self.absences(db, segment).flags, hidden))

        return self._once(key, read, segment.used if scopes is None else _HIDDEN_VECTOR * segment.used)

    def signs(self, db: apsw.Connection, segment: Segment, dims: int) -> bytes:
        """The signs of a segment's vectors."""
        key = ("signs", segment.first_id, segment.posted)
        return self._once(key, lambda: read_signs(db, segment, dims=dims), segment.used * signs_width(dims))

    def postings(self, db: apsw.Connection, segment: Segment, term: str) -> Postings | None:
        """The postings of a term in a segment."""
        key = ("postings", term, segment.first_id, segment.posted)
        found: Postings | None = self._kept.get(key, _ABSENT)
        if found is _ABSENT:
            row = db.execute(_POSTINGS, (segment.first_id, term)).fetchone()
            found = None if row is None else Postings(*row)
            self._kept.put(key, found, _OVERHEAD + len(term) + (found.size if found else 0))
        return found

    def count(self, segment: Segment, term: str, scopes: Scopes | None, counted: Callable[[], int]) -> int:
        """In how many chunks of a segment a term stands, of all or of those of some scopes."""
        return self._once(("count", term, segment.first_id, segment.revision, scopes), counted, len(term))

    def words(self, db: apsw.Connection, segment: Segment, scopes: Scopes | None) -> tuple[int, int]:
        """How many chunks of a segment have words, and how many words: of all, or of those of some scopes."""
        key = ("words", segment.first_id, segment.revision, scopes)
        return self._once(key, lambda: words_in(self.lengths(db, segment, scopes)), 0)

    def chunks(self, db: apsw.Connection, ids: Sequence[int]) -> Mapping[int, Chunk]:
        """Chunks by id."""
        known, missing = self._kept.get_all([("chunk", id_) for id_ in ids])
        found: dict[int, Chunk] = {id_: chunk for (_, id_), chunk in known.items()}
        if missing:
            fetched: dict[Hashable, tuple[Chunk, int]] = {}
            for id_, path, source, ordinal, first, last, text, context, day in db.execute(
                _CHUNKS, (json.dumps([id_ for _, id_ in missing]),)
            ):
                found[id_] = chunk = StoredChunk(
                    path, source, ordinal, first, last, text, unsqueezed(context), day
                )
                fetched["chunk", id_] = chunk, _CHUNK_OVERHEAD + _INFLATED * len(text)
            self._kept.put_all(fetched)
        return found

    def rough_vectors(self, segments: Sequence[Segment], dims: int) -> RoughVectors | None:
        """Rough copies of all vectors of some segments, once that is the cheaper way to search them."""
        if not self._rough.are_worth_it(segments, dims):
            return None
        # They take the room of the signs, which are not read any more, and of vectors read one by one.
        room = BESIDE_SIGNS - self._rough.bytes_with(segments, dims)
        self._kept.most_bytes = max(BESIDE_ROUGH_VECTORS, room)
        return self._rough

    def compared(self, count: int) -> None:
        """Note that a search had to read so many vectors."""
        self._rough.compared(count)

    def exact_vectors(self, segment: Segment, ids: Sequence[int]) -> tuple[list[int], bytes]:
        """Those of some ids of a segment whose packed vectors are in memory anyway, and these vectors."""
        return self._rough.exact(segment, ids)

    def vectors(self, db: apsw.Connection, ids: Sequence[int]) -> Mapping[int, bytes]:
        """Packed vectors by id; chunks without one are left out."""
        found: dict[int, bytes]
        found, missing = self._kept.get_all(ids)
        if missing:
            fetched: dict[int, bytes] = dict(db.execute(_VECTORS, (json.dumps(missing),)))
            if self._keeps_vectors:
                self._kept.put_all(
                    {id_: (vector, _OVERHEAD + len(vector)) for id_, vector in fetched.items()}
                )
            found |= fetched
        return found

    def _once(self, key: Hashable, read: Callable[[], T], size: int) -> T:
        found: T | None = self._kept.get(key)
        if found is None:
            found = read()
            self._kept.put(key, found, _OVERHEAD + size)
        return found
