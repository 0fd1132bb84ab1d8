"""Where the words of a question say too little, words like them decide between chunks."""

from __future__ import annotations

import pytest

from plainmind.base.model import Chunk
from plainmind.search.pages import RankedChunk
from plainmind.search.selection import COMPARED_BY_WORD, LIKENESS, add_likeness


def ranked(*texts):
    return [
        RankedChunk(Chunk(f"n{at}.md", "memory", 0, 1, 1, text, "Heading"), 0.0, 0.0, 0.0)
        for at, text in enumerate(texts)
    ]


def test_a_chunk_gains_by_what_it_is_liker_than_the_others():
    chunks = ranked("cat", "dog", "tax")

    add_likeness(chunks, 1.0, lambda _texts: [0.9, 0.6, 0.0])

    assert [chunk.likeness for chunk in chunks] == pytest.approx(
        [LIKENESS * each for each in (0.4, 0.1, -0.5)]
    )


def test_it_counts_the_less_the_more_of_the_question_is_said():
    chunks = ranked("cat", "tax")

    add_likeness(chunks, 0.5, lambda _texts: [1.0, 0.0])

    assert chunks[0].likeness == pytest.approx(LIKENESS / 4)


def test_headings_and_paths_are_words_too_and_only_the_best_are_compared():
    chunks = ranked(*["text"] * (COMPARED_BY_WORD + 3))
    seen = []

    def likeness(texts):
        seen.extend(texts)
        return [float("text Heading" in text) + float(text.endswith("n0.md")) for text in texts]

    add_likeness(chunks, 1.0, likeness)

    assert len(seen) == COMPARED_BY_WORD
    assert chunks[0].likeness > chunks[1].likeness
    assert all(chunk.likeness == 0.0 for chunk in chunks[COMPARED_BY_WORD:])


def test_chunks_that_are_hardly_like_it_gain_nothing():
    chunks = ranked("cat", "tax")

    add_likeness(chunks, 1.0, lambda _texts: [0.25, -0.1])

    assert [chunk.likeness for chunk in chunks] == [0.0, 0.0]


def test_nothing_to_compare_is_no_mistake():
    add_likeness([], 1.0, lambda _texts: [])
