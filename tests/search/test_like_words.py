"""Where the words of a question say too little, words like them decide between chunks."""

from __future__ import annotations

import pytest

from plainmind.base.model import Chunk
from plainmind.search.like_words import COMPARED_BY_WORD, LIKENESS, add_likeness
from plainmind.search.pages import RankedChunk


def ranked(*texts):
    return [
        RankedChunk(Chunk(f"n{at}.md", "memory", 0, 1, 1, text, "Heading"), 0.0, 0.0, 0.0)
        for at, text in enumerate(texts)
    ]


def test_a_chunk_gains_by_what_it_is_liker_than_the_others():
    chunks = ranked("cat", "dog", "tax")

    add_likeness(chunks, 1.0, lambda texts: [0.9, 0.6, 0.0])

    assert [chunk.bonus for chunk in chunks] == pytest.approx([LIKENESS * each for each in (0.4, 0.1, -0.5)])


def test_it_counts_the_less_the_more_of_the_question_is_said():
    chunks = ranked("cat", "tax")

    add_likeness(chunks, 0.5, lambda texts: [1.0, 0.0])

    assert chunks[0].bonus == pytest.approx(LIKENESS / 4)


def test_headings_and_paths_are_words_too_and_only_the_best_are_compared():
    chunks = ranked(*["text"] * (COMPARED_BY_WORD + 3))
    seen = []

    def likeness(texts):
        seen.extend(texts)
        return [float("text Heading" in text) + float(text.endswith("n0.md")) for text in texts]

    add_likeness(chunks, 1.0, likeness)

    assert len(seen) == COMPARED_BY_WORD
    assert chunks[0].bonus > chunks[1].bonus
    assert all(chunk.bonus == 0.0 for chunk in chunks[COMPARED_BY_WORD:])


def test_nothing_to_compare_is_no_mistake():
    add_likeness([], 1.0, lambda texts: [])
