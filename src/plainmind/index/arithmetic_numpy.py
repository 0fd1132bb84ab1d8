"""The arithmetic of a search with numpy: a few passes over arrays, however many chunks there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from plainmind.index import bm25
from plainmind.index.bm25 import Postings, WordPart, still_to_come
from plainmind.index.vectors import SignPart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

Array: TypeAlias = "np.ndarray[Any, Any]"

_HARDLY_ANY = 200  # postings that are sooner added without numpy
_FEW = 2_000  # postings that are sooner added than pruned
_SINGLE = 12  # positions that are sooner looked up without numpy
_SOONER_JOINED = (
    20_000  # postings of all terms that are sooner looked through together than one term at a time
)
_POSITION_BITS = 16
_DEARER = 8  # how much more it takes to look for one position in postings than to add one of them
_ENOUGH_SLACK = 1e-12  # scores are sums of a few numbers below 1: rounding moves them less than this
_COLUMNS = 64
SIGNS_STAND_IN = "columns"
_COLUMN_BYTES = 8
_ABSENT = 0xFFFF
_LEAST = -1e9  # below any cosine, however rough
_COLUMNS_OF_WANTED = 8  # times the wanted ones: so many that two of the wanted are seldom in the same one


def count_living(postings: Postings, lengths: memoryview) -> int:
    """In how many chunks a term stands."""
    return int(np.count_nonzero(_uint16(lengths)[_uint16(postings.positions)]))


def best_by_words(
    parts: Sequence[WordPart], weights: Sequence[float], average_length: float, limit: int
) -> list[tuple[int, float]]:
    """The ids and scores of the best chunks, best first."""
    found: dict[int, float] = {}
    floor = 0.0
    for part in parts:
        if part.posting_count < _HARDLY_ANY:
            scores = bm25.scores_of_part(part, weights, bm25.penalties_for(average_length), limit, floor)
            found.update({part.first_id + at: score for at, score in scores.items() if score > 0.0})
        else:
            penalties = _penalties_up_to(int(_uint16(part.lengths).max(initial=0)), average_length)
            scored = _Scores(part, weights, penalties, limit, floor)
            positions, values = scored.best()
            part.scores = scored.of_all()
            found.update(zip((positions + part.first_id).tolist(), values.tolist(), strict=True))
        if len(found) > limit:
            found = dict(bm25.best(found, limit))
            floor = min(found.values())
    return list(bm25.best(found, limit))


def word_scores(
    part: WordPart, weights: Sequence[float], average_length: float, positions: Sequence[int]
) -> list[float]:
    """The scores of given positions of one part."""
    if len(positions) < _SINGLE or not weights:
        return bm25.word_scores(part, weights, average_length, positions)
    wanted = np.array(positions, dtype=np.uint16)
    counts = _counts_at(part.postings, wanted).astype(np.float64)
    penalties = counts + _penalties(_uint16(part.lengths)[wanted], average_length)
    counts *= np.array(weights)[:, None]
    counts /= penalties
    # Added up one after the other, the heaviest term first: a plain sum would add them in another order.
    scores: list[float] = np.add.accumulate(counts, axis=0)[-1].tolist()
    return scores


def term_counts(postings: Sequence[Postings | None], positions: Sequence[int]) -> list[bytes]:
    """For each of some positions a byte a term."""
    if len(positions) < _SINGLE:
        return bm25.term_counts(postings, positions)
    width = len(postings)
    rows = _counts_at(postings, np.array(positions, dtype=np.uint16)).T.tobytes()
    return [rows[width * at : width * (at + 1)] for at in range(len(positions))]


def _counts_at(postings: Sequence[Postings | None], positions: Array) -> Array:
    """For each term a row: how often it stands at some positions."""
    found = np.zeros((len(postings), len(positions)), dtype=np.uint8)
    filled = [(row, each) for row, each in enumerate(postings) if each is not None]
    sizes = [len(each.counts) for _, each in filled]
    if sum(sizes) > _SOONER_JOINED:
        for row, of_term in filled:
            known, counts = _uint16(of_term.positions), np.frombuffer(of_term.counts, dtype=np.uint8)
            _look_up(known, counts, positions, found[row])
    elif filled:
        # All terms at once: a number that sorts by term, then by position.
        terms = np.arange(0, len(filled) << _POSITION_BITS, 1 << _POSITION_BITS, dtype=np.uint32)
        known = np.frombuffer(b"".join([each.positions for _, each in filled]), dtype=np.uint16)
        counts = np.frombuffer(b"".join([each.counts for _, each in filled]), dtype=np.uint8)
        rows = np.empty((len(filled), len(positions)), dtype=np.uint8)
        _look_up(terms.repeat(sizes) + known, counts, terms[:, None] + positions, rows)
        found[[row for row, _ in filled]] = rows
    return found


def _look_up(known: Array, counts: Array, wanted: Array, into: Array) -> None:
    """Put the count of each wanted position into its place, 0 for one that is not known."""
    at = known.searchsorted(wanted)
    np.multiply(counts.take(at, mode="clip"), known.take(at, mode="clip") == wanted, out=into)


class _Scores:
    """The scores of one part, for as many of its chunks as can still be among the best.

    The heaviest terms come first. Once what the others can still add is less than the score of the `limit` best so
    far, only chunks that are known already go on, and only those that could get there.
    """

    def __init__(
        self, part: WordPart, weights: Sequence[float], penalties: Array, limit: int, floor: float
    ) -> None:
        self._lengths = _uint16(part.lengths)
        self._penalties = penalties  # by length
        self._limit = limit
        self._floor = floor
        self._scores = np.zeros(len(self._lengths))
        self._known: Array | None = None  # the positions that go on, once there are fewer than all
        self._known_penalties = self._scores
        still = still_to_come(part, weights, float(penalties[1]) if len(penalties) > 1 else 1.0)
        few: list[tuple[float, Postings]] = []
        for weight, postings, to_come in zip(weights, part.postings, still, strict=True):
            if postings is None:
                continue
            if self._known is None and len(postings.counts) <= _FEW:
                few.append((weight, postings))
                continue
            self._add_all(few)
            few.clear()
            self._add(postings, weight, to_come)
        self._add_all(few)

    def best(self) -> tuple[Array, Array]:
        """The positions and scores of the best, and of others that are as good."""
        floor = max(self._raised_floor(), 5e-324)  # nothing is no score
        chosen = np.flatnonzero(self._scores >= floor)
        positions = chosen if self._known is None else self._known[chosen].astype(np.int64)
        return positions, self._scores[chosen]

    def of_all(self) -> Callable[[Sequence[int]], list[float]] | None:
        """What gives the scores of any positions; None when some were left out."""
        scores = self._scores
        return (lambda positions: scores[positions].tolist()) if self._known is None else None

    def _add(self, postings: Postings, weight: float, to_come: float) -> None:
        if len(postings.counts) > _FEW:
            self._prune(to_come, len(postings.counts))
        if self._known is not None:
            _add_to_known(self._scores, self._known, postings, weight, self._known_penalties)
        else:
            self._add_all([(weight, postings)])

    def _add_all(self, terms: Sequence[tuple[float, Postings]]) -> None:
        """Add what some terms give to the scores of all positions, term by term."""
        if not terms:
            return
        positions = np.frombuffer(b"".join([each.positions for _, each in terms]), dtype=np.uint16)
        counts = np.frombuffer(b"".join([each.counts for _, each in terms]), dtype=np.uint8)
        added = counts.astype(np.float64)
        penalties = self._penalties.take(self._lengths.take(positions))
        penalties += added
        added *= np.repeat([weight for weight, _ in terms], [len(each.counts) for _, each in terms])
        added /= penalties
        np.add.at(
            self._scores, positions, added
        )  # in this order, so that scores stay the same to the last bit

    def _prune(self, to_come: float, size: int) -> None:
        if to_come >= 1.0 or not (self._known is not None or self._scores.any()):
            return
        floor = self._floor = self._raised_floor()
        if to_come >= floor - _ENOUGH_SLACK:
            return
        kept = np.flatnonzero(self._scores >= floor - to_come - _ENOUGH_SLACK)
        if self._known is not None:
            self._known = self._known[kept]
            self._known_penalties = self._known_penalties[kept]
        elif _DEARER * len(kept) < size:
            self._known = kept.astype(np.uint16)
            self._known_penalties = self._penalties[self._lengths[kept]]
        else:
            return
        self._scores = self._scores[kept]

    def _raised_floor(self) -> float:
        """A score that the best `limit` reach, as high as is cheaply known."""
        return max(self._floor, _at_least_reached(self._scores, self._limit))


@lru_cache(maxsize=8)
def _penalties_up_to(longest: int, average_length: float) -> Array:
    """The penalties of all lengths up to the longest."""
    return _penalties(np.arange(longest + 1), average_length)


def _penalties(lengths: Array, average_length: float) -> Array:
    """What `bm25.length_penalty` gives for each, in the same operations; endless for a length of 0."""
    numbers = lengths.astype(np.float64)
    shares = bm25.LENGTH_WEIGHT * numbers / (average_length or 1.0)
    found: Array = bm25.TERM_SATURATION * (1 - bm25.LENGTH_WEIGHT + shares)
    found[lengths == 0] = np.inf
    return found


def _add_to_known(
    scores: Array, positions: Array, postings: Postings, weight: float, penalties: Array
) -> None:
    """Add what one term gives to the scores of some positions."""
    of_term = _uint16(postings.positions)
    at = np.searchsorted(of_term, positions)
    at[at == len(of_term)] = 0
    counts = np.frombuffer(postings.counts, dtype=np.uint8)[at].astype(np.float64)
    counts[of_term[at] != positions] = 0.0
    scores += weight * counts / (counts + penalties)


def _at_least_reached(scores: Array, limit: int) -> float:
    """A number that at least `limit` scores reach; 0 when there are not so many."""
    if len(scores) <= 2 * _COLUMNS * limit:
        return float(np.partition(scores, -limit)[-limit]) if len(scores) >= limit else 0.0
    # The best of each column are different scores, so the worst of the `limit` best of them is reached by as many.
    rows = len(scores) // _COLUMNS
    best_of_columns = scores[: rows * _COLUMNS].reshape(_COLUMNS, rows).max(axis=0)
    return float(np.partition(best_of_columns, -limit)[-limit])


def prepare_signs(signs: bytes, width: int) -> Array:
    """Signs in columns: the first 64 bits of all vectors, then the next. A row is a column.

    Row by row a million wait for memory, 16 ns each; column by column they take 6.
    """
    rows = np.frombuffer(signs, dtype=np.uint8).reshape(-1, width)
    return _in_columns(rows)


def nearest_by_signs(query: Sequence[bytes], parts: Sequence[SignPart], wanted: int, pool: int) -> list[int]:
    """The ids of `wanted` vectors whose signs are nearest, nearest first."""
    asked = _in_columns(np.frombuffer(b"".join(query), dtype=np.uint8).reshape(len(query), -1)).T
    holes = _holes(parts)
    near = None
    looked_at: list[Array] = [part.signs for part in parts]
    first = _distances(asked[0], looked_at)
    if len(first) - len(holes) > pool:
        near = _least(first, holes, pool)
        holes = holes[:0]
        first = first[near]
        looked_at = [_signs_at(near, parts)]
    totals = first * np.uint16(len(query))
    for other in asked[1:]:
        totals += _distances(other, looked_at)
    chosen = _least(totals, holes, wanted)
    chosen = chosen[np.argsort(totals[chosen], kind="stable")]
    return _ids_at(chosen if near is None else near[chosen], parts)


def _holes(parts: Sequence[SignPart]) -> Array:
    """The positions, of all parts together, that have no vector."""
    found, start = [np.empty(0, dtype=np.int64)], 0
    for part in parts:
        if part.absences.count:
            found.append(np.frombuffer(part.absences.positions, dtype=np.int64) + start)
        start += len(part)
    return np.concatenate(found)


def _ids_at(positions: Array, parts: Sequence[SignPart]) -> list[int]:
    """The ids at positions of all parts together."""
    ends = np.cumsum([len(part) for part in parts])
    offsets = np.array([part.first_id + len(part) for part in parts]) - ends
    found: list[int] = (positions + offsets[np.searchsorted(ends, positions, side="right")]).tolist()
    return found


def _in_columns(rows: Array) -> Array:
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % _COLUMN_BYTES)))
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _distances(query: Array, parts: Sequence[Array]) -> Array:
    """The distances of signs to the vectors of all parts, which are in columns."""
    found = np.zeros(sum([part.shape[1] for part in parts]), dtype=np.uint16)
    start = 0
    for part in parts:
        end = start + part.shape[1]
        own, differing = found[start:end], np.empty(part.shape[1], dtype=np.uint64)
        for column, asked in zip(part, query, strict=True):
            np.bitwise_xor(column, asked, out=differing)
            own += np.bitwise_count(differing)
        start = end
    return found


def _signs_at(positions: Array, parts: Sequence[SignPart]) -> Array:
    """The signs at ascending positions of all parts together, in columns."""
    columns, start = [], 0
    for part in parts:
        end = start + len(part)
        own = positions[slice(*np.searchsorted(positions, (start, end)))] - start
        columns.append(part.signs.take(own, axis=1))
        start = end
    return np.concatenate(columns, axis=1)


def _least(numbers: Array, holes: Array, wanted: int) -> Array:
    """The positions of the `wanted` least numbers, ascending; among equals the first, and never a hole."""
    wanted = min(wanted, len(numbers) - len(holes))
    if wanted == len(numbers):
        return np.arange(len(numbers))
    low, high = int(numbers.min()), int(numbers.max())
    if len(holes):
        numbers = numbers.copy()
        numbers[holes] = _ABSENT
    while low < high:
        middle = (low + high) // 2
        if np.count_nonzero(numbers <= middle) >= wanted:
            high = middle
        else:
            low = middle + 1
    chosen = numbers < low
    chosen[np.flatnonzero(numbers == low)[: wanted - int(np.count_nonzero(chosen))]] = True
    return np.flatnonzero(chosen)


def foremost(cosines: memoryview[float], absent: bytes, wanted: int) -> list[int]:
    """The positions of the `wanted` largest of some numbers, in order, and of others that are about as large."""
    numbers: Array = np.asarray(cosines)
    if 255 in absent:
        numbers = np.where(np.frombuffer(absent, dtype=np.uint8), -np.inf, numbers)
    found: list[int] = np.flatnonzero(numbers >= reached(numbers, wanted)).tolist()
    return found


def reached(cosines: Array, wanted: int) -> float:
    """A number that `wanted` cosines reach, and hardly more; anything that is one, when there are not so many."""
    if len(cosines) <= wanted:
        return _LEAST
    # The best of each column are different ones, so the worst of the `wanted` best of them is reached by as many.
    columns = _COLUMNS_OF_WANTED * wanted
    height = len(cosines) // columns
    if height > 1:
        cosines = cosines[: height * columns].reshape(height, columns).max(axis=0)
    return max(_LEAST, float(np.partition(cosines, -wanted)[-wanted]))


def products(query: Array, block: Array) -> Array:
    """The products of a row of bytes with many."""
    try:
        import simsimd
    except ImportError:
        return np.asarray(block.astype(np.float32) @ query.astype(np.float32))
    return np.asarray(np.asarray(simsimd.cdist(query[None], block, "dot"))[0], dtype=np.float32)


def _uint16(buffer: memoryview) -> Array:
    return np.frombuffer(buffer, dtype=np.uint16)
