"""One change of a generation, inside a transaction that its store has begun; and the segments that it packs.

A segment is a run of chunks of one source and scope, with their ids, lengths and postings packed together. Ids ascend
within it, and from one segment of a source and scope to the next. So an id is found by bisection, and a segment can be
packed anew, or together with its neighbour, without touching any chunk.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import FileState, IndexFingerprint, Source
from plainmind.guests.postgres.connections import (
    HalfVector,
    Tables,
    file_name,
    from_stored,
    signed_64,
    term_key,
    to_stored,
)
from plainmind.guests.postgres.view import (
    ALL_SEGMENTS,
    GRAPH_FROM,
    MOST,
    SEGMENT_COLUMNS,
    Segment,
    position_of,
    segment_of_row,
)
from plainmind.index.bm25 import Collected, Postings
from plainmind.index.driver import KnownFile, PreparedChunk
from plainmind.index.vectors import round_vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from plainmind.guests.postgres.connections import Connection
else:
    Protocol = object


_SENT_AT_ONCE = 512
_MOST_DIMS_OF_A_GRAPH = 4_000  # that pgvector makes of vectors of half precision
_MOST_BYTES = 56_000_000  # that all collected postings may take

_NEXT_REVISION = "UPDATE generations SET revision = revision + 1 WHERE id = %s RETURNING revision"
# Microseconds: a server that has lost its last changes, by a failover, must not give their ids and stamps to others.
_NEXT_CONTENTS = """UPDATE generations
                       SET revision = revision + 1,
                           contents = CASE WHEN contents < 0 THEN contents ELSE
                               greatest(contents + 1, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint) END
                     WHERE id = %s RETURNING contents"""
_TAKE_IDS = """UPDATE generations
                  SET next_id = greatest(next_id, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint) + %s
                WHERE id = %s RETURNING next_id"""
_SET_NEXT_ID = "UPDATE generations SET next_id = %s WHERE id = %s"
_KNOWN = "SELECT id, hash, scope, chunks, tallest FROM {files} WHERE name = %s"
_PUT_FILE = """INSERT INTO {files} AS f (name, source, path, hash, size, mtime_ns, inode, scope, chunks, tallest)
               VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 0, 0)
               ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, size = excluded.size,
                           mtime_ns = excluded.mtime_ns, inode = excluded.inode, scope = excluded.scope
               RETURNING id"""
_SET_CHUNKS = "UPDATE {files} SET chunks = %s, tallest = %s WHERE id = %s"
_TOUCH_FILE = """UPDATE {files} SET size = %s, mtime_ns = %s, inode = %s
                  WHERE name = %s AND hash = %s AND scope = %s"""
# Not by COPY, which row-level security does not go with.
_PUT_CHUNKS = """INSERT INTO {chunks} (id, file, ordinal, start_line, end_line, length, scope, day, context, text)
                 SELECT id, %(file)s, ordinal, first, last, length, %(scope)s, day, context, text
                   FROM unnest(%(ids)s::bigint[], %(ordinals)s::int[], %(firsts)s::int[], %(lasts)s::int[],
                               %(lengths)s::int[], %(days)s::text[], %(contexts)s::text[], %(texts)s::text[])
                     AS new (id, ordinal, first, last, length, day, context, text)"""
_PUT_VECTORS = """INSERT INTO {vectors} (id, source, scope, vector)
                  SELECT id, %s, %s, vector FROM unnest(%b::bigint[], %b::halfvec[]) AS new (id, vector)"""
_DELETE_CHUNKS = "DELETE FROM {chunks} WHERE file = %s AND ordinal >= %s RETURNING id"
_DELETE_VECTORS = "DELETE FROM {vectors} WHERE id = ANY(%s)"
_DELETE_FILE = "DELETE FROM {files} WHERE id = %s"
_COUNT_LIVING = "SELECT coalesce(sum(living), 0) FROM {segments}"
_INDEX_VECTORS = "SELECT index_vectors(%s)"


class Placing(Protocol):
    """Where chunks go when they come in, and what becomes of their places when they go."""

    def take_ids(self, segments: Segments, count: int) -> range:
        """New ids for so many chunks."""

    def put(
        self,
        segments: Segments,
        file: FileState,
        ids: Sequence[int],
        chunks: Sequence[PreparedChunk],
        *,
        revision: int,
    ) -> None:
        """Make chunks found by their words."""

    def bury(
        self, segments: Segments, source: Source, scope: str, ids: Sequence[int], *, revision: int
    ) -> None:
        """Let some ids be found no more."""


class AtOnce:
    """Chunks are found as soon as the transaction ends."""

    def take_ids(self, segments: Segments, count: int) -> range:
        """Take ids from the generation."""
        row = segments.db.execute(_TAKE_IDS, (count, segments.tables.generation)).fetchone()
        end = int(row[0]) if row else 0
        return range(end - count, end)

    def put(
        self,
        segments: Segments,
        file: FileState,
        ids: Sequence[int],
        chunks: Sequence[PreparedChunk],
        *,
        revision: int,
    ) -> None:
        """Append the chunks to the newest segment of their source and scope."""
        known = segments.of(file.source, file.scope)
        coming = iter(zip(ids, chunks, strict=True))
        for segment, capacity, count in room_in(known, len(chunks)):
            new = Packed()
            behind = segment.used if segment else 0
            for id_, each in islice(coming, count):
                new.add(id_, each.length, each.counted, behind=behind)
            if segment is not None:
                segments.append(segment, new, revision=revision)
            else:
                segments.insert(file.source, file.scope, new, capacity=capacity, revision=revision)

    def bury(
        self, segments: Segments, source: Source, scope: str, ids: Sequence[int], *, revision: int
    ) -> None:
        """Leave holes, and pack anew what is hardly more than holes."""
        touched = segments.bury(segments.of(source, scope), ids, revision=revision)
        if touched:
            segments.tidy(source, scope, touched, revision=revision)


AT_ONCE = AtOnce()


class InBulk:
    """Large segments for an index that is being built: packed in memory, and written when they are full.

    Chunks are found by words only after `write()`. Not for threads at once: a build has one writer at a time.
    """

    def __init__(self) -> None:
        # Nothing else adds to a generation that is being built; a failed change wastes its ids.
        self._next_id = time.time_ns() // 1_000
        self._filling: dict[tuple[Source, str], Packed] = {}
        self._full: list[tuple[Source, str, Packed]] = []

    def take_ids(self, _segments: Segments, count: int) -> range:
        """New ids for so many chunks."""
        first = self._next_id
        self._next_id += count
        return range(first, self._next_id)

    def put(
        self,
        _segments: Segments,
        file: FileState,
        ids: Sequence[int],
        chunks: Sequence[PreparedChunk],
        *,
        revision: int,  # noqa: ARG002
    ) -> None:
        """Pack the chunks."""
        key = (file.source, file.scope)
        for id_, each in zip(ids, chunks, strict=True):
            waiting = self._filling.setdefault(key, Packed())
            waiting.add(id_, each.length, each.counted)
            if len(waiting.ids) == MOST:
                self._full.append((*key, self._filling.pop(key)))
        if sum(waiting.postings.bytes_used for waiting in self._filling.values()) > _MOST_BYTES:
            self.complete()

    def bury(
        self, segments: Segments, source: Source, scope: str, ids: Sequence[int], *, revision: int
    ) -> None:
        """Leave holes in what is written; what waits is looked through when it is written."""
        AT_ONCE.bury(segments, source, scope, ids, revision=revision)

    def complete(self) -> None:
        """Let nothing more come to what waits: all of it is to be written."""
        self._full += [(*key, waiting) for key, waiting in self._filling.items()]
        self._filling.clear()

    def write(self, db: Connection, tables: Tables) -> None:
        """Write the segments that are full, without what was removed, or rolled back, since it was packed."""
        segments = Segments(db, tables)
        for source, scope, waiting in self._full:
            own = waiting.only(segments.living(waiting.ids))
            if own.ids:
                revision = next_contents(db, tables)
                segments.insert(source, scope, own, capacity=len(own.ids), revision=revision)
        db.execute(_SET_NEXT_ID, (self._next_id, tables.generation))

    def forget_written(self) -> None:
        """Let go of what `write()` has written, when its transaction has ended well."""
        self._full.clear()

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        return bool(self._full)


class PostgresChange:
    """Puts files in and takes them out; what it is told of an index that was never built is left undone."""

    def __init__(
        self,
        db: Connection,
        tables: Tables,
        fingerprint: IndexFingerprint | None,
        placing: Placing = AT_ONCE,
    ) -> None:
        self.db = db
        self.tables = tables
        self._fingerprint = fingerprint
        self._placing = placing
        self._segments = Segments(db, tables)

    def fingerprint(self) -> IndexFingerprint | None:
        """How the index is made that is being changed."""
        return self._fingerprint

    def known(self, source: Source, path: str) -> KnownFile | None:
        """What the index holds of a file."""
        row = self.db.execute(self.tables(_KNOWN), (file_name(source, path),)).fetchone()
        if row is None:
            return None
        number, hash_, scope, chunks, tallest = row
        return KnownFile(number, hash_, from_stored(scope), chunks, tallest)

    def put(
        self,
        file: FileState,
        known: KnownFile | None,
        portions: Iterable[Sequence[PreparedChunk]],
        *,
        keeping: int,
        dims: int,
    ) -> None:
        """Take the old chunks of a file out, but for the first, and put the new ones in."""
        with self.db.pipeline():
            revision = next_contents(self.db, self.tables)
            if known:
                self._drop_chunks(file.source, known, keeping=keeping, revision=revision)
            number = self._put_file(file)
            tallest = known.tallest if known and keeping else 0
            count = keeping
            for portion in _small_portions(portions):
                ids = self._placing.take_ids(self._segments, len(portion))
                self._put_chunks(file, number, ids, portion, dims)
                self._placing.put(self._segments, file, ids, portion, revision=revision)
                tallest = max(tallest, *(each.chunk.end_line - each.chunk.start_line for each in portion))
                count += len(portion)
            self.db.execute(self.tables(_SET_CHUNKS), (count, tallest, number))

    def touch(self, file: FileState) -> None:
        """Record what the file looks like now, if its text is the one that is indexed, for those who may see it."""
        if not self.tables.generation:
            return
        self.db.execute(_NEXT_REVISION, (self.tables.generation,))
        seen = (file.size, file.mtime_ns, signed_64(file.inode))
        name = file_name(file.source, file.path)
        self.db.execute(self.tables(_TOUCH_FILE), (*seen, name, file.hash, to_stored(file.scope)))

    def remove(self, source: Source, path: str) -> None:
        """Take a file and its chunks out, if they are there."""
        if not self.tables.generation:
            return
        revision = next_contents(self.db, self.tables)
        known = self.known(source, path)
        if known is not None:
            self._drop_chunks(source, known, keeping=0, revision=revision)
            self.db.execute(self.tables(_DELETE_FILE), (known.number,))

    def wipe_removed(self) -> None:
        """Take the terms of all that was removed, ever, out of the index."""
        revision = next_contents(self.db, self.tables)
        for segment in self._segments.all():
            if segment.living < segment.used:
                self._segments.pack_anew([segment], revision=revision)

    def make_graph_if_large(self, dims: int) -> None:
        """Give the vectors a graph once there are so many that comparing all of them takes longer."""
        if 0 < dims <= _MOST_DIMS_OF_A_GRAPH:
            row = self.db.execute(self.tables(_COUNT_LIVING)).fetchone()
            if row and row[0] > GRAPH_FROM:
                self.db.execute(_INDEX_VECTORS, (self.tables.generation,))

    def _drop_chunks(self, source: Source, known: KnownFile, *, keeping: int, revision: int) -> None:
        ids = [id_ for (id_,) in self.db.execute(self.tables(_DELETE_CHUNKS), (known.number, keeping))]
        if ids:
            self.db.execute(self.tables(_DELETE_VECTORS), (ids,))
            self._placing.bury(self._segments, source, known.scope, ids, revision=revision)

    def _put_file(self, file: FileState) -> int:
        row = self.db.execute(
            self.tables(_PUT_FILE),
            (
                file_name(file.source, file.path), file.source, to_stored(file.path), file.hash, file.size,
                file.mtime_ns, signed_64(file.inode), to_stored(file.scope),
            ),
        ).fetchone()  # fmt: skip
        return int(row[0]) if row else 0

    def _put_chunks(
        self, file: FileState, number: int, ids: Sequence[int], chunks: Sequence[PreparedChunk], dims: int
    ) -> None:
        scope = to_stored(file.scope)
        own = [each.chunk for each in chunks]
        columns = {
            "ids": list(ids),
            "ordinals": [each.ordinal for each in own],
            "firsts": [each.start_line for each in own],
            "lasts": [each.end_line for each in own],
            "lengths": [each.length for each in chunks],
            "days": [each.day for each in own],
            "contexts": [to_stored(each.context) for each in own],
            "texts": [to_stored(each.text) for each in own],
        }
        self.db.execute(self.tables(_PUT_CHUNKS), {"file": number, "scope": scope, **columns})
        vectors = {
            id_: HalfVector(round_vector(each.vector, dims))
            for id_, each in zip(ids, chunks, strict=True)
            if each.vector is not None
        }
        if vectors:
            self.db.execute(
                self.tables(_PUT_VECTORS), (file.source, scope, list(vectors), list(vectors.values()))
            )


def _small_portions(portions: Iterable[Sequence[PreparedChunk]]) -> Iterator[Sequence[PreparedChunk]]:
    """So many chunks as are well sent in one statement."""
    for portion in portions:
        for start in range(0, len(portion), _SENT_AT_ONCE):
            yield portion[start : start + _SENT_AT_ONCE]


def next_contents(db: Connection, tables: Tables) -> int:
    """The stamp of a change of chunks, by which all caches will notice it."""
    row = db.execute(_NEXT_CONTENTS, (tables.generation,)).fetchone()
    return int(row[0]) if row else 0


# --- segments ---


# New segments for single files take a quarter of what their source and scope have, within these bounds.
_LEAST_CAPACITY = 512
_MOST_CAPACITY = 8_192
_MERGED = 4_096  # neighbours that have no more chunks together become one when one of them is packed anew
_ROWS_AT_ONCE = 5_000

_OF = f"SELECT {SEGMENT_COLUMNS} FROM {{segments}} WHERE source = %s AND scope = %s ORDER BY first_id"  # noqa: S608
_INSERT = """INSERT INTO {segments} (source, scope, first_id, capacity, used, living, terms, revision, posted)
             VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING number"""
_INSERT_POSITIONS = "INSERT INTO {positions} (segment, scope, ids, lengths) VALUES (%s, %s, %s, %s)"
_GROW = """UPDATE {segments} SET used = used + %s, living = living + %s, terms = terms + %s,
                                 revision = %s, posted = %s
            WHERE number = %s"""
_APPEND_POSITIONS = "UPDATE {positions} SET ids = ids || %s, lengths = lengths || %s WHERE segment = %s"
_BURY = "UPDATE {segments} SET living = living - %s, terms = terms - %s, revision = %s WHERE number = %s"
_SET_LENGTHS = "UPDATE {positions} SET lengths = %s WHERE segment = %s"
_POSITIONS = "SELECT ids, lengths FROM {positions} WHERE segment = %s"
_ALL_POSTINGS = "SELECT term, whole, positions, counts FROM {postings} WHERE segment = %s"
_APPEND_POSTINGS = """INSERT INTO {postings} AS p (segment, term, whole, scope, positions, counts)
                      SELECT %s, term, whole, %s, positions, counts
                        FROM unnest(%s::text[], %s::text[], %b::bytea[], %b::bytea[])
                          AS new (term, whole, positions, counts)
                          ON CONFLICT (segment, term)
                          DO UPDATE SET positions = p.positions || excluded.positions,
                                        counts    = p.counts    || excluded.counts"""
_DELETE = (
    "DELETE FROM {postings} WHERE segment = ANY(%s)",
    "DELETE FROM {positions} WHERE segment = ANY(%s)",
    "DELETE FROM {segments} WHERE number = ANY(%s)",
)
_LIVING = "SELECT id FROM {chunks} WHERE id = ANY(%s)"


class Packed:
    """What a run of chunks adds to a segment."""

    def __init__(self) -> None:
        self.ids = array("q")
        self.lengths = array("H")
        self.postings = Collected()

    def add(self, id_: int, length: int, counted: Mapping[str, int], *, behind: int = 0) -> None:
        """Add one chunk; `behind` so many that the segment has already."""
        self.postings.add(behind + len(self.ids), counted)
        self.ids.append(id_)
        self.lengths.append(length)

    def add_living(
        self,
        ids: Sequence[int],
        lengths: Sequence[int],
        postings: Iterable[tuple[str, Postings]],
        living: frozenset[int],
    ) -> None:
        """Add those of the chunks of a segment that live, behind what is here."""
        moved = {}
        for position, (id_, length) in enumerate(zip(ids, lengths, strict=True)):
            if id_ in living:
                moved[position] = len(self.ids)
                self.ids.append(id_)
                self.lengths.append(length)
        for term, own in postings:
            pairs = zip(own.positions, own.counts, strict=True)
            self.postings.add_postings(term, [(moved[old], count) for old, count in pairs if old in moved])

    def only(self, living: frozenset[int]) -> Packed:
        """The same without chunks that do not live any more."""
        if len(living) == len(self.ids):
            return self
        kept = Packed()
        postings = ((term, Postings(*own)) for term, own in self.postings.by_term().items() if own[1])
        kept.add_living(self.ids, self.lengths, postings, living)
        return kept


class Segments:
    """The segments of a generation, inside a transaction."""

    def __init__(self, db: Connection, tables: Tables) -> None:
        self.db = db
        self.tables = tables

    def all(self) -> list[Segment]:
        """Every segment, those of one source and scope in the order of their ids."""
        return [segment_of_row(row) for row in self.db.execute(self.tables(ALL_SEGMENTS))]

    def of(self, source: Source, scope: str) -> list[Segment]:
        """The segments of one source and scope, in the order of their ids."""
        return [segment_of_row(row) for row in self.db.execute(self.tables(_OF), (source, to_stored(scope)))]

    def positions(self, segment: Segment) -> tuple[array[int], array[int]]:
        """The ids and lengths of a segment."""
        row = self.db.execute(self.tables(_POSITIONS), (segment.number,)).fetchone()
        if row is None or len(row[0]) != 8 * segment.used or len(row[1]) != 2 * segment.used:
            raise IndexCorrupt("a segment of the index is damaged", hint="run `plainmind sync --force`")
        return array("q", row[0]), array("H", row[1])

    def postings(self, segment: Segment) -> Iterator[tuple[str, Postings]]:
        """Every term of a segment."""
        for term, whole, positions, counts in self.db.execute(self.tables(_ALL_POSTINGS), (segment.number,)):
            yield (term if whole is None else whole), Postings(positions, counts)

    def living(self, ids: Iterable[int]) -> frozenset[int]:
        """Those of some ids that are chunks."""
        return frozenset(id_ for (id_,) in self.db.execute(self.tables(_LIVING), (list(ids),)))

    def append(self, segment: Segment, new: Packed, *, revision: int) -> None:
        """Put chunks behind those that a segment has."""
        self.db.execute(
            self.tables(_APPEND_POSITIONS), (new.ids.tobytes(), new.lengths.tobytes(), segment.number)
        )
        count, terms = len(new.ids), sum(new.lengths)
        self.db.execute(self.tables(_GROW), (count, count, terms, revision, revision, segment.number))
        self._write_postings(segment.number, segment.scope, new.postings)

    def insert(self, source: Source, scope: str, new: Packed, *, capacity: int, revision: int) -> None:
        """Make a segment of chunks."""
        stored, count = to_stored(scope), len(new.ids)
        row = self.db.execute(
            self.tables(_INSERT),
            (source, stored, new.ids[0], capacity, count, count, sum(new.lengths), revision, revision),
        ).fetchone()
        number = int(row[0]) if row else 0
        self.db.execute(
            self.tables(_INSERT_POSITIONS), (number, stored, new.ids.tobytes(), new.lengths.tobytes())
        )
        self._write_postings(number, scope, new.postings)

    def bury(self, segments: Sequence[Segment], ids: Iterable[int], *, revision: int) -> list[int]:
        """Make holes of some chunks; returns the numbers of the segments that had them.

        An id that no segment has is left alone: a build that still packs its segment will notice.
        """
        touched = []
        firsts = [each.first_id for each in segments]
        for at, own in groupby(sorted(ids), key=lambda id_: bisect_right(firsts, id_)):
            if at == 0:
                continue
            segment = segments[at - 1]
            known, lengths = self.positions(segment)
            positions = [position for id_ in own if (position := position_of(known, id_)) is not None]
            terms = sum(lengths[position] for position in positions)
            for position in positions:
                lengths[position] = 0
            if positions:
                self.db.execute(self.tables(_SET_LENGTHS), (lengths.tobytes(), segment.number))
                self.db.execute(self.tables(_BURY), (len(positions), terms, revision, segment.number))
                touched.append(segment.number)
        return touched

    def tidy(self, source: Source, scope: str, numbers: Iterable[int], *, revision: int) -> None:
        """Pack those of some segments anew that are mostly holes, each with its neighbour where both are small."""
        wanted = frozenset(numbers)
        segments = self.of(source, scope)
        taken: set[int] = set()
        for at, each in enumerate(segments):
            if each.number in wanted and each.number not in taken and 2 * each.living < each.used:
                run = [each]
                before = segments[at - 1] if at else None
                if before and before.number not in taken and before.living + each.living <= _MERGED:
                    run = [before, each]
                taken.update(one.number for one in run)
                self.pack_anew(run, revision=revision)

    def pack_anew(self, run: Sequence[Segment], *, revision: int) -> None:
        """Put the living chunks of neighbours into one new segment, and delete the old ones."""
        new = Packed()
        for segment in run:
            ids, lengths = self.positions(segment)
            # A chunk without any term has a length of 0, as a hole has: the chunks themselves tell them apart.
            new.add_living(ids, lengths, self.postings(segment), self.living(ids))
        for statement in _DELETE:
            self.db.execute(self.tables(statement), ([each.number for each in run],))
        if new.ids:
            last = run[-1]
            capacity = min(max(last.capacity, len(new.ids)), MOST)
            self.insert(last.source, last.scope, new, capacity=capacity, revision=revision)

    def _write_postings(self, segment: int, scope: str, new: Collected) -> None:
        rows = iter(sorted((term_key(term), term, *own) for term, own in new.by_term().items() if own[1]))
        while portion := list(islice(rows, _ROWS_AT_ONCE)):
            keys, terms, positions, counts = zip(*portion, strict=True)
            wholes = [None if key == term else term for key, term in zip(keys, terms, strict=True)]
            self.db.execute(
                self.tables(_APPEND_POSTINGS),
                (segment, to_stored(scope), list(keys), wholes, list(positions), list(counts)),
            )


def room_in(segments: Sequence[Segment], count: int) -> Iterator[tuple[Segment | None, int, int]]:
    """Where so many new chunks go: a segment (None: a new one), its capacity, and how many of them."""
    newest = segments[-1] if segments else None
    if newest is not None and newest.used < newest.capacity:
        taken = min(count, newest.capacity - newest.used)
        yield newest, newest.capacity, taken
        count -= taken
    own = sum(each.living for each in segments)
    while count > 0:
        capacity = min(_MOST_CAPACITY, max(_LEAST_CAPACITY, own // 4))
        yield None, capacity, min(count, capacity)
        count -= capacity
