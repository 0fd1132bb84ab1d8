"""Changes to one generation, each inside a transaction that its caller has begun."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from plainmind.base.model import Chunk, EmbeddedChunk, FileState, IndexFingerprint, Source
from plainmind.base.value import asdict, value
from plainmind.guests.postgres import segments
from plainmind.guests.postgres.session import Tables
from plainmind.guests.postgres.wire import HalfVector, from_stored, to_stored
from plainmind.index import bm25
from plainmind.index.protocol import ANY_CONTENT
from plainmind.index.vectors import packed
from plainmind.index.writer import check_agreement, check_same_scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from plainmind.guests.postgres.connections import Connection
else:
    Protocol = object

# Fewer vectors are sooner compared one by one than by a graph, and none of them is missed.
GRAPH_FROM = 4_096
_MOST_DIMS_OF_A_GRAPH = 4_000  # that pgvector makes of vectors of half precision
_PORTION = 512

_NEXT_REVISION = "UPDATE generations SET revision = revision + 1 WHERE id = %s RETURNING revision"
# Microseconds: a server that has lost its last changes, by a failover, must not give their ids and stamps to others.
_NEXT_CONTENTS = """UPDATE generations
                       SET revision = revision + 1,
                           contents = greatest(contents + 1, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint)
                     WHERE id = %s RETURNING contents"""
_TAKE_IDS = """UPDATE generations
                  SET next_id = greatest(next_id, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint) + %s
                WHERE id = %s RETURNING next_id"""
_KNOWN = "SELECT id, hash, chunks, tallest, scope FROM {files} WHERE name = %s"
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


@value
class Prepared:
    """A chunk made ready before anybody waits for the index."""

    chunk: Chunk
    counted: Mapping[str, int]
    length: int
    vector: bytes | None


@value
class Known:
    """What the index holds of a file."""

    id: int
    hash: str
    chunks: int
    tallest: int
    scope: str


class Placing(Protocol):
    """Where chunks go when they come in, and what becomes of their places when they go."""

    def ids(self, db: Connection, tables: Tables, count: int) -> range:
        """New ids for so many chunks."""

    def put(
        self,
        db: Connection,
        tables: Tables,
        file: FileState,
        ids: Sequence[int],
        chunks: Sequence[Prepared],
        *,
        revision: int,
    ) -> None:
        """Make chunks found by their words."""

    def take(
        self, db: Connection, tables: Tables, source: Source, scope: str, ids: Sequence[int], *, revision: int
    ) -> None:
        """Let some ids be found no more."""


class AtOnce:
    """Chunks are found as soon as the transaction ends."""

    def ids(self, db: Connection, tables: Tables, count: int) -> range:
        """Take ids from the generation."""
        row = db.execute(_TAKE_IDS, (count, tables.generation)).fetchone()
        end = int(row[0]) if row else 0
        return range(end - count, end)

    def put(
        self,
        db: Connection,
        tables: Tables,
        file: FileState,
        ids: Sequence[int],
        chunks: Sequence[Prepared],
        *,
        revision: int,
    ) -> None:
        """Append the chunks to the newest segment of their source and scope."""
        known = segments.segments_of(db, tables, file.source, file.scope)
        coming = iter(zip(ids, chunks, strict=True))
        for segment, capacity, count in segments.room_in(known, len(chunks)):
            new = segments.Packed()
            behind = segment.used if segment else 0
            for id_, each in islice(coming, count):
                new.add(id_, each.length, each.counted, behind=behind)
            if segment is not None:
                segments.append(db, tables, segment, new, revision=revision)
            else:
                segments.insert(
                    db, tables, file.source, file.scope, new, capacity=capacity, revision=revision
                )

    def take(
        self, db: Connection, tables: Tables, source: Source, scope: str, ids: Sequence[int], *, revision: int
    ) -> None:
        """Leave holes, and pack anew what is hardly more than holes."""
        known = segments.segments_of(db, tables, source, scope)
        touched = segments.bury(db, tables, known, ids, revision=revision)
        if touched:
            numbers = [each.number for each in touched]
            segments.tidy(db, tables, source, scope, numbers, revision=revision)


AT_ONCE = AtOnce()


def prepared(chunks: Iterable[EmbeddedChunk], dims: int) -> Iterator[Prepared]:
    """Count terms and pack vectors."""
    for each in chunks:
        counted = bm25.occurrences(each.terms)
        vector = None if each.vector is None else packed(each.vector, dims)
        yield Prepared(each.chunk, counted, bm25.length_of(counted), vector)


def replace_file(
    db: Connection,
    tables: Tables,
    file: FileState,
    chunks: Sequence[EmbeddedChunk],
    *,
    made: IndexFingerprint | None,
    expecting: IndexFingerprint | None,
    replacing: str | None,
    keeping: int,
    placing: Placing,
) -> bool:
    """Take the old chunks of a file out, but for the first, and put the new ones in.

    False when another text was put in before, or there are not so many to keep.
    """
    dims = check_agreement(made, expecting).embedder.dims
    known = known_file(db, tables, file.source, file.path)
    if replacing not in {ANY_CONTENT, known.hash if known else None}:
        return False
    if keeping > (known.chunks if known else 0):
        return False
    if keeping and known:
        check_same_scope(file, known.scope)
    with db.pipeline():
        _exchange(db, tables, file, chunks, known, dims=dims, keeping=keeping, placing=placing)
    return True


def _exchange(
    db: Connection,
    tables: Tables,
    file: FileState,
    chunks: Sequence[EmbeddedChunk],
    known: Known | None,
    *,
    dims: int,
    keeping: int,
    placing: Placing,
) -> None:
    revision = next_contents(db, tables)
    if known:
        drop_chunks(db, tables, file.source, known, placing, keeping=keeping, revision=revision)
    file_id = _put_file(db, tables, file)
    ids = placing.ids(db, tables, len(chunks))
    tallest = known.tallest if known and keeping else 0
    coming = prepared(chunks, dims)
    at = 0
    while portion := list(islice(coming, _PORTION)):
        own = ids[at : at + len(portion)]
        _put_chunks(db, tables, file, own, portion, file_id=file_id)
        placing.put(db, tables, file, own, portion, revision=revision)
        tallest = max(tallest, *(each.chunk.end_line - each.chunk.start_line for each in portion))
        at += len(portion)
    db.execute(tables(_SET_CHUNKS), (keeping + len(chunks), tallest, file_id))


def touch_file(db: Connection, tables: Tables, file: FileState) -> None:
    """Record what the file looks like now, if its text is the one that is indexed, for those who may see it."""
    db.execute(_NEXT_REVISION, (tables.generation,))
    seen = (file.size, file.mtime_ns, signed_64(file.inode))
    name = name_of(file.source, file.path)
    db.execute(tables(_TOUCH_FILE), (*seen, name, file.hash, to_stored(file.scope)))


def remove_file(db: Connection, tables: Tables, source: Source, path: str, placing: Placing) -> None:
    """Take a file and its chunks out, if they are there."""
    revision = next_contents(db, tables)
    known = known_file(db, tables, source, path)
    if known is not None:
        drop_chunks(db, tables, source, known, placing, keeping=0, revision=revision)
        db.execute(tables(_DELETE_FILE), (known.id,))


def wipe_removed(db: Connection, tables: Tables) -> None:
    """Take the terms of all that was removed, ever, out of the index."""
    revision = next_contents(db, tables)
    for segment in segments.all_segments(db, tables):
        if segment.living < segment.used:
            segments.pack_anew(db, tables, [segment], revision=revision)


def next_contents(db: Connection, tables: Tables) -> int:
    """The stamp of a change of chunks, by which all caches will notice it."""
    row = db.execute(_NEXT_CONTENTS, (tables.generation,)).fetchone()
    return int(row[0]) if row else 0


def make_graph_if_large(db: Connection, tables: Tables, dims: int) -> None:
    """Give the vectors a graph once there are so many that comparing all of them takes longer."""
    if 0 < dims <= _MOST_DIMS_OF_A_GRAPH:
        row = db.execute(tables(_COUNT_LIVING)).fetchone()
        if row and row[0] > GRAPH_FROM:
            db.execute(_INDEX_VECTORS, (tables.generation,))


def known_file(db: Connection, tables: Tables, source: Source, path: str) -> Known | None:
    """What the index holds of a file; None when it holds nothing."""
    row = db.execute(tables(_KNOWN), (name_of(source, path),)).fetchone()
    if row is None:
        return None
    id_, hash_, chunks, tallest, scope = row
    return Known(id_, hash_, chunks, tallest, from_stored(scope))


def drop_chunks(
    db: Connection,
    tables: Tables,
    source: Source,
    known: Known,
    placing: Placing,
    *,
    keeping: int,
    revision: int,
) -> None:
    """Take the chunks of a file out, but for the first."""
    ids = [id_ for (id_,) in db.execute(tables(_DELETE_CHUNKS), (known.id, keeping))]
    if ids:
        db.execute(tables(_DELETE_VECTORS), (ids,))
        placing.take(db, tables, source, known.scope, ids, revision=revision)


def name_of(source: Source, path: str) -> bytes:
    """By what a file is found: its path may be too long for an index."""
    import hashlib

    return hashlib.sha256(json.dumps([source, path]).encode()).digest()


def signed_64(number: int) -> int:
    """Fit an unsigned 64-bit number, an inode, into a signed one; `unsigned_64` undoes it."""
    return number - 2**64 if number >= 2**63 else number


def unsigned_64(number: int) -> int:
    """Undo `signed_64`."""
    return number + 2**64 if number < 0 else number


def as_stored(fingerprint: IndexFingerprint) -> str:
    """A fingerprint as a row keeps it."""
    return json.dumps(asdict(fingerprint))


def _put_file(db: Connection, tables: Tables, file: FileState) -> int:
    row = db.execute(
        tables(_PUT_FILE),
        (
            name_of(file.source, file.path), file.source, to_stored(file.path), file.hash, file.size, file.mtime_ns,
            signed_64(file.inode), to_stored(file.scope),
        ),
    ).fetchone()  # fmt: skip
    return int(row[0]) if row else 0


def _put_chunks(
    db: Connection,
    tables: Tables,
    file: FileState,
    ids: Sequence[int],
    chunks: Sequence[Prepared],
    *,
    file_id: int,
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
    db.execute(tables(_PUT_CHUNKS), {"file": file_id, "scope": scope, **columns})
    vectors = {id_: HalfVector(each.vector) for id_, each in zip(ids, chunks, strict=True) if each.vector}
    if vectors:
        db.execute(tables(_PUT_VECTORS), (file.source, scope, list(vectors), list(vectors.values())))
