"""Vectors in packed segments: put into free slots, taken out again, and scanned exactly."""

from __future__ import annotations

import threading
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw

from commonplace.model import Source
from commonplace.store.kernels import BYTES_PER_NUMBER, choose_dots
from commonplace.store.sqlite.connection import one_row, open_block, rows

SLOTS = 1024
_CACHE_BYTES = 96 * 1024 * 1024

_OPEN_SEGMENTS = "SELECT id, chunk_ids FROM vector_segments WHERE source = ? AND used < ? ORDER BY id"
_NEW_SEGMENT = "INSERT INTO vector_segments (source, used, revision, chunk_ids) VALUES (?, 0, 0, zeroblob(?))"
_NEW_BLOCK = "INSERT INTO vector_blocks (id, vectors) VALUES (?, zeroblob(?))"
_SEGMENT = "SELECT chunk_ids FROM vector_segments WHERE id = ?"
_SAVE_SEGMENT = "UPDATE vector_segments SET chunk_ids = ?, used = ?, revision = ? WHERE id = ?"
_SEGMENTS = "SELECT id, revision FROM vector_segments WHERE source = ? AND used > 0"
_LOAD = """SELECT s.chunk_ids, b.vectors
             FROM vector_segments s JOIN vector_blocks b ON b.id = s.id
            WHERE s.id = ?"""


def put_vectors(
    db: apsw.Connection, source: Source, vectors: Sequence[tuple[int, bytes]], *, dims: int, revision: int
) -> dict[int, int]:
    """Store (chunk id, packed vector) pairs in free slots; returns the slot of each chunk."""
    slots: dict[int, int] = {}
    waiting = list(reversed(vectors))
    for segment, blob in rows(db, _OPEN_SEGMENTS, (source, SLOTS)) if waiting else ():
        if waiting:
            slots |= _fill(db, segment, array("q", blob), waiting, dims=dims, revision=revision)
    while waiting:
        db.execute(_NEW_SEGMENT, (source, 8 * SLOTS))
        segment = db.last_insert_rowid()
        db.execute(_NEW_BLOCK, (segment, SLOTS * dims * BYTES_PER_NUMBER))
        slots |= _fill(db, segment, array("q", bytes(8 * SLOTS)), waiting, dims=dims, revision=revision)
    return slots


def take_vectors(db: apsw.Connection, slots: Iterable[int], *, dims: int, revision: int) -> None:
    """Free slots and overwrite their vectors with zeros."""
    by_segment: dict[int, list[int]] = defaultdict(list)
    for slot in slots:
        by_segment[slot // SLOTS].append(slot % SLOTS)
    width = dims * BYTES_PER_NUMBER
    for segment, positions in by_segment.items():
        owners = array("q", one_row(db, _SEGMENT, (segment,))[0])
        with open_block(db, segment, for_writing=True) as block:
            for position in positions:
                owners[position] = 0
                block.seek(position * width)
                block.write(bytes(width))
        _save(db, segment, owners, revision)


def read_vectors(db: apsw.Connection, slots: Sequence[int], *, dims: int) -> list[bytes]:
    """The packed vectors of some slots, in their order."""
    width = dims * BYTES_PER_NUMBER
    found: dict[int, bytes] = {}
    by_segment: dict[int, list[int]] = defaultdict(list)
    for slot in slots:
        by_segment[slot // SLOTS].append(slot)
    for segment, wanted in by_segment.items():
        with open_block(db, segment, for_writing=False) as block:
            for slot in wanted:
                block.seek((slot % SLOTS) * width)
                found[slot] = block.read(width)
    return [found[slot] for slot in slots]


def owners_of_slots(db: apsw.Connection) -> dict[int, int]:
    """Every slot in use and the chunk in it."""
    owners = {}
    for segment, blob in rows(db, "SELECT id, chunk_ids FROM vector_segments"):
        owners.update({segment * SLOTS + at: owner for at, owner in enumerate(array("q", blob)) if owner})
    return owners


@dataclass(frozen=True, slots=True)
class _Segment:
    revision: int
    owners: array[int]
    vectors: bytes


class SegmentCache:
    """The segments of one generation that a process has read; a write by any process makes it read again."""

    def __init__(self) -> None:
        self._segments: dict[int, _Segment] = {}
        self._lock = threading.Lock()

    def nearest(
        self, db: apsw.Connection, query: bytes, sources: Iterable[Source], *, dims: int, limit: int
    ) -> Mapping[int, float]:
        """The cosines of the `limit` nearest chunks, or a few more when there are equals."""
        _, dots = choose_dots()
        found: dict[int, float] = {}
        floor = -2.0
        for segment in self._segments_of(db, sources):
            cosines = dots(query, segment.vectors, dims)
            found.update(
                {
                    owner: cosine
                    for owner, cosine in zip(segment.owners, cosines, strict=True)
                    if cosine >= floor and owner
                }
            )
            if len(found) > limit:
                floor = sorted(found.values(), reverse=True)[limit - 1]
                found = {owner: cosine for owner, cosine in found.items() if cosine >= floor}
        return found

    def _segments_of(self, db: apsw.Connection, sources: Iterable[Source]) -> Iterable[_Segment]:
        for source in sorted(sources):
            for id_, revision in rows(db, _SEGMENTS, (source,)):
                with self._lock:
                    known = self._segments.get(id_)
                if known is None or known.revision != revision:
                    owners, vectors = one_row(db, _LOAD, (id_,))
                    known = _Segment(revision, array("q", owners), vectors)
                    self._remember(id_, known)
                yield known

    def _remember(self, id_: int, segment: _Segment) -> None:
        with self._lock:
            if (len(self._segments) + 1) * len(segment.vectors) <= _CACHE_BYTES:
                self._segments[id_] = segment
            else:
                self._segments.pop(id_, None)


def _fill(
    db: apsw.Connection,
    segment: int,
    owners: array[int],
    waiting: list[tuple[int, bytes]],
    *,
    dims: int,
    revision: int,
) -> dict[int, int]:
    """Move from the end of `waiting` into the free slots of one segment."""
    placed: dict[int, int] = {}
    width = dims * BYTES_PER_NUMBER
    with open_block(db, segment, for_writing=True) as block:
        for position, owner in enumerate(owners):
            if not waiting:
                break
            if owner == 0:
                chunk, vector = waiting.pop()
                owners[position] = chunk
                placed[chunk] = segment * SLOTS + position
                block.seek(position * width)
                block.write(vector)
    _save(db, segment, owners, revision)
    return placed


def _save(db: apsw.Connection, segment: int, owners: array[int], revision: int) -> None:
    used = SLOTS - owners.count(0)
    db.execute(_SAVE_SEGMENT, (owners.tobytes(), used, revision, segment))
