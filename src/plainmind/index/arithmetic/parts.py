"""What of a segment the arithmetic works on."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import compress

from plainmind.index.postings import Postings


class WordPart:
    """The lengths of a segment's chunks, and the postings of each term of a query, the heaviest term first."""

    __slots__ = ("first_id", "lengths", "postings")

    def __init__(self, first_id: int, lengths: memoryview, postings: Sequence[Postings | None]) -> None:
        self.first_id = first_id
        self.lengths = lengths  # uint16 by position; 0: no chunk, or one without terms
        self.postings = postings

    @property
    def posting_count(self) -> int:
        """How many postings all its terms have."""
        return sum(len(each.counts) for each in self.postings if each is not None)


class Absences:
    """Which positions of a segment have no vector: a byte for each, 0 where there is one, 255 where there is none."""

    __slots__ = ("flags", "positions")

    def __init__(self, flags: bytes) -> None:
        self.flags = flags
        self.positions = array("q", compress(range(len(flags)), flags) if 255 in flags else ())

    @property
    def count(self) -> int:
        """How many have none."""
        return len(self.positions)

    def present(self, first_id: int) -> Iterable[int]:
        """The ids of those that have one, in a segment that begins with this id."""
        ids = range(first_id, first_id + len(self.flags))
        return [id_ for id_, flag in zip(ids, self.flags, strict=True) if not flag] if self.positions else ids


class SignPart:
    """The signs of a segment's vectors."""

    __slots__ = ("absences", "first_id", "signs")

    def __init__(self, first_id: int, signs: bytes, absences: Absences) -> None:
        self.first_id = first_id
        self.signs = signs
        self.absences = absences

    def __len__(self) -> int:
        return len(self.absences.flags)
