"""Changes to one generation, each inside a transaction that its caller has begun; erasing from one; and its segments.

A segment is a run of chunk ids with their lengths, absences, audience, signs and postings.
"""

from __future__ import annotations

import json
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, repeat

import apsw

from plainmind.base.errors import IndexCorrupt, LockTimeout, StorageFailure
from plainmind.base.model import FileState, IndexFingerprint, Source
from plainmind.base.value import asdict, value
from plainmind.index.bm25 import Collected, Postings, without_positions
from plainmind.index.driver import KnownFile, PreparedChunk
from plainmind.index.drivers.sqlite.files import (
    connect,
    empty_log,
    explain_sqlite_errors,
    give_back_room,
    one_row,
    rows,
    transaction,
)
from plainmind.index.drivers.sqlite.view import (
    ABSENCES,
    AUDIENCES,
    LENGTHS,
    MOST,
    SEGMENT_COLUMNS,
    SIGNS,
    Segment,
    all_segments,
    inflate_text,
    read_absences,
    read_audience,
    read_fingerprint,
    read_lengths,
    read_signs,
    storable,
)
from plainmind.index.vectors import lengthen, shorten, signs_of, signs_width

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
    vector = shorten(chunk.vector, dims)
    return Ready(chunk, vector, signs_of(lengthen(vector, dims)), scope)


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


# New segments for single files take a quarter of what their source has, within these bounds: small ones cost little
# to append to, few ones little to search.
_LEAST_CAPACITY = 512
_MOST_CAPACITY = 8_192

_OPEN = f"SELECT {SEGMENT_COLUMNS} FROM segments WHERE source = ? AND used < capacity ORDER BY first_id DESC LIMIT 1"  # noqa: S608
_OF_ID = f"SELECT {SEGMENT_COLUMNS} FROM segments WHERE first_id <= ? ORDER BY first_id DESC LIMIT 1"  # noqa: S608
_CHUNKS_OF_SOURCE = "SELECT coalesce(sum(chunks), 0) FROM totals WHERE source = ?"
_TAKE_IDS = "UPDATE revision SET next_id = next_id + ? RETURNING next_id - ?"
_INSERT = "INSERT INTO segments VALUES (?, ?, ?, 0, 0, 0, ?, ?)"
_INSERT_LENGTHS = "INSERT INTO lengths VALUES (?, ?)"
_INSERT_ABSENT = "INSERT INTO absences VALUES (?, ?)"
_INSERT_AUDIENCE = "INSERT INTO audiences VALUES (?, ?)"
_INSERT_SIGNS = "INSERT INTO signs VALUES (?, ?)"
_GROW = "UPDATE segments SET used = ?, revision = ?, posted = ? WHERE first_id = ?"
_FILL = "UPDATE segments SET used = ?, capacity = ?, dead = ?, revision = ?, posted = ? WHERE first_id = ?"
_BURY = "UPDATE segments SET dead = dead + ?, stale = stale + ?, revision = ? WHERE first_id = ?"
_DELETE = (
    "DELETE FROM lengths WHERE segment = ?",
    "DELETE FROM absences WHERE segment = ?",
    "DELETE FROM audiences WHERE segment = ?",
    "DELETE FROM signs WHERE segment = ?",
    "DELETE FROM segments WHERE first_id = ?",
)


@value
class Place:
    """Free positions of a segment for some chunks."""

    segment: Segment
    count: int

    @property
    def first_position(self) -> int:
        """The position of the first of them."""
        return self.segment.used

    @property
    def ids(self) -> range:
        """The ids that the chunks get."""
        first = self.segment.first_id + self.segment.used
        return range(first, first + self.count)


