"""The arithmetic of a search, twice: without numpy for a process that answers once, with it for one that stays.

Importing numpy costs a cold search more than its whole arithmetic without it. So nobody imports it before as much
time has gone into plain arithmetic as the import would have taken: then at most twice the least possible is spent.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from plainmind.index.arithmetic import plain
from plainmind.index.arithmetic.parts import SignPart, WordPart
from plainmind.index.postings import Postings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

# What importing numpy takes, and what plain arithmetic takes for one posting or one vector, in nanoseconds.
_IMPORTING = 65_000_000
PER_POSTING = 150
PER_VECTOR = 25

_spent = 0


class Arithmetic(Protocol):
    """What both do; they agree to the last bit."""

    def count_living(self, postings: Postings, lengths: memoryview) -> int:
        """In how many chunks a term stands; those of length 0 are no more."""

    def best_by_words(
        self, parts: Sequence[WordPart], weights: Sequence[float], average_length: float, limit: int
    ) -> list[tuple[int, float]]:
        """The ids and scores of the best chunks, best first; among equals the smaller id."""

    def word_scores(
        self, part: WordPart, weights: Sequence[float], average_length: float, positions: Sequence[int]
    ) -> list[float]:
        """The scores of given positions of one part."""

    def term_counts(self, postings: Sequence[Postings | None], positions: Sequence[int]) -> list[bytes]:
        """For each of some positions a byte a term: how often it stands there."""

    def nearest_by_signs(
        self, query: Sequence[bytes], parts: Sequence[SignPart], wanted: int, pool: int
    ) -> list[int]:
        """The ids of `wanted` vectors whose signs are nearest, nearest first; among equals the first.

        The `pool` nearest by the first signs of the query are compared with all of its signs.
        """


def choose_arithmetic(nanoseconds: int) -> Arithmetic:
    """The arithmetic for a piece of work that would take this long without numpy."""
    global _spent  # noqa: PLW0603 (the process is what imports numpy, and what pays for it)
    if "numpy" not in sys.modules:
        _spent += nanoseconds
        if _spent < _IMPORTING:
            return plain
    from plainmind.index.arithmetic import with_numpy

    return with_numpy
