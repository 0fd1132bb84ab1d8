"""How much each line of a chunk answers a question, from signals that are each between 0 and 1."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from commonplace.search.units import Unit

# BM25's saturation: the second mention of a word counts less than the first.
SATURATION = 1.2
# The first of the question's words that a line has tell more than the last.
COVERAGE_POWER = 0.85
# How many lines around a line may lend it words that it does not have.
NEARBY_LINES = 2

_SPEAKER = re.compile(r"[\s>*_-]*(\w+)[*_]*\s?[:：]")


@dataclass(frozen=True, slots=True)
class Weights:
    """How the signals are mixed; those that are consulted are scaled to sum to 1.

    Fitted on questions about conversations, documents and transcripts (docs/decisions), then rounded: what matters is
    that they are there, not their second digit.
    """

    coverage: float = 0.27  # the share of the question's words that the line has
    nearby: float = 0.08  # the share that only the lines beside it have
    passage: float = 0.18  # the words of the best snippet-sized window around the line
    keywords: float = 0.42  # BM25 of the whole chunk, headings included
    neighbours: float = 0.08  # BM25 of the better of the chunks before and after
    meaning: float = 0.18  # cosine of the chunk's vector

    def scaled(self, *, with_vectors: bool, with_keywords: bool) -> Weights:
        """Leave out the signals that were not consulted, so that the rest still reach 1."""
        consulted = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if (with_vectors if field.name == "meaning" else with_keywords)
        }
        total = sum(consulted.values()) or 1.0
        return Weights(**{field.name: consulted.get(field.name, 0.0) / total for field in fields(self)})

    def leaning(self, best_coverage: float) -> Weights:
        """Trust meaning more where no line has even half of the question's words: it was asked in other words."""
        missing = max(0.0, 0.5 - best_coverage) / 0.5
        return replace(self, meaning=min(1.0, self.meaning * (1.0 + 1.5 * missing)))


@dataclass(frozen=True, slots=True)
class Signals:
    """What speaks for one line."""

    coverage: float = 0.0
    nearby: float = 0.0
    passage: float = 0.0
    keywords: float = 0.0
    neighbours: float = 0.0
    meaning: float = 0.0
    matched: tuple[str, ...] = ()

    def mixed(self, weights: Weights) -> float:
        """One number from all."""
        return (
            weights.coverage * math.pow(self.coverage, COVERAGE_POWER)
            + weights.nearby * self.nearby
            + weights.passage * self.passage
            + weights.keywords * self.keywords
            + weights.neighbours * self.neighbours
            + weights.meaning * self.meaning
        )


def signals_of(
    units: Sequence[Unit],
    terms: Sequence[Mapping[str, int]],
    *,
    term_weights: Mapping[str, float],
    window_chars: int,
    keywords: float,
    neighbours: float,
    meaning: float,
) -> list[Signals]:
    """Weigh every unit of one chunk, in order; `terms` counts what stands in each."""
    total = sum(term_weights.values()) or 1.0
    found = [{term: own[term] for term in term_weights if term in own} for own in terms]
    passage = _best_windows(units, found, term_weights, window_chars)
    # Most lines have none of the words, nor have those around them: they share one value.
    silent = Signals(keywords=keywords, neighbours=neighbours, meaning=meaning)
    return [
        Signals(
            coverage=sum(term_weights[term] for term in matched) / total,
            nearby=_lent(found, position, term_weights) / total,
            passage=passage[position] / total,
            keywords=keywords,
            neighbours=neighbours,
            meaning=meaning,
            matched=tuple(matched),
        )
        if passage[position] or any(found[max(0, position - NEARBY_LINES) : position + NEARBY_LINES + 1])
        else silent
        for position, matched in enumerate(found)
    ]


def standing_out(similarities: Sequence[float]) -> list[float]:
    """How far each similarity is above the least of them, as a share of what is possible.

    A small model knows the scripts without spaces only roughly and puts all their texts close together, whatever they
    say: two unrelated Chinese notes have a cosine of 0.6. There only the difference tells something.
    """
    least = max(0.0, min(similarities, default=0.0))
    return [
        max(0.0, similarity - least) / (1.0 - least) if least < 1.0 else 0.0 for similarity in similarities
    ]


def speaker_of(text: str) -> str | None:
    """Who says a line of a conversation: `Anna: …`, `**Anna:** …`, `- Anna: …`."""
    match = _SPEAKER.match(text)
    return match[1] if match else None


def _lent(found: Sequence[Mapping[str, int]], position: int, term_weights: Mapping[str, float]) -> float:
    """What the words weigh that stand beside a unit and not in it."""
    own, beside = found[position], set[str]()
    for matched in found[max(0, position - NEARBY_LINES) : position + NEARBY_LINES + 1]:
        if matched:
            beside.update(matched)
    return sum([term_weights[term] for term in beside if term not in own])


def _best_windows(
    units: Sequence[Unit], found: Sequence[Mapping[str, int]], term_weights: Mapping[str, float], limit: int
) -> list[float]:
    """For each unit, the best score of any window of at most `limit` characters that holds it."""
    best = [0.0] * len(units)
    counts: dict[str, int] = {}
    size = last = 0
    for first, leaving in enumerate(found):
        while last < len(units) and (last == first or size + len(units[last].text) <= limit):
            size += len(units[last].text) + 1
            for term, count in found[last].items():
                counts[term] = counts.get(term, 0) + count
            last += 1
        size -= len(units[first].text) + 1
        if not leaving:
            continue  # a window that starts with an empty line is no better than one that starts after it
        score = sum([term_weights[term] * count / (count + SATURATION) for term, count in counts.items()])
        for position in range(first, last):
            best[position] = max(best[position], score)
        for term, count in leaving.items():
            counts[term] -= count
    return best
