"""Words of an index: how they score by BM25, their postings, and the best of many chunks, without numpy.

Postings are, for each term of a segment, the positions of its chunks (uint16 in the byte order of the machine,
ascending) and how often it stands in each (a byte).
"""

from __future__ import annotations

import math
import sys
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import compress, pairwise

from plainmind.base.errors import IndexCorrupt
from plainmind.base.lazy import pattern
from plainmind.index.vectors import is_numpy_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

# The values that FTS5 and Lucene use; see Robertson and Zaragoza, "The Probabilistic Relevance Framework".
TERM_SATURATION = 1.2  # k1: how soon a repeated term stops counting more
LENGTH_WEIGHT = 0.75  # b: how much a long chunk has to mention a term more often

MAX_TERM_CHARACTERS = 1_000
# A term counts at most so often in a chunk, and a chunk is at most so long: one byte and two in an index. BM25 could
# not tell them from more: what a term adds to a score has reached 99 % of its most long before.
MOST_COUNTED = 255
LONGEST = 65_535

_UNSTORABLE = pattern(r"[\s\x00-\x1f\x7f\ud800-\udfff]")
_UNSTORABLE_BUT_SPACE = pattern(r"[^\S ]|[\x00-\x1f\x7f\ud800-\udfff]")
_SURELY_SHORT = MAX_TERM_CHARACTERS // 3  # folding makes at most three characters of one


def storable_term(term: str) -> str:
    """The form of a term in an index: folded, without what would end it (white space, NUL, lone surrogates).

    Terms come this way already from `text/`; this keeps a store right for any string at all.
    """
    folded = term.casefold()[:MAX_TERM_CHARACTERS]
    # All that is unstorable is unprintable too. The pattern takes 3 ms to compile, which words need not wait for.
    if folded.isprintable() and " " not in folded:
        return folded
    return _UNSTORABLE.sub("\ufffd", folded)


def storable_terms(terms: Iterable[str]) -> list[str]:
    """The terms of a chunk, in order and with repeats; empty ones are dropped."""
    given = list(filter(None, terms))
    if not given:
        return given
    # One look at all of them is ten times as fast as one at each, and ends here for terms from `text/`.
    joined = " ".join(given)
    if (
        joined.count(" ") == len(given) - 1
        and len(max(given, key=len)) <= _SURELY_SHORT
        and _is_clean(joined)
    ):
        folded = joined.casefold()
        return given if folded == joined else folded.split(" ")
    return [storable_term(term) for term in given]


def _is_clean(joined: str) -> bool:
    return joined.isprintable() or _UNSTORABLE_BUT_SPACE.search(joined) is None


def occurrences(terms: Iterable[str]) -> dict[str, int]:
    """How often each term stands in a chunk, as far as it counts."""
    counted = Counter(storable_terms(terms))
    if max(counted.values(), default=0) <= MOST_COUNTED:
        return counted
    return {term: min(count, MOST_COUNTED) for term, count in counted.items()}


def length_of(counted: Mapping[str, int]) -> int:
    """How long a chunk is: the sum of what counts."""
    return min(LONGEST, sum(counted.values()))


def words_in(lengths: Iterable[int]) -> tuple[int, int]:
    """How many chunks have words, and how many words they have together; one of length 0 is no more, or not shown."""
    filled = [length for length in lengths if length]
    return len(filled), sum(filled)


def distinct_terms(terms: Iterable[str]) -> list[str]:
    """The terms of a query, each once, in order."""
    return list(dict.fromkeys(storable_terms(terms)))


def inverse_frequency(chunk_count: int, chunks_with: int) -> float:
    """How much a term tells: always positive, so that three notes about one thing still rank."""
    return math.log1p((chunk_count - chunks_with + 0.5) / (chunks_with + 0.5))


def term_weights(chunk_count: int, chunks_with: Mapping[str, int]) -> dict[str, float]:
    """Each term's share of the whole query, the heaviest first: in this order scores are added up.

    A rare term that stands nowhere keeps its share from everyone.
    """
    told = {term: inverse_frequency(chunk_count, count) for term, count in chunks_with.items()}
    whole = sum(told.values())
    shares = {term: worth / whole for term, worth in told.items()}
    return dict(sorted(shares.items(), key=lambda share: -share[1]))


