"""Words that are like those of the question speak for a chunk, in any language, where its own words say too little."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plainmind.search.pages import RankedChunk

COMPARED_BY_WORD = 24
# What a chunk whose words are all like those of the question gains over one whose words are not.
LIKENESS = 0.6


def add_likeness(
    ranked: Sequence[RankedChunk], missing: float, likeness: Callable[[Sequence[str]], list[float]]
) -> None:
    """Add to the bonuses of the best what their words are like, around the mean, so that worths stay comparable.

    It counts by how much is `missing`: from 0, where enough of the question is said, to 1, where nothing of it is.
    """
    best = ranked[:COMPARED_BY_WORD]
    found = likeness([f"{item.chunk.text} {item.chunk.context} {item.chunk.path}" for item in best])
    usual = sum(found) / (len(found) or 1)
    for item, each in zip(best, found, strict=True):
        item.bonus += LIKENESS * missing * (each - usual)
