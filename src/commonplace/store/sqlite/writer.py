"""Changes to one generation, each inside a transaction that its caller has begun."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat

import apsw

from commonplace.model import (
    Chunk,
    EmbeddedChunk,
    FileState,
    IndexFingerprint,
    Source,
    Vector,
)
from commonplace.store import bm25
from commonplace.store.agreement import check_agreement
from commonplace.store.kernels import packed
from commonplace.store.protocol import ANY_CONTENT
from commonplace.store.signs import signs_of
from commonplace.store.sqlite.connection import one_row, rows
from commonplace.store.sqlite.moving import is_mostly_holes, move_out, wipe_holes
from commonplace.store.sqlite.overview import read_fingerprint
from commonplace.store.sqlite.segments import Packed, append, bury, segment_of, take_places
from commonplace.store.sqlite.texts import squeezed, storable
from commonplace.value import asdict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

_PORTION = 512

_NEXT_REVISION = "UPDATE revision SET value = value + 1 RETURNING value"
_NEXT_CONTENTS = "UPDATE revision SET value = value + 1, contents = value + 1 RETURNING value"
_FILE_HASH = "SELECT hash FROM files WHERE source = ? AND path = ?"
_FILE_ID = "SELECT id FROM files WHERE source = ? AND path = ?"
_INSERT_FILE = """INSERT INTO files (source, path, hash, size, mtime_ns, inode, tallest)
                  VALUES (?, ?, ?, ?, ?, ?, 0) RETURNING id"""
_SET_TALLEST = "UPDATE files SET tallest = ? WHERE id = ?"
_TOUCH_FILE = """UPDATE files SET size = ?, mtime_ns = ?, inode = ?
                  WHERE source = ? AND path = ? AND hash = ?"""
_INSERT_CHUNK = """INSERT INTO chunks (id, file_id, ordinal, start_line, end_line, length, day, context, text)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INSERT_VECTOR = "INSERT INTO vectors (id, vector) VALUES (?, ?)"
_CHUNKS_OF = "SELECT id, length FROM chunks WHERE file_id = ?"
_DELETE_CHUNK = "DELETE FROM chunks WHERE id = ?"
_DELETE_VECTOR = "DELETE FROM vectors WHERE id = ?"
_DELETE_FILE = "DELETE FROM files WHERE id = ?"
_ADD_TO_TOTALS = """INSERT INTO totals (source, files, chunks, terms) VALUES (?, ?, ?, ?)
                    ON CONFLICT (source) DO UPDATE SET files  = files  + excluded.files,
                                                       chunks = chunks + excluded.chunks,
                                                       terms  = terms  + excluded.terms"""
_SET_META = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"


@value
class Prepared:
    """A chunk made ready before anybody waits for the index."""

    chunk: Chunk
    text: str | bytes
    counted: Mapping[str, int]
    length: int
    vector: Vector | None


@value
class Ready:
    """A prepared chunk, with the vector as this index keeps it."""

    prepared: Prepared
    vector: bytes | None
    signs: bytes | None


class Placing(Protocol):
    """Where chunks go when they come in, and what becomes of their places when they go."""

    def put(
        self, db: apsw.Connection, source: Source, chunks: Sequence[Ready], *, dims: int, revision: int
    ) -> list[int]:
        """Give every chunk an id, and make it found by it."""

    def take(self, db: apsw.Connection, ids: Iterable[int], *, dims: int, revision: int) -> None:
        """Let some ids be found no more."""


class AtOnce:
    """Chunks are found as soon as the transaction ends."""

    def put(
        self, db: apsw.Connection, source: Source, chunks: Sequence[Ready], *, dims: int, revision: int
    ) -> list[int]:
        """Append the chunks to the source's newest segment."""
        ids: list[int] = []
        for place in take_places(db, source, len(chunks), dims=dims, revision=revision):
            new = Packed(dims)
            own = chunks[len(ids) : len(ids) + place.count]
            for position, each in enumerate(own, place.first_position):
                new.add(each.prepared.length, each.signs)
                new.postings.add(position, each.prepared.counted)
            append(db, place, new, revision=revision)
            ids += place.ids
        return ids

    def take(self, db: apsw.Connection, ids: Iterable[int], *, dims: int, revision: int) -> None:
        """Leave holes, and move out of segments that are hardly more than holes."""
        for first_id in bury(db, ids, revision=revision):
            segment = segment_of(db, first_id)  # now: the one before may have moved into it
            if is_mostly_holes(segment):
                move_out(db, segment, dims=dims, revision=revision)


AT_ONCE = AtOnce()


def prepared(chunks: Iterable[EmbeddedChunk]) -> list[Prepared]:
    """Do what needs no index."""
    found = []
    for each in chunks:
        counted = bm25.occurrences(each.terms)
        found.append(
            Prepared(each.chunk, squeezed(each.chunk.text), counted, bm25.length_of(counted), each.vector)
        )
    return found


