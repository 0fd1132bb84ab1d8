"""How well words match: BM25 as a share of the most that any chunk could have, the same in every store."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

# The values that FTS5 and Lucene use; see Robertson and Zaragoza, "The Probabilistic Relevance Framework".
TERM_SATURATION = 1.2  # k1: how soon a repeated term stops counting more
LENGTH_WEIGHT = 0.75  # b: how much a long chunk has to mention a term more often

MAX_TERM_CHARACTERS = 1_000

_UNSTORABLE = re.compile(r"[\s\x00-\x1f\x7f\ud800-\udfff]")
_UNSTORABLE_OR_LONG = re.compile(r"[^\S ]|[\x00-\x1f\x7f\ud800-\udfff]|\S{500}")


def storable_term(term: str) -> str:
    """The form of a term in an index: folded, without what would end it (white space, NUL, lone surrogates).

    Terms come this way already from `text/`; this keeps a store right for any string at all.
    """
    return _UNSTORABLE.sub("\ufffd", term.casefold()[:MAX_TERM_CHARACTERS])


def storable_terms(terms: Iterable[str]) -> list[str]:
    """The terms of a chunk, in order and with repeats; empty ones are dropped."""
    given = [term for term in terms if term]
    joined = " ".join(given)
    # One look at all of them is ten times as fast as one at each, and ends here for terms from `text/`.
    if joined.count(" ") == len(given) - 1 and _UNSTORABLE_OR_LONG.search(joined) is None:
        return joined.casefold().split(" ")
    return [storable_term(term) for term in given]


def distinct_terms(terms: Iterable[str]) -> list[str]:
    """The terms of a query, each once, in order."""
    return list(dict.fromkeys(storable_terms(terms)))


def inverse_frequency(chunk_count: int, chunks_with: int) -> float:
    """How much a term tells: always positive, so that three notes about one thing still rank."""
    return math.log1p((chunk_count - chunks_with + 0.5) / (chunks_with + 0.5))


def term_weights(chunk_count: int, chunks_with: Mapping[str, int]) -> dict[str, float]:
    """Each term's share of the whole query. A rare term that stands nowhere keeps its share from everyone."""
    told = {term: inverse_frequency(chunk_count, count) for term, count in chunks_with.items()}
    whole = sum(told.values())
    return {term: worth / whole for term, worth in told.items()}


def length_penalty(length: int, average_length: float) -> float:
    """What saturation has to overcome in a chunk of this many terms."""
    return TERM_SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / (average_length or 1.0))


def score(weights: Mapping[str, float], occurrences: Mapping[str, int], penalty: float) -> float:
    """The score of one chunk, 0..1: `occurrences` counts the terms of the query that stand in it."""
    return sum(
        weight * count / (count + penalty)
        for term, weight in weights.items()
        if (count := occurrences.get(term, 0))
    )


def scores(
    weights: Mapping[str, float], postings: Mapping[str, Mapping[int, int]], penalties: Mapping[int, float]
) -> dict[int, float]:
    """The scores of every chunk in `penalties` with any of the terms; equal to `score`, term by term."""
    found: dict[int, float] = {}
    for term, weight in weights.items():
        for chunk, count in postings[term].items():
            penalty = penalties.get(chunk)
            if penalty is not None:
                found[chunk] = found.get(chunk, 0.0) + weight * count / (count + penalty)
    return found


def best(found: Mapping[int, float], limit: int) -> Sequence[tuple[int, float]]:
    """The `limit` best of a mapping from id to score; among equals the oldest id comes first."""
    if limit <= 0:
        return []
    if len(found) > 4 * limit:
        from heapq import nlargest

        floor = nlargest(limit, found.values())[-1]
        found = {id_: value for id_, value in found.items() if value >= floor}
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]
