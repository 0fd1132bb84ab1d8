"""The words of the synthetic corpus: frequent ones, rare ones and those of a topic, as real notes have them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]

WORDS = os.path.join(os.path.dirname(__file__), "words")  # one file a language, most frequent words first
LAST_DAY = date(2026, 11, 1)  # of the corpus: figures of tomorrow compare with those of today
SYLLABLES = "ka lo mer tin va or bel dun fi gra hol jen nor pel qui ru".split()  # noqa: SIM905
RARE_WORDS = 40_000
TOPICS = 240
WORDS_OF_TOPIC = 160
TOPICAL_SHARE = 0.3  # of all words in a text
SENTENCES = 2_000  # kept ready in each language that is written without spaces


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words by rank. `cumulative[n]` is the share of all words that rank n or before it."""

    words: npt.NDArray[np.object_]
    rank_of: Mapping[str, int]
    cumulative: npt.NDArray[np.float64]
    topics: Numbers  # ranks, a row a topic
    topical: npt.NDArray[np.float64]  # the same shares within a topic
    sentences: dict[str, tuple[str, ...]]

    def draw(self, chance: np.random.Generator, topic: int, count: int) -> Numbers:
        """Ranks of the words of a text about one topic."""
        ranks = np.searchsorted(self.cumulative, chance.random(count))
        of_topic = self.topics[topic, np.searchsorted(self.topical, chance.random(count))]
        drawn: Numbers = np.where(chance.random(count) < TOPICAL_SHARE, of_topic, ranks)
        return drawn


def words_of(language: str) -> list[str]:
    """The frequent words of a language."""
    with open(os.path.join(WORDS, f"{language}.txt"), encoding="utf-8") as lines:
        return lines.read().split()


@cache
def vocabulary(seed: int) -> Vocabulary:
    """Make the words of a seed. Real ones come first; the rare ones, which no list holds, are invented."""
    chance = np.random.default_rng([seed, 0])
    frequent = words_of("english")
    words = [*frequent, *invented(chance, RARE_WORDS)]
    ranks = np.arange(len(frequent), len(words))
    topics = np.array([chance.choice(ranks, WORDS_OF_TOPIC, replace=False) for _ in range(TOPICS)])
    topics.sort(axis=1)
    return Vocabulary(
        words=np.array(words, dtype=object),
        rank_of={word: rank for rank, word in enumerate(words)},
        cumulative=zipf(len(words)),
        topics=topics,
        topical=zipf(WORDS_OF_TOPIC, flattened=10),
        sentences={
            language: tuple(_sentence(chance, words_of(language)) for _ in range(SENTENCES))
            for language in ("chinese", "japanese")
        },
    )


def zipf(count: int, *, flattened: int = 0) -> npt.NDArray[np.float64]:
    """Cumulative shares of words: the n-th is n times rarer than the first, or less where it is flattened."""
    weights = np.cumsum(1.0 / np.arange(1 + flattened, count + 1 + flattened))
    shares: npt.NDArray[np.float64] = weights / weights[-1]
    shares[-1] = 1.0
    return shares


def invented(chance: np.random.Generator, count: int) -> list[str]:
    """Words of two to four syllables, the short ones first, since frequent words are short."""
    words: list[str] = []
    longer = SYLLABLES
    while len(words) < count:
        longer = [first + second for first in longer for second in SYLLABLES]
        chance.shuffle(longer)
        words += longer
    return words[:count]


def _sentence(chance: np.random.Generator, words: list[str]) -> str:
    drawn = np.searchsorted(zipf(len(words)), chance.random(int(chance.integers(6, 13))))
    return "".join(words[rank] for rank in drawn) + "。"
