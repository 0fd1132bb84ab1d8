"""The arithmetic of a search on parts of segments, without numpy, for a process that answers once.

Dictionaries for words; simsimd and very large integers for signs: a large integer is a row of lanes, 16 bits each, and
adding two of them adds ten thousand small numbers in a microsecond. `arithmetic_numpy.py` does the same with numpy, for
a process that stays. Importing numpy costs a cold search more than its whole arithmetic without it. So it is not
imported before as much time has gone into plain arithmetic as the import would have taken: then at most twice the least
possible is spent.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from heapq import nlargest
from itertools import accumulate, compress

from plainmind.index import bm25
from plainmind.index.bm25 import Postings
from plainmind.index.vectors import sign_distances

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

# What importing numpy takes, and what plain arithmetic takes for one posting or one vector, in nanoseconds.
_IMPORTING = 65_000_000
PER_POSTING = 150
PER_VECTOR = 25

_FEW = 64  # postings that are sooner added than pruned
_BYTES = bytes(range(256))
_ENOUGH_SLACK = 1e-12  # scores are sums of a few numbers below 1: rounding moves them less than this

_spent = 0


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
    from plainmind.index import arithmetic  # noqa: PLW0406 (this module is one of the two)

    global _spent  # noqa: PLW0603 (the process is what imports numpy, and what pays for it)
    if "numpy" not in sys.modules:
        _spent += nanoseconds
        if _spent < _IMPORTING:
            return arithmetic
    from plainmind.index import arithmetic_numpy

    return arithmetic_numpy


class Penalties(dict[int, float]):
    """BM25's length penalty by length; endless for 0, so that what is no more scores nothing."""

    def __init__(self, average_length: float) -> None:
        super().__init__({0: float("inf")})
        self._average_length = average_length

    def __missing__(self, length: int) -> float:
        self[length] = found = bm25.length_penalty(length, self._average_length)
        return found


def count_living(postings: Postings, lengths: memoryview) -> int:
    """In how many chunks a term stands."""
    return sum(1 for position in postings.positions if lengths[position])


def best_by_words(
    parts: Sequence[WordPart], weights: Sequence[float], average_length: float, limit: int
) -> list[tuple[int, float]]:
    """The ids and scores of the best chunks, best first."""
    penalties = Penalties(average_length)
    found: dict[int, float] = {}
    floor = 0.0
    for part in parts:
        scores = scores_of_part(part, weights, penalties, limit, floor)
        if len(scores) > limit:
            floor = max(floor, nlargest(limit, scores.values())[-1])
        first = part.first_id
        found.update({first + at: score for at, score in scores.items() if score >= floor and score > 0.0})
        if len(found) > limit:
            floor = nlargest(limit, found.values())[-1]
    return list(bm25.best(found, limit))


def word_scores(
    part: WordPart, weights: Sequence[float], average_length: float, positions: Sequence[int]
) -> list[float]:
    """The scores of given positions of one part."""
    scores = dict.fromkeys(positions, 0.0)
    penalties = Penalties(average_length)
    for weight, postings in zip(weights, part.postings, strict=True):
        if postings is not None:
            _add_to_known(scores, postings, weight, part.lengths, penalties)
    return [scores[position] for position in positions]


def term_counts(postings: Sequence[Postings | None], positions: Sequence[int]) -> list[bytes]:
    """For each of some positions a byte a term."""
    found = [bytearray(len(postings)) for _ in positions]
    for number, of_term in enumerate(postings):
        if of_term is None:
            continue
        known, counts = of_term.positions, of_term.counts
        end = len(counts)
        for row, position in zip(found, positions, strict=True):
            at = bisect_left(known, position)
            if at < end and known[at] == position:
                row[number] = counts[at]
    return [bytes(row) for row in found]


def scores_of_part(
    part: WordPart, weights: Sequence[float], penalties: Penalties, limit: int, floor: float
) -> dict[int, float]:
    """Scores by position; those that cannot be among the best may be missing, or too low.

    The heaviest terms come first. Once what the others can still add is less than the score of the `limit` best so
    far, only chunks that are known already go on, and only those that could get there.
    """
    scores: dict[int, float] = {}
    still = _still_to_come(part, weights, penalties)
    get = scores.get
    for weight, postings, to_come in zip(weights, part.postings, still, strict=True):
        if postings is None:
            continue
        if len(postings.counts) > _FEW:
            if len(scores) >= limit:
                floor = max(floor, nlargest(limit, scores.values())[-1])
            if to_come < floor - _ENOUGH_SLACK:
                scores = {
                    at: score for at, score in scores.items() if score + to_come >= floor - _ENOUGH_SLACK
                }
                get = scores.get
                if 4 * len(scores) < len(postings.counts):
                    _add_to_known(scores, postings, weight, part.lengths, penalties)
                    continue
        lengths = part.lengths
        for at, count in zip(postings.positions.tolist(), postings.counts, strict=True):
            scores[at] = get(at, 0.0) + weight * count / (count + penalties[lengths[at]])
    return scores


