"""Read the ranked chunks line by line: what each line is worth, from its words, its chunk and who speaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commonplace.search.page import Page
from commonplace.search.ranking import RankedChunk
from commonplace.search.relevance import Judge, Weights, Wording
from commonplace.search.shelf import Shelf

# A line spoken by somebody whom the question names is more likely the answer than one that only mentions them.
SPEAKER_BONUS = 0.08


class ReadChunk:
    """A ranked chunk that was read, and what each of its units is worth."""

    __slots__ = ("page", "ranked", "scores", "wording")

    def __init__(self, ranked: RankedChunk, page: Page, wording: Wording | None, scores: list[float]) -> None:
        self.ranked = ranked
        self.page = page
        self.wording = wording  # None when it has none of the question's words
        self.scores = scores


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
    """Weigh every unit of the ranked chunks. How much meaning counts depends on the words of the foremost alone.

    `named` are the people whom the question names, and `age_factor` tells what the day of a chunk does to its score.
    """
    pages = [shelf.page(item.chunk) for item in ranked]
    wordings = [judge.read(page) for page in pages]
    said = [judge.coverage(wording) for wording in wordings[:foremost] if wording is not None]
    weights = weights.leaning(max(said, default=0.0))
    read = []
    for item, page, wording in zip(ranked, pages, wordings, strict=True):
        words = [0.0] * len(page.units) if wording is None else judge.scores(wording)
        scores = _scores(item, words, weights, page.spoken_by(named), age_factor(item.chunk.day))
        read.append(ReadChunk(item, page, wording, scores))
    return read


def _scores(
    item: RankedChunk, words: Sequence[float], weights: Weights, spoken: Sequence[int], factor: float
) -> list[float]:
    """Add what is known of a chunk to what its words are worth; `spoken` are the units of people asked about."""
    keywords = weights.keywords * item.keywords
    neighbours = weights.neighbours * item.neighbours
    meaning = weights.meaning * item.meaning
    bonus = item.bonus
    scores = [(word + keywords + neighbours + meaning + bonus) * factor for word in words]
    bonus += SPEAKER_BONUS
    for position in spoken:
        scores[position] = (words[position] + keywords + neighbours + meaning + bonus) * factor
    return scores
