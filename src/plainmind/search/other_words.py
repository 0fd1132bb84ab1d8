"""Where the words of a question say too little: the nearest chunks in meaning, and words that are like its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from plainmind.search.pages import NEAREST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.search.pages import RankedChunk

# --- the nearest in meaning ---

# In a large memory some lines have some words of any question by chance, and what answers it in other words, or in
# another language, has none. So the nearest are given nearly as much as words are worth to so many of the best.
TELLING = 16
NEARLY = 0.8


def lift_nearest(ranked: Sequence[RankedChunk], words: Callable[[int], float]) -> None:
    """Give the nearest what they lack of what words are worth among the best; `words` says what they are in each."""
    nearest = sorted(range(len(ranked)), key=lambda at: -ranked[at].meaning)[:NEAREST]
    telling = [words(at) for at in range(min(TELLING, len(ranked))) if at not in nearest]
    usual = NEARLY * sum(telling) / (len(telling) or 1)
    for at in nearest:
        if ranked[at].meaning:
            ranked[at].lift += max(0.0, usual - words(at))


# --- words like those of the question ---

# How many of the best chunks are compared with it word by word.
COMPARED_BY_WORD = 16
# What a chunk whose words are all like those of the question gains over one whose words are not.
LIKENESS = 0.4
# Where none is as like it as this, none is like it at all: any two texts are a little.
LEAST_LIKENESS = 0.3
# The longer a text, the more it has of everything: so much less counts each time that it is e times as long.
OF_LENGTH = 0.06
_SHORTEST = 60  # bytes


def add_likeness(
    ranked: Sequence[RankedChunk], missing: float, likeness: Callable[[Sequence[str]], list[float]] | None
) -> None:
    """Note what words like the question's are worth in the best chunks, around the mean: worths stay comparable.

    It counts by how much is `missing`: from 0, where enough of the question is said, to 1, where nothing of it is.
    """
    if likeness is None:  # the embedder knows whole texts alone
        return
    best = ranked[:COMPARED_BY_WORD]
    texts = [f"{item.chunk.text} {item.chunk.context} {item.chunk.path}" for item in best]
    found = likeness(texts)
    if max(found, default=0.0) < LEAST_LIKENESS:
        return
    found = [
        each - OF_LENGTH * math.log(max(len(text.encode()), _SHORTEST))
        for each, text in zip(found, texts, strict=True)
    ]
    usual = sum(found) / len(found)
    for item, each in zip(best, found, strict=True):
        item.lift = LIKENESS * missing * (each - usual)
