"""Where the words of a question say too little: words like them, and the nearest in meaning."""

from __future__ import annotations

import pytest

from plainmind.base.model import Chunk
from plainmind.search.other_words import (
    COMPARED_BY_WORD,
    LIKENESS,
    NEARLY,
    TELLING,
    add_likeness,
    lift_nearest,
)
from plainmind.search.pages import NEAREST, RankedChunk


def ranked(*texts):
    return [
        RankedChunk(Chunk(f"n{at}.md", "memory", 0, 1, 1, text, "Heading"), 0.0, 0.0, 0.0)
        for at, text in enumerate(texts)
    ]


def test_a_chunk_gains_by_what_it_is_liker_than_the_others():
    chunks = ranked("cat", "dog", "tax")

    add_likeness(chunks, 1.0, lambda _texts: [0.9, 0.6, 0.0])

    assert [chunk.lift for chunk in chunks] == pytest.approx([LIKENESS * each for each in (0.4, 0.1, -0.5)])


def test_it_counts_the_less_the_more_of_the_question_is_said():
    chunks = ranked("cat", "tax")

    add_likeness(chunks, 0.5, lambda _texts: [1.0, 0.0])

    assert chunks[0].lift == pytest.approx(LIKENESS / 4)


def test_headings_and_paths_are_words_too_and_only_the_best_are_compared():
    chunks = ranked(*["text"] * (COMPARED_BY_WORD + 3))
    seen = []

    def likeness(texts):
        seen.extend(texts)
        return [float("text Heading" in text) + float(text.endswith("n0.md")) for text in texts]

    add_likeness(chunks, 1.0, likeness)

    assert len(seen) == COMPARED_BY_WORD
    assert chunks[0].lift > chunks[1].lift
    assert all(chunk.lift == 0.0 for chunk in chunks[COMPARED_BY_WORD:])


def test_chunks_that_are_hardly_like_it_gain_nothing():
    chunks = ranked("cat", "tax")

    add_likeness(chunks, 1.0, lambda _texts: [0.25, -0.1])

    assert [chunk.lift for chunk in chunks] == [0.0, 0.0]


def test_nothing_to_compare_is_no_mistake():
    add_likeness([], 1.0, lambda _texts: [])


def near(*meanings):
    chunks = ranked(*["text"] * len(meanings))
    for chunk, meaning in zip(chunks, meanings, strict=True):
        chunk.meaning = meaning
    return chunks


def test_the_nearest_are_worth_nearly_what_words_are_worth_among_the_others():
    chunks = near(0.1, 0.1, 0.5, 0.4, 0.6, 0.3)

    lift_nearest(chunks, [0.3, 0.1, 0.0, 0.05, 0.4, 0.0].__getitem__)

    usual = NEARLY * 0.2
    assert [chunk.lift for chunk in chunks] == pytest.approx([0.0, 0.0, usual, usual - 0.05, 0.0, usual])


def test_what_lifts_for_words_and_what_lifts_for_meaning_add_up():
    chunks = near(0.1, 0.5, 0.5, 0.5, 0.5)
    chunks[1].lift = 0.02

    lift_nearest(chunks, [0.2, 0.0, 0.0, 0.0, 0.0].__getitem__)

    assert chunks[1].lift == pytest.approx(0.02 + NEARLY * 0.2)


def test_only_the_best_tell_what_words_are_worth():
    chunks = near(*[0.1] * TELLING, *[0.5] * NEAREST, 0.1)

    lift_nearest(chunks, [*[0.1] * TELLING, *[0.0] * NEAREST, 99.0].__getitem__)

    assert [chunk.lift for chunk in chunks[TELLING:-1]] == pytest.approx([NEARLY * 0.1] * NEAREST)


def test_without_vectors_and_among_the_nearest_alone_nothing_is_lifted():
    for chunks, words in ((near(0.0, 0.0), [0.5, 0.0]), (near(0.4, 0.2), [0.5, 0.0]), ([], [])):
        lift_nearest(chunks, words.__getitem__)
        assert [chunk.lift for chunk in chunks] == [0.0] * len(chunks)


def test_an_embedder_that_knows_whole_texts_alone_compares_no_words():
    chunks = ranked("cat", "tax")

    add_likeness(chunks, 1.0, None)

    assert [chunk.lift for chunk in chunks] == [0.0, 0.0]
