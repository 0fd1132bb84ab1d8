"""Changes to one generation, each inside a transaction that its caller has begun; and erasing from one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat

import apsw

from plainmind.base.errors import LockTimeout, StorageFailure
from plainmind.base.model import FileState, IndexFingerprint, Source
from plainmind.base.value import asdict, value
from plainmind.index.driver import KnownFile, PreparedChunk
from plainmind.index.drivers.sqlite.files import (
    connect,
    empty_log,
    explain_sqlite_errors,
    give_back_room,
    one_row,
    transaction,
)
from plainmind.index.drivers.sqlite.segments import (
    Packed,
    append,
    bury,
    is_mostly_holes,
    move_out,
    segment_of,
    take_places,
    wipe_holes,
)
from plainmind.index.drivers.sqlite.view import inflate_text, read_fingerprint, storable
from plainmind.index.vectors import pack_vector, signs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

_LOG_TIMEOUT_S = 10.0

_NEXT_REVISION = "UPDATE revision SET value = value + 1 RETURNING value"
_NEXT_CONTENTS = "UPDATE revision SET value = value + 1, contents = value + 1 RETURNING value"
_KNOWN = """SELECT f.id, f.hash, f.chunks, f.tallest, s.name
              FROM files f JOIN scopes s ON s.id = f.scope WHERE f.source = ? AND f.path = ?"""
_SCOPE = "SELECT id FROM scopes WHERE name = ?"
_INSERT_SCOPE = "INSERT INTO scopes (name) VALUES (?) RETURNING id"
_DELETE_UNUSED_SCOPES = "DELETE FROM scopes WHERE id NOT IN (SELECT scope FROM files)"
_INSERT_FILE = """INSERT INTO files (hash, size, mtime_ns, inode, scope, source, path, chunks, tallest)
                  VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0) RETURNING id"""
_UPDATE_FILE = "UPDATE files SET hash = ?, size = ?, mtime_ns = ?, inode = ?, scope = ? WHERE id = ?"
_SET_CHUNKS = "UPDATE files SET chunks = ?, tallest = ? WHERE id = ?"
_TOUCH_FILE = """UPDATE files SET size = ?, mtime_ns = ?, inode = ?
                  WHERE source = ? AND path = ? AND hash = ? AND scope = (SELECT id FROM scopes WHERE name = ?)"""
_INSERT_CHUNK = """INSERT INTO chunks (id, file_id, ordinal, start_line, end_line, length, day, context, text)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INSERT_VECTOR = "INSERT INTO vectors (id, vector) VALUES (?, ?)"
# From the end: of a long file that grows, the last few are replaced.
_CHUNKS_OF = "SELECT id, ordinal, length FROM chunks WHERE file_id = ? ORDER BY start_line DESC, id DESC"
_DELETE_CHUNK = "DELETE FROM chunks WHERE id = ?"
_DELETE_VECTOR = "DELETE FROM vectors WHERE id = ?"
_DELETE_FILE = "DELETE FROM files WHERE id = ?"
_ADD_TO_TOTALS = """INSERT INTO totals (source, files, chunks, terms) VALUES (?, ?, ?, ?)
                    ON CONFLICT (source) DO UPDATE SET files  = files  + excluded.files,
                                                       chunks = chunks + excluded.chunks,
                                                       terms  = terms  + excluded.terms"""
_SET_META = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"


@value
class Ready:
    """A prepared chunk, with the vector as this index keeps it."""

    prepared: PreparedChunk
    vector: bytes | None
    signs: bytes | None
    scope: int


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
                new.add(each.prepared.length, each.signs, each.scope)
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


def write_fingerprint(db: apsw.Connection, fingerprint: IndexFingerprint, reason: str) -> None:
    """Say how the index is made, and why it was made anew."""
    one_row(db, _NEXT_CONTENTS)
    db.execute(_SET_META, ("fingerprint", json.dumps(asdict(fingerprint))))
    db.execute(_SET_META, ("reason", reason))


