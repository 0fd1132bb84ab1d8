"""Writing to segments: runs of chunk ids with their lengths, absences, audience, signs and postings."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import apsw

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Source
from plainmind.base.value import value
from plainmind.index.bm25 import Collected, Postings, without_positions
from plainmind.index.drivers.sqlite.files import one_row, rows
from plainmind.index.drivers.sqlite.view import (
    ABSENCES,
    AUDIENCES,
    LENGTHS,
    MOST,
    SEGMENT_COLUMNS,
    SIGNS,
    Segment,
    all_segments,
    read_absences,
    read_audience,
    read_lengths,
    read_signs,
)
from plainmind.index.vectors import signs_width

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
        in_order = sorted((term, *own) for term, own in by_term.items())
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
