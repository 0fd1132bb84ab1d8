"""What keeps segments in order when chunks go: moving what lives out of mostly empty ones, and wiping holes."""

from __future__ import annotations

from array import array

import apsw

from plainmind.index.drivers.sqlite.connection import rows
from plainmind.index.drivers.sqlite.postings import all_postings, drop_positions
from plainmind.index.drivers.sqlite.segments import (
    Packed,
    Place,
    append,
    delete_segment,
    erase_signs,
    take_places,
)
from plainmind.index.drivers.sqlite.view import (
    Segment,
    all_segments,
    read_absences,
    read_audience,
    read_lengths,
    read_signs,
)
from plainmind.index.signs import signs_width

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