class SqliteChange:
    """One transaction of one generation; its ids come from a placing."""

    def __init__(self, db: apsw.Connection, placing: Placing) -> None:
        self._db = db
        self._placing = placing

    def fingerprint(self) -> IndexFingerprint | None:
        """How the index is made."""
        return read_fingerprint(self._db)

    def known(self, source: Source, path: str) -> KnownFile | None:
        """What it holds of a file."""
        row = self._db.execute(_KNOWN, (source, path)).fetchone()
        if row is None:
            return None
        id_, hash_, chunks, tallest, scope = row
        return KnownFile(id_, hash_, inflate_text(scope), chunks, tallest)

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
        db = self._db
        revision = next_contents(db)
        scope = _number_of(db, file.scope)
        seen = (file.hash, file.size, file.mtime_ns, signed_64(file.inode), scope)
        if known:
            self._drop_chunks(file.source, known, keeping=keeping, dims=dims, revision=revision)
            db.execute(_UPDATE_FILE, (*seen, known.number))
            file_id = known.number
        else:
            (file_id,) = one_row(db, _INSERT_FILE, (*seen, file.source, file.path))
        count = length = 0
        tallest = known.tallest if known and keeping else 0
        for chunks in portions:
            ready = [_ready(each, dims, scope) for each in chunks]
            ids = self._placing.put(db, file.source, ready, dims=dims, revision=revision)
            db.executemany(_INSERT_CHUNK, map(_chunk_row, ids, repeat(file_id), chunks))
            db.executemany(
                _INSERT_VECTOR,
                [(id_, each.vector) for id_, each in zip(ids, ready, strict=True) if each.vector is not None],
            )
            count += len(chunks)
            length += sum(each.length for each in chunks)
            tallest = max(tallest, *(each.chunk.end_line - each.chunk.start_line for each in chunks), 0)
        db.execute(_SET_CHUNKS, (keeping + count, tallest, file_id))
        db.execute(_ADD_TO_TOTALS, (file.source, 0 if known else 1, count, length))

    def touch(self, file: FileState) -> None:
        """Record what the file looks like now, if its text is the one that is indexed, for those who may see it."""
        one_row(self._db, _NEXT_REVISION)
        seen = (file.size, file.mtime_ns, signed_64(file.inode))
        self._db.execute(_TOUCH_FILE, (*seen, file.source, file.path, file.hash, storable(file.scope)))

    def remove(self, source: Source, path: str) -> None:
        """Take a file and its chunks out, if they are there."""
        fingerprint = read_fingerprint(self._db)
        if fingerprint is None:
            return
        revision = next_contents(self._db)
        known = self.known(source, path)
        if known is not None:
            dims = fingerprint.embedder.dims
            self._drop_chunks(source, known, keeping=0, dims=dims, revision=revision)
            self._db.execute(_DELETE_FILE, (known.number,))
            self._db.execute(_ADD_TO_TOTALS, (source, -1, 0, 0))

    def _drop_chunks(
        self, source: Source, known: KnownFile, *, keeping: int, dims: int, revision: int
    ) -> None:
        """Take the chunks of a file out, but for the first."""
        gone = _chunks_behind(self._db, known, keeping)
        ids = [(id_,) for id_, _ in gone]
        self._db.executemany(_DELETE_CHUNK, ids)
        self._db.executemany(_DELETE_VECTOR, ids)
        self._placing.take(self._db, (id_ for (id_,) in ids), dims=dims, revision=revision)
        self._db.execute(_ADD_TO_TOTALS, (source, 0, -len(gone), -sum(length for _, length in gone)))


def wipe_removed(db: apsw.Connection) -> None:
    """Take the terms, signs and scopes of all that was removed, ever, out of the index."""
    fingerprint = read_fingerprint(db)
    if fingerprint is not None:
        wipe_holes(db, dims=fingerprint.embedder.dims, revision=next_contents(db))
        db.execute(_DELETE_UNUSED_SCOPES)


def next_contents(db: apsw.Connection) -> int:
    """The revision of a change of chunks, as all caches will notice it."""
    (revision,) = one_row(db, _NEXT_CONTENTS)
    return int(revision)


def signed_64(number: int) -> int:
    """Fit an unsigned 64-bit number, an inode, into SQLite's signed integers; `overview.unsigned_64` undoes it."""
    return number - 2**64 if number >= 2**63 else number


def _ready(chunk: PreparedChunk, dims: int, scope: int) -> Ready:
    if chunk.vector is None:
        return Ready(chunk, None, None, scope)
    vector = pack_vector(chunk.vector, dims)
    return Ready(chunk, vector, signs_of(vector), scope)


def _chunk_row(id_: int, file_id: int, each: PreparedChunk) -> tuple[object, ...]:
    chunk = each.chunk
    return (
        id_, file_id, chunk.ordinal, chunk.start_line, chunk.end_line, each.length, chunk.day,
        storable(chunk.context), each.body,
    )  # fmt: skip


def _number_of(db: apsw.Connection, scope: str) -> int:
    """The number of a scope, a new one where it has none."""
    name = (storable(scope),)
    (number,) = db.execute(_SCOPE, name).fetchone() or one_row(db, _INSERT_SCOPE, name)
    return int(number)


def _chunks_behind(db: apsw.Connection, known: KnownFile, keeping: int) -> list[tuple[int, int]]:
    """The ids and lengths of the chunks of a file but for the first: those that are kept are not even looked at."""
    found: list[tuple[int, int]] = []
    for id_, ordinal, length in db.execute(_CHUNKS_OF, (known.number,)):
        if keeping and len(found) == known.chunks - keeping:
            break
        if ordinal >= keeping:
            found.append((id_, length))
    return found


def erase_traces(database: str, source: Source, paths: Iterable[str]) -> None:
    """Take files out of one generation, and out of its postings, free space and log."""
    with explain_sqlite_errors(), _say_what_is_left():
        db = connect(database, for_writing=True)
        try:
            with transaction(db):
                change = SqliteChange(db, AT_ONCE)
                for path in paths:
                    change.remove(source, path)
                wipe_removed(db)
            _write_anew(db)
            deadline = time.monotonic() + _LOG_TIMEOUT_S
            while not empty_log(db):
                if time.monotonic() > deadline:
                    raise apsw.BusyError("a reader keeps the log")
                time.sleep(0.01)
        finally:
            db.close()


def _write_anew(db: apsw.Connection) -> None:
    """Write every page anew: zeros go over what is deleted, but not over what SQLite has moved to another page."""
    try:
        db.execute("VACUUM")
    except apsw.FullError:
        give_back_room(db)
        raise


@contextmanager
def _say_what_is_left() -> Iterator[None]:
    """An erasure that fails may have come half-way; the files are clean by then, so making the index anew ends it."""
    anew = "then run `plainmind sync --force`: it makes the index anew, without the text"
    try:
        yield
    except apsw.FullError as error:
        raise StorageFailure(
            "the disk is too full to erase text from the index: some of it may be left in the index's file",
            hint=f"free as much space as the index takes, {anew}",
        ) from error
    except apsw.BusyError as error:
        raise LockTimeout(
            "a reader is in the way of erasing text from the index: some of it may be left in the index's file",
            hint=f"end long-running searches, {anew}",
        ) from error
