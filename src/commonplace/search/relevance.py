"""How much each line of a chunk answers a question, from four signals that are each between 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from commonplace.search.units import Unit, matches_in

# BM25's saturation: the second mention of a word counts less than the first.
SATURATION = 1.2


@dataclass(frozen=True, slots=True)
class Weights:
    """How the four signals are mixed; they are scaled to sum to 1.

    Fitted on questions about conversations, documents and transcripts (docs/decisions), then rounded: what
    matters is that all four are there, not their second digit.
    """

    coverage: float = 0.27  # the share of the question's words that the line has
    passage: float = 0.18  # the same for the best snippet-sized window around the line
    keywords: float = 0.31  # BM25 of the whole chunk, headings included
    meaning: float = 0.24  # cosine of the chunk's vector

    def scaled(self, *, with_vectors: bool, with_keywords: bool) -> Weights:
        """Leave out the signals that were not consulted, so that the rest still reach 1."""
        meaning = self.meaning if with_vectors else 0.0
        words = 1.0 if with_keywords else 0.0
        parts = (self.coverage * words, self.passage * words, self.keywords * words, meaning)
        total = sum(parts) or 1.0
        return Weights(*(part / total for part in parts))

    def leaning(self, best_coverage: float) -> Weights:
        """Trust meaning more where no line has even half of the question's words: it was asked in other words."""
        missing = max(0.0, 0.5 - best_coverage) / 0.5
        return replace(self, meaning=min(1.0, self.meaning * (1.0 + 2.0 * missing)))


@dataclass(frozen=True, slots=True)
class Signals:
    """What speaks for one line."""

    coverage: float
    passage: float
    keywords: float
    meaning: float
    matched: tuple[str, ...] = ()

    def mixed(self, weights: Weights) -> float:
        """One number from the four."""
        return (
            weights.coverage * self.coverage
            + weights.passage * self.passage
            + weights.keywords * self.keywords
            + weights.meaning * self.meaning
        )


def signals_of(
    units: Sequence[Unit],
    *,
    term_weights: Mapping[str, float],
    keywords: float,
    meaning: float,
    window_chars: int,
) -> list[Signals]:
    """Weigh every unit of one chunk, in order."""
    total = sum(term_weights.values()) or 1.0
    found = [matches_in(unit.text, term_weights) for unit in units]
    passage = _best_windows(units, found, term_weights, window_chars)
    return [
        Signals(
            coverage=sum(term_weights[term] for term in matched) / total,
            passage=best / total,
            keywords=keywords,
            meaning=meaning,
            matched=tuple(matched),
        )
        for matched, best in zip(found, passage, strict=True)
    ]


def _best_windows(
    units: Sequence[Unit], found: Sequence[Mapping[str, int]], term_weights: Mapping[str, float], limit: int
) -> list[float]:
    """For each unit, the best score of any window of at most `limit` characters that holds it."""
    best = [0.0] * len(units)
    for first, matched in enumerate(found):
        if not matched:
            continue  # a window that starts with an empty line is no better than one that starts after it
        counts: dict[str, int] = {}
        size, last = 0, first
        while last < len(units) and (last == first or size + len(units[last].text) <= limit):
            size += len(units[last].text) + 1
            for term, count in found[last].items():
                counts[term] = counts.get(term, 0) + count
            last += 1
        score = sum(term_weights[term] * count / (count + SATURATION) for term, count in counts.items())
        for position in range(first, last):
            best[position] = max(best[position], score)
    return best
