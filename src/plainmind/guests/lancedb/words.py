"""Postings of a segment, in buckets by the hash of the term: a question reads only the buckets of its terms.

a bucket: how many bytes its terms take (uint32), the terms, a line each, for each term its number of postings
(uint16), then the positions of all (uint16) and the counts of all (a byte each), in the order of the terms
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from plainmind.base.errors import IndexCorrupt
from plainmind.index.postings import Postings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_POSITIONS = 65_535  # of a segment: positions, and how many chunks have a term, are 16 bits
_BUCKET_BYTES = 65_536
_MOST_BUCKETS = 4_096
# Merging reads and writes again what it merges, so that few segments are left to look into.
MOST_SEGMENTS = 12


def bucket_of(term: str, buckets: int) -> int:
    """In which of so many buckets a term is."""
    return zlib.crc32(term.encode()) % buckets


def in_buckets(by_term: Mapping[str, tuple[bytes, bytes]]) -> list[bytes]:
    """Pack positions and counts of terms; terms without postings are left out."""
    living = {term: postings for term, postings in by_term.items() if postings[1]}
    total = sum(3 * len(counts) + len(term) + 3 for term, (_, counts) in living.items())
    buckets = min(_MOST_BUCKETS, total // _BUCKET_BYTES + 1)
    parts: list[list[str]] = [[] for _ in range(buckets)]
    for term in sorted(living):
        parts[bucket_of(term, buckets)].append(term)
    return [_packed(part, living) for part in parts]


def _packed(terms: Sequence[str], by_term: Mapping[str, tuple[bytes, bytes]]) -> bytes:
    names = "\n".join(terms).encode()
    numbers = array("H", [len(by_term[term][1]) for term in terms]).tobytes()
    positions = b"".join(by_term[term][0] for term in terms)
    counts = b"".join(by_term[term][1] for term in terms)
    return b"".join((struct.pack("<I", len(names)), names, _little(numbers), _little(positions), counts))


class Bucket:
    """Some terms of a segment with their postings."""

    __slots__ = ("_counts", "_places", "_positions", "size")

    def __init__(self, body: bytes) -> None:
        self.size = len(body) + 200
        try:
            (length,) = struct.unpack_from("<I", body)
            names = body[4 : 4 + length].decode()
        except (struct.error, UnicodeDecodeError) as error:
            raise _damaged() from error
        terms = names.split("\n") if names else []
        at = 4 + length + 2 * len(terms)
        numbers = array("H", _little(body[4 + length : at]))
        total = sum(numbers)
        if len(numbers) != len(terms) or len(body) != at + 3 * total:
            raise _damaged()
        self._positions = _little(body[at : at + 2 * total])
        self._counts = body[at + 2 * total :]
        firsts = accumulate(numbers, initial=0)
        self._places = dict(zip(terms, zip(firsts, numbers, strict=False), strict=True))

    def get(self, term: str) -> Postings | None:
        """The postings of a term."""
        place = self._places.get(term)
        if place is None:
            return None
        first, number = place
        last = first + number
        return Postings(self._positions[2 * first : 2 * last], self._counts[first:last])

    def items(self) -> Iterator[tuple[str, Postings]]:
        """Every term with its postings."""
        for term in self._places:
            postings = self.get(term)
            if postings is not None:
                yield term, postings

    def moved(self, places: Any) -> Iterator[tuple[str, bytes, bytes]]:
        """Every term with its postings at other positions; `places` says which, -1 for those that are gone."""
        import numpy as np

        were = np.frombuffer(self._positions, dtype=np.uint16)
        if len(were) and int(were.max()) >= len(places):
            raise _damaged()
        positions = places[were]
        living = positions >= 0
        kept = positions[living].astype(np.uint16).tobytes()
        counts = np.frombuffer(self._counts, dtype=np.uint8)[living].tobytes()
        before = [0, *np.cumsum(living).tolist()]  # how many of so many live
        for term, (first, number) in self._places.items():
            start, end = before[first], before[first + number]
            if end > start:
                yield term, kept[2 * start : 2 * end], counts[start:end]


def merge_from(sizes: Sequence[int], most: int = MOST_SEGMENTS) -> int | None:
    """From which segment on all should become one; None while there are few enough to look into.

    The newest go together with all before them that are not much larger than what has come together so far: so a
    chunk is merged again only when its segment doubles, however many changes there are.
    """
    small = sum(1 for size in sizes if size < MOST_POSITIONS // 2)
    if small <= most:
        return None
    first, total = len(sizes), 0
    for size in reversed(sizes):
        if total + size > MOST_POSITIONS or (first < len(sizes) - 1 and size > 2 * total):
            break
        first, total = first - 1, total + size
    return first if len(sizes) - first > 1 else None


def runs_of(sizes: Iterable[int]) -> list[int]:
    """How many segments, one after another, fit into each of as few as possible."""
    runs: list[int] = []
    room = 0
    for size in sizes:
        if size > room or not runs:
            runs.append(0)
            room = MOST_POSITIONS
        runs[-1] += 1
        room -= size
    return runs


def _little(numbers: bytes) -> bytes:
    if sys.byteorder == "little":
        return numbers
    swapped = array("H", numbers)
    swapped.byteswap()
    return swapped.tobytes()


def _damaged() -> IndexCorrupt:
    return IndexCorrupt("postings of the index are damaged", hint="run `plainmind sync --force`")
