"""Postings: for each term of a segment the positions of its chunks, and how often it stands in each.

Positions are uint16 in the byte order of the machine, ascending; counts are a byte each.
"""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import compress, pairwise

from plainmind.base.errors import IndexCorrupt

# What a term and a posting take while they are collected.
_BYTES_PER_TERM = 200
_BYTES_PER_POSTING = 7
# Fewer postings are sooner sorted without numpy; and so few do not pay for importing it.
_FEW = 2_000
_NOT_MANY = 200_000

_BYTE = [bytes([number]) for number in range(256)]


class Postings:
    """The postings of one term in one segment."""

    __slots__ = ("_most", "counts", "positions")

    def __init__(self, positions: bytes, counts: bytes) -> None:
        if len(positions) != 2 * len(counts) or not counts:
            raise IndexCorrupt("postings of the index are damaged", hint="run `plainmind sync --force`")
        self.positions = memoryview(positions).cast("H")
        self.counts = counts
        self._most = 0

    @property
    def most(self) -> int:
        """The largest count."""
        if not self._most:
            self._most = max(self.counts)
        return self._most

    @property
    def size(self) -> int:
        """How many bytes they take in memory, about."""
        return 3 * len(self.counts) + 400


class Collected:
    """Postings of new chunks until they are written. Those of one term must come by ascending position."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict()  # of terms, in the order in which they came
        self._numbers.default_factory = self._numbers.__len__
        self._terms = array("I")  # by posting: the number of the term, the position, the count
        self._positions = array("H")
        self._counts = bytearray()

    def add(self, position: int, counted: Mapping[str, int]) -> None:
        """Add the terms of a chunk."""
        self._terms.extend(map(self._numbers.__getitem__, counted))
        self._positions.extend(array("H", (position,)) * len(counted))
        self._counts.extend(counted.values())

    def add_postings(self, term: str, postings: Iterable[tuple[int, int]]) -> None:
        """Add positions and counts of one term."""
        for position, count in postings:
            self._terms.append(self._numbers[term])
            self._positions.append(position)
            self._counts.append(count)

    @property
    def bytes_used(self) -> int:
        """How much memory they take, about."""
        return _BYTES_PER_TERM * len(self._numbers) + _BYTES_PER_POSTING * len(self._counts)

    def by_term(self) -> dict[str, tuple[bytes, bytes]]:
        """Positions and counts of each term; one whose chunks have all been dropped has none of either."""
        few = len(self._counts) < (_FEW if "numpy" in sys.modules else _NOT_MANY)
        found = self._inverted() if few else self._inverted_by_numpy()
        return {term: found[number] for term, number in self._numbers.items()}

    def drop(self, dead: frozenset[int]) -> None:
        """Leave out some positions."""
        living = [position not in dead for position in self._positions]
        self._terms = array("I", compress(self._terms, living))
        self._counts = bytearray(compress(self._counts, living))
        self._positions = array("H", compress(self._positions, living))

    def _inverted(self) -> list[tuple[bytes, bytes]]:
        """Positions and counts by the number of the term."""
        positions, counts = [b""] * len(self._numbers), [b""] * len(self._numbers)
        packed, at = self._positions.tobytes(), 0
        for number, count in zip(self._terms, self._counts, strict=True):
            positions[number] += packed[at : at + 2]
            counts[number] += _BYTE[count]
            at += 2
        return list(zip(positions, counts, strict=True))

    def _inverted_by_numpy(self) -> list[tuple[bytes, bytes]]:
        import numpy as np

        # A number that sorts by term, then by position, and carries the count. Changed in place: there are millions.
        codes = np.frombuffer(self._terms, dtype=np.uint32).astype(np.uint64)
        codes *= np.uint64(2**16)
        codes += np.frombuffer(self._positions, dtype=np.uint16)
        codes *= np.uint64(2**8)
        codes += np.frombuffer(self._counts, dtype=np.uint8)
        codes.sort()
        firsts = np.arange(len(self._numbers) + 1, dtype=np.uint64) * np.uint64(2**24)
        ends = np.searchsorted(codes, firsts).tolist()
        counts = codes.astype(np.uint8).tobytes()
        codes >>= np.uint64(8)
        positions = codes.astype(np.uint16).tobytes()
        return [(positions[2 * first : 2 * last], counts[first:last]) for first, last in pairwise(ends)]


def without_positions(postings: Postings, dead: frozenset[int]) -> tuple[bytes, bytes]:
    """Positions and counts of those that are not dead."""
    kept = [
        (position, count)
        for position, count in zip(postings.positions, postings.counts, strict=True)
        if position not in dead
    ]
    return array("H", [position for position, _ in kept]).tobytes(), bytes([count for _, count in kept])