class Packed:
    """What a run of chunks adds to the blobs and the postings of a segment."""

    def __init__(self, dims: int) -> None:
        self.lengths = array("H")
        self.absent = bytearray()
        self.scopes = array("I")
        self.signs = bytearray()
        self.postings = Collected()
        self._no_signs = bytes(signs_width(dims))

    def add(self, length: int, signs: bytes | None, scope: int) -> None:
        """Add one chunk, without its postings."""
        self.lengths.append(length)
        self.absent.append(255 if signs is None else 0)
        self.scopes.append(scope)
        self.signs += self._no_signs if signs is None else signs

    def leave_out(self, dead: frozenset[int]) -> None:
        """Make holes of some positions."""
        width = len(self._no_signs)
        for position in dead:
            self.lengths[position] = 0
            self.absent[position] = 255
            self.signs[position * width : (position + 1) * width] = self._no_signs
        self.postings.drop(dead)


def take_places(
    db: apsw.Connection, source: Source, count: int, *, dims: int, revision: int
) -> Iterator[Place]:
    """Free positions for so many chunks; each must be filled before the next is asked for."""
    while count > 0:
        row = db.execute(_OPEN, (source,)).fetchone()
        segment = Segment(*row) if row else _open_segment(db, source, count, dims=dims, revision=revision)
        taken = min(count, segment.capacity - segment.used)
        yield Place(segment, taken)
        count -= taken


