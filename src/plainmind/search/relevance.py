"""How much each line of a chunk answers a question, from signals that are each between 0 and 1."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from operator import getitem

from plainmind.base.value import fields, replace, value
from plainmind.search.asked import COUNTLESS, Asked, Found, Memo, TermSet
from plainmind.search.page import Page

# BM25's saturation: the second mention of a word counts less than the first.
SATURATION = 1.2
# The first of the question's words that a line has tell more than the last.
COVERAGE_POWER = 0.85
# Where a line has this share of the question's words, words are trusted as they are.
ENOUGH_SAID = 0.5


@value
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
        missing = max(0.0, ENOUGH_SAID - best_coverage) / ENOUGH_SAID
        return replace(self, meaning=min(1.0, self.meaning * (1.0 + 1.5 * missing)))


class Wording:
    """What the words of a page say to a question, unit by unit."""

    __slots__ = ("own", "passages")

    def __init__(self, own: list[TermSet], passages: list[float]) -> None:
        self.own = own  # the terms that stand in the unit
        self.passages = passages  # the share of the question that the best window around it has

    def beside(self) -> list[TermSet]:
        """For each unit the terms that stand in the two before or the two after it, and not in it."""
        around = [0, 0, *self.own, 0, 0]
        return [
            (first | second | fourth | fifth) & ~own
            for first, second, own, fourth, fifth in zip(
                around, around[1:], self.own, around[3:], around[4:], strict=False
            )
        ]


class Judge:
    """Weighs the words of pages for one question."""

    def __init__(self, asked: Asked, weights: Weights, *, window_chars: int) -> None:
        self.asked = asked
        self._window_chars = window_chars
        self._passage_weight = weights.passage
        shares = asked.shares
        self._covered = Memo(lambda terms: weights.coverage * math.pow(shares[terms], COVERAGE_POWER))
        self._nearby_weight = weights.nearby
        # By the terms of a page: at least what any unit of it is worth by its words, but for rounding.
        self.most = Memo(lambda terms: self._best_unit(terms, weights) + weights.passage * shares[terms])
        self._most_beside_passages = Memo(lambda terms: self._best_unit(terms, weights))
        # By term: what it adds to the words of a window, by how often it stands there.
        self._saturated = [_Saturated(weight) for weight in asked.weights]

    def read(self, page: Page, found: Found) -> Wording | None:
        """What the words of a page say, given where they stand; None when none of them was asked for."""
        if not found:
            return None
        own = [0] * len(page.units)
        for position, number, _ in found:
            own[position] |= 1 << number
        return Wording(own, self._best_windows(page, found))

    def most_with(self, terms: TermSet, counts: bytes) -> float:
        """The same, where it is known how often each term stands in the page: closer to what there is."""
        at_most = sum(map(getitem, self._saturated, counts)) / self.asked.total
        return self._most_beside_passages[terms] + self._passage_weight * at_most

    def _best_unit(self, terms: TermSet, weights: Weights) -> float:
        """What a unit would be worth that has all terms of its page, but for those around it."""
        share = self.asked.shares[terms]
        most = self._covered[terms]
        # Words beside a unit are worth less than words in it, unless somebody has chosen other weights.
        return most if weights.nearby <= COVERAGE_POWER * weights.coverage else most + weights.nearby * share

    def coverage(self, wording: Wording) -> float:
        """The largest share of the question's words that any unit has."""
        shares = self.asked.shares
        return max([shares[terms] for terms in wording.own])

    def scores(self, wording: Wording) -> list[float]:
        """One number for each unit, from all that its words say."""
        covered, shares = self._covered, self.asked.shares
        nearby, passage_weight = self._nearby_weight, self._passage_weight
        around = [0, 0, *wording.own, 0, 0]
        return [
            covered[own]
            + nearby * shares[(first | second | fourth | fifth) & ~own]
            + passage_weight * passage
            for first, second, own, fourth, fifth, passage in zip(
                around, around[1:], wording.own, around[3:], around[4:], wording.passages, strict=False
            )
        ]

    def _best_windows(self, page: Page, found: Found) -> list[float]:
        """For each unit, the best score of any window of at most so many characters that holds it."""
        weights, total, ends = self.asked.weights, self.asked.total, page.ends
        best = [0.0] * len(page.units)
        room, units, entries = self._window_chars + 1, len(best), len(found)
        counts: dict[int, int] = {}
        entering = leaving = last = 0
        # A window that starts with a line without any of the words is no better than one that starts after it, and one
        # that ends where an earlier one does is no better than that.
        while last < units and leaving < entries:
            first = found[leaving][0]
            reached, last = last, max(first + 1, bisect_right(ends, ends[first] + room) - 1)
            if last > reached:
                while entering < entries and found[entering][0] < last:
                    _, number, count = found[entering]
                    counts[number] = counts.get(number, 0) + count
                    entering += 1
                score = sum(
                    [weights[number] * count / (count + SATURATION) for number, count in counts.items()]
                )
                share = score / total
                for position in range(first, last):
                    if best[position] < share:  # noqa: PLR1730 (a call would cost as much as all the rest)
                        best[position] = share
            while leaving < entries and found[leaving][0] == first:
                _, number, count = found[leaving]
                counts[number] -= count
                leaving += 1
        return best


class _Saturated(dict[int, float]):
    """What a term of some weight adds to the words of a window, by how often it stands there."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self._weight = weight

    def __missing__(self, count: int) -> float:
        self[count] = worth = self._weight * (1.0 if count >= COUNTLESS else count / (count + SATURATION))
        return worth


def standing_out(similarities: Sequence[float]) -> list[float]:
    """How far each similarity is above the least of them, as a share of what is possible.

    A small model knows the scripts without spaces only roughly and puts all their texts close together, whatever they
    say: two unrelated Chinese notes have a cosine of 0.6. There only the difference tells something.
    """
    least = max(0.0, min(similarities, default=0.0))
    return [
        max(0.0, similarity - least) / (1.0 - least) if least < 1.0 else 0.0 for similarity in similarities
    ]