def in_portions(chunks: Iterable[EmbeddedChunk]) -> Iterator[list[Prepared]]:
    """Prepare chunks, a few at a time."""
    coming = iter(chunks)
    while portion := prepared(islice(coming, _PORTION)):
        yield portion


def write_fingerprint(db: apsw.Connection, fingerprint: IndexFingerprint, reason: str) -> None:
    """Say how the index is made, and why it was made anew."""
    one_row(db, _NEXT_CONTENTS)
    db.execute(_SET_META, ("fingerprint", json.dumps(asdict(fingerprint))))
    db.execute(_SET_META, ("reason", reason))


def replace_file(
    db: apsw.Connection,
    file: FileState,
    portions: Iterable[Sequence[Prepared]],
    *,
    expecting: IndexFingerprint | None,
    replacing: str | None,
    placing: Placing,
) -> bool:
    """Take the old chunks of a file out and put the new ones in; False when another text was put in before."""
    dims = check_agreement(read_fingerprint(db), expecting).embedder.dims
    if replacing != ANY_CONTENT:
        known = db.execute(_FILE_HASH, (file.source, file.path)).fetchone()
        if replacing != (known and known[0]):
            return False
    revision = next_contents(db)
    _drop_file(db, file.source, file.path, placing, dims=dims, revision=revision)
    seen = (file.source, file.path, file.hash, file.size, file.mtime_ns, signed_64(file.inode))
    (file_id,) = one_row(db, _INSERT_FILE, seen)
    count = length = tallest = 0
    for chunks in portions:
        ready = [_ready(each, dims) for each in chunks]
        ids = placing.put(db, file.source, ready, dims=dims, revision=revision)
        db.executemany(_INSERT_CHUNK, map(_chunk_row, ids, repeat(file_id), chunks))
        db.executemany(
            _INSERT_VECTOR,
            [(id_, each.vector) for id_, each in zip(ids, ready, strict=True) if each.vector is not None],
        )
        count += len(chunks)
        length += sum(each.length for each in chunks)
        tallest = max(tallest, *(each.chunk.end_line - each.chunk.start_line for each in chunks), 0)
    db.execute(_SET_TALLEST, (tallest, file_id))
    db.execute(_ADD_TO_TOTALS, (file.source, 1, count, length))
    return True


def touch_file(db: apsw.Connection, file: FileState) -> None:
    """Record what the file looks like now, if its text is the one that is indexed."""
    one_row(db, _NEXT_REVISION)
    db.execute(
        _TOUCH_FILE,
        (file.size, file.mtime_ns, signed_64(file.inode), file.source, file.path, file.hash),
    )


def remove_file(db: apsw.Connection, source: Source, path: str, placing: Placing) -> None:
    """Take a file and its chunks out, if they are there."""
    fingerprint = read_fingerprint(db)
    if fingerprint is not None:
        dims = fingerprint.embedder.dims
        _drop_file(db, source, path, placing, dims=dims, revision=next_contents(db))


def wipe_removed(db: apsw.Connection) -> None:
    """Take the terms and signs of all that was removed, ever, out of the index."""
    fingerprint = read_fingerprint(db)
    if fingerprint is not None:
        wipe_holes(db, dims=fingerprint.embedder.dims, revision=next_contents(db))


def next_contents(db: apsw.Connection) -> int:
    """The revision of a change of chunks, as all caches will notice it."""
    (revision,) = one_row(db, _NEXT_CONTENTS)
    return int(revision)


def signed_64(number: int) -> int:
    """Fit an unsigned 64-bit number, an inode, into SQLite's signed integers; `overview.unsigned_64` undoes it."""
    return number - 2**64 if number >= 2**63 else number


def _ready(chunk: Prepared, dims: int) -> Ready:
    if chunk.vector is None:
        return Ready(chunk, None, None)
    vector = packed(chunk.vector, dims)
    return Ready(chunk, vector, signs_of(vector))


def _chunk_row(id_: int, file_id: int, each: Prepared) -> tuple[object, ...]:
    chunk = each.chunk
    return (
        id_, file_id, chunk.ordinal, chunk.start_line, chunk.end_line, each.length, chunk.day,
        storable(chunk.context), each.text,
    )  # fmt: skip


def _drop_file(
    db: apsw.Connection, source: Source, path: str, placing: Placing, *, dims: int, revision: int
) -> None:
    row = db.execute(_FILE_ID, (source, path)).fetchone()
    if row is None:
        return
    chunks = rows(db, _CHUNKS_OF, row)
    ids = [(id_,) for id_, _ in chunks]
    db.executemany(_DELETE_CHUNK, ids)
    db.executemany(_DELETE_VECTOR, ids)
    placing.take(db, (id_ for (id_,) in ids), dims=dims, revision=revision)
    db.execute(_DELETE_FILE, row)
    db.execute(_ADD_TO_TOTALS, (source, -1, -len(chunks), -sum(length for _, length in chunks)))