class Saturated(dict[int, float]):
    """What a term of some weight adds to the words of a text, by how often it stands there, whatever its length."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self._weight = weight

    def __missing__(self, count: int) -> float:
        is_countless = count >= MOST_COUNTED
        self[count] = worth = self._weight * (1.0 if is_countless else count / (count + TERM_SATURATION))
        return worth


def length_penalty(length: int, average_length: float) -> float:
    """What saturation has to overcome in a chunk of this many terms."""
    return TERM_SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / (average_length or 1.0))


def best(found: Mapping[int, float], limit: int) -> Sequence[tuple[int, float]]:
    """The `limit` best of a mapping from id to score; among equals the oldest id comes first."""
    if limit <= 0:
        return []
    if len(found) > 4 * limit:
        floor = nlargest(limit, found.values())[-1]
        found = {id_: value for id_, value in found.items() if value >= floor}
    ordered = sorted([(-score, id_) for id_, score in found.items()])
    return [(id_, -score) for score, id_ in ordered[:limit]]


_PER_POSTING = 250  # nanoseconds without numpy
_SOONER_ADDED = 64  # postings that are sooner added than pruned
_ENOUGH_SLACK = 1e-12  # scores are sums of a few numbers below 1: rounding moves them less than this
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


class WordPart:
    """The lengths of a segment's chunks, and the postings of each term of a query, the heaviest term first."""

    __slots__ = ("first_id", "lengths", "postings", "scores")

    def __init__(self, first_id: int, lengths: memoryview, postings: Sequence[Postings | None]) -> None:
        self.first_id = first_id
        self.lengths = lengths  # uint16 by position; 0: no chunk, or one without terms
        self.postings = postings
        # What `word_scores` would give, if `best_by_words` had to work out the scores of all positions.
        self.scores: Callable[[Sequence[int]], list[float]] | None = None

    @property
    def posting_count(self) -> int:
        """How many postings all its terms have."""
        return sum(len(each.counts) for each in self.postings if each is not None)


class WordArithmetic(Protocol):
    """What this module and `arithmetic_numpy.py` do with words; they agree to the last bit."""

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


def word_arithmetic(postings: int) -> WordArithmetic:
    """The arithmetic for so many postings: this module, until it is time for numpy."""
    if is_numpy_due(_PER_POSTING * postings):
        from plainmind.index import arithmetic_numpy

        return arithmetic_numpy
    from plainmind.index import bm25  # noqa: PLW0406 (this module)

    return bm25


class Penalties(dict[int, float]):
    """BM25's length penalty by length; endless for 0, so that what is no more scores nothing."""

    def __init__(self, average_length: float) -> None:
        super().__init__({0: float("inf")})
        self._average_length = average_length

    def __missing__(self, length: int) -> float:
        self[length] = found = length_penalty(length, self._average_length)
        return found


@lru_cache(maxsize=4)
def penalties_for(average_length: float) -> Penalties:
    """The penalties of an index: the next question needs the same ones."""
    return Penalties(average_length)


def count_living(postings: Postings, lengths: memoryview) -> int:
    """In how many chunks a term stands."""
    return sum(1 for position in postings.positions if lengths[position])


def best_by_words(
    parts: Sequence[WordPart], weights: Sequence[float], average_length: float, limit: int
) -> list[tuple[int, float]]:
    """The ids and scores of the best chunks, best first."""
    penalties = penalties_for(average_length)
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
    return list(best(found, limit))


def word_scores(
    part: WordPart, weights: Sequence[float], average_length: float, positions: Sequence[int]
) -> list[float]:
    """The scores of given positions of one part."""
    scores = dict.fromkeys(positions, 0.0)
    penalties = penalties_for(average_length)
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
    still = still_to_come(part, weights, penalties[1])
    get = scores.get
    is_pruned = False
    for weight, postings, to_come in zip(weights, part.postings, still, strict=True):
        if postings is None:
            continue
        if len(postings.counts) > _SOONER_ADDED:
            if len(scores) >= limit:
                floor = max(floor, nlargest(limit, scores.values())[-1])
            if to_come < floor - _ENOUGH_SLACK:
                scores = {
                    at: score for at, score in scores.items() if score + to_come >= floor - _ENOUGH_SLACK
                }
                get = scores.get
                is_pruned = True
                if 4 * len(scores) < len(postings.counts):
                    _add_to_known(scores, postings, weight, part.lengths, penalties)
                    continue
        lengths = part.lengths
        for at, count in zip(postings.positions.tolist(), postings.counts, strict=True):
            scores[at] = get(at, 0.0) + weight * count / (count + penalties[lengths[at]])
    if not is_pruned:
        part.scores = lambda positions: [get(at, 0.0) for at in positions]
    return scores


def still_to_come(part: WordPart, weights: Sequence[float], least_penalty: float) -> list[float]:
    """For each term, the most that it and all after it can add to a score; `least_penalty` is that of the shortest."""
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