def append(db: apsw.Connection, place: Place, new: Packed, *, revision: int) -> None:
    """Fill a place."""
    segment, first = place.segment, place.first_position
    key = segment.first_id
    for where, content in (
        (LENGTHS, new.lengths.tobytes()),
        (ABSENCES, new.absent),
        (AUDIENCES, new.scopes.tobytes()),
        (SIGNS, new.signs),
    ):
        with _blob(db, where, key) as blob:
            blob.seek(first * (len(content) // place.count))
            blob.write(content)
    write_postings(db, key, new.postings, into_empty=first == 0)
    db.execute(_GROW, (first + place.count, revision, revision, key))


def reserve(db: apsw.Connection, source: Source, *, revision: int) -> int:
    """Take the ids of a large segment that is filled at once, later, and takes nothing else; returns the first."""
    return _new_segment(db, source, 0, MOST, revision)


def fill(db: apsw.Connection, first_id: int, new: Packed, *, dead: int, revision: int) -> None:
    """Write all of a reserved segment; it takes no more afterwards. One without living chunks is given up."""
    used = len(new.absent)
    if used == dead:
        db.execute(_DELETE[-1], (first_id,))
        return
    db.execute(_INSERT_LENGTHS, (first_id, new.lengths.tobytes()))
    db.execute(_INSERT_ABSENT, (first_id, bytes(new.absent)))
    db.execute(_INSERT_AUDIENCE, (first_id, new.scopes.tobytes()))
    db.execute(_INSERT_SIGNS, (first_id, bytes(new.signs)))
    write_postings(db, first_id, new.postings, into_empty=True)
    db.execute(_FILL, (used, used, dead, revision, revision, first_id))


def bury(db: apsw.Connection, ids: Iterable[int], *, revision: int) -> list[int]:
    """Make holes of some ids; returns the first ids of the segments they were in.

    An id that its segment has not come to yet is left alone: the build of the segment will notice.
    """
    touched: list[int] = []
    for first_id, own in by_segment(db, sorted(ids)):
        segment = segment_of(db, first_id)
        positions = [id_ - first_id for id_ in own if id_ - first_id < segment.used]
        if not positions:
            continue
        with _blob(db, LENGTHS, first_id) as lengths:
            _overwrite(lengths, positions, b"\x00\x00")
        with _blob(db, ABSENCES, first_id) as absent:
            _overwrite(absent, positions, b"\xff")
        db.execute(_BURY, (len(positions), len(positions), revision, first_id))
        touched.append(first_id)
    return touched


def erase_signs(db: apsw.Connection, segment: Segment, positions: Sequence[int], *, dims: int) -> None:
    """Overwrite the signs of holes."""
    if dims:
        with _blob(db, SIGNS, segment.first_id) as signs:
            _overwrite(signs, positions, bytes(signs_width(dims)))


def delete_segment(db: apsw.Connection, segment: Segment) -> None:
    """Take out a segment whose chunks have gone elsewhere."""
    drop_all_postings(db, segment.first_id)
    for statement in _DELETE:
        db.execute(statement, (segment.first_id,))


def segment_of(db: apsw.Connection, id_: int) -> Segment:
    """The segment that an id belongs to."""
    row = db.execute(_OF_ID, (id_,)).fetchone()
    if row is None or id_ >= row[0] + MOST:
        raise IndexCorrupt("a chunk of the index belongs to no segment", hint="run `plainmind sync --force`")
    return Segment(*row)


def by_segment(db: apsw.Connection, ids: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Ascending ids, grouped by the first id of their segments."""
    firsts = [first for (first,) in rows(db, "SELECT first_id FROM segments ORDER BY first_id")]
    for at, own in groupby(ids, key=lambda id_: bisect_right(firsts, id_)):
        if at == 0:
            raise IndexCorrupt(
                "a chunk of the index belongs to no segment", hint="run `plainmind sync --force`"
            )
        yield firsts[at - 1], list(own)


def _open_segment(db: apsw.Connection, source: Source, count: int, *, dims: int, revision: int) -> Segment:
    (known,) = one_row(db, _CHUNKS_OF_SOURCE, (source,))
    usual = min(_MOST_CAPACITY, max(_LEAST_CAPACITY, known // 4))
    capacity = min(MOST, max(usual, count))
    first_id = _new_segment(db, source, capacity, capacity, revision)
    db.execute(_INSERT_LENGTHS, (first_id, apsw.zeroblob(2 * capacity)))
    db.execute(_INSERT_ABSENT, (first_id, apsw.zeroblob(capacity)))
    db.execute(_INSERT_AUDIENCE, (first_id, apsw.zeroblob(4 * capacity)))
    db.execute(_INSERT_SIGNS, (first_id, apsw.zeroblob(capacity * signs_width(dims))))
    return segment_of(db, first_id)


def _new_segment(db: apsw.Connection, source: Source, capacity: int, ids: int, revision: int) -> int:
    (first_id,) = one_row(db, _TAKE_IDS, (ids, ids))
    db.execute(_INSERT, (first_id, source, capacity, revision, revision))
    return int(first_id)


def _blob(db: apsw.Connection, where: tuple[str, str], first_id: int) -> apsw.Blob:
    return db.blob_open("main", *where, first_id, True)  # noqa: FBT003 (for writing)


def _overwrite(blob: apsw.Blob, positions: Sequence[int], unit: bytes) -> None:
    """Fill runs of positions with the same unit."""
    for _, run in groupby(enumerate(positions), key=lambda pair: pair[1] - pair[0]):
        own = [position for _, position in run]
        blob.seek(own[0] * len(unit))
        blob.write(unit * len(own))


_INSERT_POSTINGS = "INSERT INTO postings (segment, term, positions, counts) VALUES (?, ?, ?, ?)"
# `||` joins blobs byte by byte, and calls the result a text.
_APPEND_POSTINGS = """INSERT INTO postings (segment, term, positions, counts) VALUES (?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET positions = CAST(positions || excluded.positions AS BLOB),
                                       counts    = CAST(counts    || excluded.counts    AS BLOB)"""
_ALL_POSTINGS = "SELECT term, positions, counts FROM postings WHERE segment = ?"
_REWRITE_POSTINGS = "UPDATE postings SET positions = ?, counts = ? WHERE segment = ? AND term = ?"
_DELETE_POSTINGS = "DELETE FROM postings WHERE segment = ? AND term = ?"
_DELETE_ALL_POSTINGS = "DELETE FROM postings WHERE segment = ?"


def write_postings(db: apsw.Connection, segment: int, new: Collected, *, into_empty: bool) -> None:
    """Write postings to a segment: behind those that it has, or as its first."""
    by_term = new.by_term()
    if into_empty:
        # In the order of the table, so that each page of it is written once.
        in_order = ((term, *by_term[term]) for term in sorted(by_term))
        db.executemany(_INSERT_POSTINGS, ((segment, *row) for row in in_order if row[2]))
    else:
        db.executemany(_APPEND_POSTINGS, ((segment, term, *own) for term, own in by_term.items() if own[1]))


def all_postings(db: apsw.Connection, segment: int) -> Iterator[tuple[str, Postings]]:
    """Every term of a segment."""
    for term, positions, counts in db.execute(_ALL_POSTINGS, (segment,)):
        yield term, Postings(positions, counts)


def drop_positions(db: apsw.Connection, segment: int, dead: frozenset[int]) -> None:
    """Take positions out of all postings of a segment; a term that stands nowhere any more goes too."""
    changed, gone = [], []
    for term, postings in all_postings(db, segment):
        if dead.isdisjoint(postings.positions):
            continue
        positions, counts = without_positions(postings, dead)
        if counts:
            changed.append((positions, counts, segment, term))
        else:
            gone.append((segment, term))
    db.executemany(_REWRITE_POSTINGS, changed)
    db.executemany(_DELETE_POSTINGS, gone)


def drop_all_postings(db: apsw.Connection, segment: int) -> None:
    """Take out all postings of a segment."""
    db.execute(_DELETE_ALL_POSTINGS, (segment,))


# Fewer holes are not worth moving anything for.
_MANY_HOLES = 512

_IDS_BETWEEN = "SELECT id FROM chunks WHERE id >= ? AND id < ? ORDER BY id"
_CLOSE = "UPDATE segments SET capacity = used WHERE first_id = ?"
_MOVE_CHUNK = "UPDATE chunks SET id = ? WHERE id = ?"
_MOVE_VECTOR = "UPDATE vectors SET id = ? WHERE id = ?"
_WIPED = "UPDATE segments SET stale = 0, revision = ?, posted = ? WHERE first_id = ?"


def is_mostly_holes(segment: Segment) -> bool:
    """Whether it is time to move out: half of it is holes, and it is full or has many."""
    full = segment.used == segment.capacity
    return 2 * segment.dead > segment.used and (full or segment.dead > _MANY_HOLES)


def move_out(db: apsw.Connection, segment: Segment, *, dims: int, revision: int) -> None:
    """Move the living chunks of a segment to others, under new ids, and delete it."""
    living = _living(db, segment)
    if living:
        db.execute(_CLOSE, (segment.first_id,))
        lengths, scopes = array("H", read_lengths(db, segment)), array("I", read_audience(db, segment))
        absent, signs = read_absences(db, segment), read_signs(db, segment, dims=dims)
        width = signs_width(dims)
        moved = 0
        for place in take_places(db, segment.source, len(living), dims=dims, revision=revision):
            own = living[moved : moved + place.count]
            moved += place.count
            new = Packed(dims)
            for position in own:
                new.add(
                    lengths[position],
                    None if absent[position] else signs[position * width : (position + 1) * width],
                    scopes[position],
                )
            _bring_postings(db, segment, place, own, new)
            append(db, place, new, revision=revision)
            pairs = [(id_, segment.first_id + old) for id_, old in zip(place.ids, own, strict=True)]
            db.executemany(_MOVE_CHUNK, pairs)
            db.executemany(_MOVE_VECTOR, pairs)
    delete_segment(db, segment)


def wipe_holes(db: apsw.Connection, *, dims: int, revision: int) -> None:
    """Take what no longer lives out of the postings and the signs of every segment."""
    for segment in all_segments(db):
        if segment.stale:
            dead = frozenset(range(segment.used)).difference(_living(db, segment))
            drop_positions(db, segment.first_id, dead)
            erase_signs(db, segment, sorted(dead), dims=dims)
            db.execute(_WIPED, (revision, revision, segment.first_id))


def _living(db: apsw.Connection, segment: Segment) -> list[int]:
    between = (segment.first_id, segment.first_id + segment.used)
    return [id_ - segment.first_id for (id_,) in rows(db, _IDS_BETWEEN, between)]


def _bring_postings(db: apsw.Connection, segment: Segment, place: Place, own: list[int], new: Packed) -> None:
    moved = {old: place.first_position + at for at, old in enumerate(own)}
    for term, postings in all_postings(db, segment.first_id):
        pairs = zip(postings.positions, postings.counts, strict=True)
        new.postings.add_postings(term, [(moved[old], count) for old, count in pairs if old in moved])
