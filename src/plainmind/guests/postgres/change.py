"""One change of a generation, inside a transaction that its store has begun."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from plainmind.base.model import FileState, IndexFingerprint, Source
from plainmind.guests.postgres.segments import Packed, Segments, room_in
from plainmind.guests.postgres.session import Tables
from plainmind.guests.postgres.view import GRAPH_FROM, MOST
from plainmind.guests.postgres.wire import HalfVector, file_name, from_stored, signed_64, to_stored
from plainmind.index.driver import KnownFile, PreparedChunk
from plainmind.index.vectors import pack_vector

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
            id_: HalfVector(pack_vector(each.vector, dims))
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