def _still_to_come(part: WordPart, weights: Sequence[float], penalties: Penalties) -> list[float]:
    """For each term, the most that it and all after it can add to a score."""
    least_penalty = penalties[1]
    still, total = [], 0.0
    for weight, postings in zip(reversed(weights), reversed(part.postings), strict=True):
        if postings is not None:
            most = postings.most
            total += weight * most / (most + least_penalty)
        still.append(total)
    still.reverse()
    return still


def _add_to_known(
    scores: dict[int, float], postings: Postings, weight: float, lengths: memoryview, penalties: Penalties
) -> None:
    positions, counts = postings.positions, postings.counts
    end = len(counts)
    for at in scores:
        found = bisect_left(positions, at)
        if found < end and positions[found] == at:
            count = counts[found]
            scores[at] += weight * count / (count + penalties[lengths[at]])


def nearest_by_signs(query: Sequence[bytes], parts: Sequence[SignPart], wanted: int, pool: int) -> list[int]:
    """The ids of `wanted` vectors whose signs are nearest, nearest first."""
    width = len(query[0])
    signs = parts[0].signs if len(parts) == 1 else b"".join(part.signs for part in parts)
    absences = parts[0].absences if len(parts) == 1 else _joined(parts)
    within: Sequence[int] = range(len(absences.flags))
    if len(within) - absences.count > pool:
        (distances,) = sign_distances(query[:1], signs)
        within = sorted(_least(_lanes(distances), absences, pool, most=8 * width))
        signs = b"".join([signs[at * width : (at + 1) * width] for at in within])
        absences = Absences(bytes(len(within)))
    first, *others = (_lanes(row) for row in sign_distances(query, signs))
    most = 8 * width * (2 * len(query) - 1)
    chosen = _least(len(query) * first + sum(others), absences, wanted, most=most)
    ends = list(accumulate(map(len, parts)))
    return [_id_at(within[at], parts, ends) for at in chosen]


def _joined(parts: Sequence[SignPart]) -> Absences:
    return Absences(b"".join(part.absences.flags for part in parts))


def _id_at(position: int, parts: Sequence[SignPart], ends: Sequence[int]) -> int:
    """The id at a position of all parts together."""
    part = parts[at := bisect_right(ends, position)]
    return part.first_id + position - ends[at] + len(part)


def _lanes(numbers: memoryview) -> int:
    if sys.byteorder == "big":
        swapped = array("H", numbers.tobytes())
        swapped.byteswap()
        return int.from_bytes(swapped.tobytes(), "little")
    return int.from_bytes(numbers, "little")


def _least(lanes: int, absences: Absences, wanted: int, most: int) -> list[int]:
    """The positions of the `wanted` least numbers, none above `most`, the least first; never where one is absent."""
    count = len(absences.flags)
    wanted = min(wanted, count - absences.count)
    if wanted <= 0:
        return []
    if absences.count:
        doubled = bytearray(2 * count)
        doubled[0::2] = doubled[1::2] = absences.flags
        lanes |= int.from_bytes(doubled, "little")
    # Eight of the sixteen bits are enough to leave out nearly all that are too large.
    dropped = max(0, most.bit_length() - 8)
    coarse = (lanes >> dropped).to_bytes(2 * count, "little")[0::2]
    candidates = [match.start() for match in _up_to(_level_with(coarse, wanted)).finditer(coarse)]
    exact = lanes.to_bytes(2 * count, "little")
    low, high = exact[0::2], exact[1::2]
    codes = [high[at] << 40 | low[at] << 32 | at for at in candidates]  # sorts by number, then by position
    codes.sort()
    return [code & 0xFFFFFFFF for code in codes[:wanted]]


def _level_with(coarse: bytes, wanted: int) -> int:
    """The least level that `wanted` bytes do not exceed."""
    low, high = 0, 255
    while low < high:
        middle = (low + high) // 2
        above = len(coarse.translate(None, _BYTES[: middle + 1]))
        if len(coarse) - above >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


@cache
def _up_to(level: int) -> re.Pattern[bytes]:
    return re.compile(rb"[\x00-\x%02x]" % level)
