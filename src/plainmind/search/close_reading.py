"""Read the ranked chunks line by line, each when somebody asks: what a line is worth, and before that, at most is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plainmind.search.asked import Found, as_filed, terms_with
from plainmind.search.page import Page
from plainmind.search.ranking import RankedChunk
from plainmind.search.relevance import ENOUGH_SAID, Judge, Weights, Wording
from plainmind.search.shelf import Shelf
from plainmind.search.units import Place, places_of

# A line spoken by somebody whom the question names is more likely the answer than one that only mentions them.
SPEAKER_BONUS = 0.08
# What is added up in another order may differ in the last digits: a bound must stay one.
ROUNDING = 1.0 + 1e-9


class ReadChunk:
    """A ranked chunk whose units are weighed when they are first asked for."""

    __slots__ = (
        "_found",
        "_judge",
        "_known",
        "_named",
        "_page",
        "_places",
        "_scores",
        "_shelf",
        "_without_speaker",
        "_wording",
        "may_be_less",
        "most",
        "ranked",
        "terms",
    )

    def __init__(self, ranked: RankedChunk, shelf: Shelf, judge: Judge) -> None:
        self.ranked = ranked
        self._shelf = shelf
        self._page: Page | None = None
        self._found: Found | None = None
        # It has no other terms of the question.
        if ranked.term_counts is None:
            self.terms, self._found = judge.asked.glance(self.page)
        else:
            self.terms = terms_with(ranked.term_counts)
        self.most = 0.0  # at least the best of its scores
        self.may_be_less = False  # whether a look at its text may show that it is worth less
        self._judge = judge
        self._places: list[Place] | None = None
        self._wording: Wording | None = None
        self._scores: list[float] | None = None

    def weigh(self, weights: Weights, named: frozenset[str], factor: float) -> None:
        """Settle how its units are weighed: by which signals, whom the question names, and what age does to it."""
        item = self.ranked
        self._named = named
        self._known = keywords, neighbours, meaning, bonus, _ = (
            weights.keywords * item.keywords,
            weights.neighbours * item.neighbours,
            weights.meaning * item.meaning,
            item.bonus,
            factor,
        )
        counts = item.term_counts
        words = self._judge.most[self.terms] if counts is None else self._judge.most_with(self.terms, counts)
        most = words + keywords + neighbours + meaning + bonus
        self.most = most * factor * ROUNDING
        if named:
            self._without_speaker = self.most
            self.most = (most + SPEAKER_BONUS) * factor * ROUNDING
            self.may_be_less = True
            if self._page is not None:
                self.look()

    def look(self) -> None:
        """See in its text who may speak in it."""
        self.may_be_less = False
        if not self.page.may_be_spoken_by(self._named):
            self.most = self._without_speaker

    @property
    def page(self) -> Page:
        """Its text, taken apart."""
        if self._page is None:
            self._page = self._shelf.page(self.ranked.chunk)
        return self._page

    @property
    def places(self) -> Sequence[Place]:
        """Where in the file each of its units stands."""
        if self._places is None:
            self._places = places_of(self.ranked.chunk, self.page.units)
        return self._places

    @property
    def wording(self) -> Wording | None:
        """What its words say; None when it has none of the question's."""
        if self._wording is None and self.terms:
            if self._found is None:
                found = self._judge.asked.found_in(self.page, self.terms)
                counts = self.ranked.term_counts
                self._found = found if counts is None else as_filed(found, counts)
            self._wording = self._judge.read(self.page, self._found)
        return self._wording

    @property
    def scores(self) -> Sequence[float]:
        """What each of its units is worth."""
        if self._scores is None:
            self._scores = self._weighed()
        return self._scores

    def _weighed(self) -> list[float]:
        """Add what is known of the chunk to what its words are worth."""
        keywords, neighbours, meaning, bonus, factor = self._known
        wording = self.wording
        words = [0.0] * len(self.page.units) if wording is None else self._judge.scores(wording)
        scores = [(word + keywords + neighbours + meaning + bonus) * factor for word in words]
        bonus += SPEAKER_BONUS
        for position in self.page.spoken_by(self._named):
            scores[position] = (words[position] + keywords + neighbours + meaning + bonus) * factor
        return scores


def read_closely(
    ranked: Sequence[RankedChunk],
    shelf: Shelf,
    judge: Judge,
    weights: Weights,
    *,
    foremost: int,
    named: frozenset[str],
    age_factor: Callable[[str | None], float],
) -> list[ReadChunk]:
    """Make the ranked chunks ready to be read. How much meaning counts depends on the words of the foremost alone.

    `named` are the people whom the question names, and `age_factor` tells what the day of a chunk does to its score.
    """
    chunks = [ReadChunk(item, shelf, judge) for item in ranked]
    weights = weights.leaning(_most_said(chunks[:foremost], judge))
    for chunk in chunks:
        chunk.weigh(weights, named, age_factor(chunk.ranked.chunk.day))
    return chunks


def _most_said(chunks: Sequence[ReadChunk], judge: Judge) -> float:
    """The largest share of the question's words that any unit has, as far as it matters.

    No unit has more than its page: those that may have most are read first, and the others hardly ever.
    """
    most, shares = 0.0, judge.asked.shares
    for chunk in sorted(chunks, key=lambda chunk: shares[chunk.terms], reverse=True):
        if shares[chunk.terms] <= most or most >= ENOUGH_SAID:
            break
        if chunk.wording is not None:
            most = max(most, judge.coverage(chunk.wording))
    return most
