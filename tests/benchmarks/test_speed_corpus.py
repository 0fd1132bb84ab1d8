"""The corpus that speed is measured on is the same everywhere, looks like notes, and its questions have answers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from speed.corpus import Corpus, vocabulary, words_of
from speed.workload import write_files

from plainmind.notes.workspace import Workspace
from plainmind.text.terms import query_terms

SMALL = Corpus(200)


def everything(corpus):
    return [corpus.file(number) for number in range(corpus.files)]


def test_the_same_seed_gives_the_same_files_vectors_and_questions():
    again = Corpus(200)

    assert everything(SMALL) == everything(again)
    assert all(np.array_equal(SMALL.vectors(number), again.vectors(number)) for number in range(SMALL.files))
    assert [question.text for question in SMALL.questions(9)] == [q.text for q in again.questions(9)]
    assert np.array_equal(SMALL.questions(3)[2].vector, again.questions(9)[2].vector)


def test_another_seed_gives_others():
    other = Corpus(200, seed=8)

    assert other.file(1).text != SMALL.file(1).text
    assert not np.array_equal(other.vectors(1), SMALL.vectors(1))


def test_the_text_is_the_same_whatever_the_dimensions():
    assert everything(Corpus(200, dims=32)) == everything(SMALL)
    assert Corpus(200, dims=32).vectors(0).shape == (10, 32)


@pytest.mark.parametrize(
    ("chunks", "files", "per_file"),
    [(200, 20, 10), (205, 21, 10), (10_000, 1_000, 10), (100_000, 1_000, 100), (1_000_000, 10_000, 100)],
)
def test_a_larger_corpus_has_more_files_and_then_longer_ones(chunks, files, per_file):
    corpus = Corpus(chunks)

    assert (corpus.files, corpus.chunks_per_file) == (files, per_file)
    assert sum(corpus.chunks_in(number) for number in range(files)) == chunks


def test_chunks_cite_exactly_the_lines_that_they_hold():
    for file in everything(SMALL):
        lines = file.text.split("\n")
        for chunk in file.chunks:
            assert "\n".join(lines[chunk.start_line - 1 : chunk.end_line]) == chunk.text


def test_chunks_are_about_as_long_as_those_of_real_notes():
    sizes = [len(chunk.text) for file in everything(Corpus(1_000)) for chunk in file.chunks]

    assert 1_000 < sum(sizes) / len(sizes) < 1_400


def test_words_are_as_unequally_common_as_those_of_real_notes():
    words = Counter(word for file in everything(SMALL) for word in file.text.lower().split())

    assert words.most_common(2)[1][0] == "the"  # after the dash of lists
    assert words["the"] > 10 * words["gateway"] > 0
    assert sum(count == 1 for count in words.values()) > len(words) / 4


def test_there_are_dates_identifiers_and_other_scripts():
    text = "".join(file.text for file in everything(Corpus(1_000)))

    assert "`" in text
    assert " on 2025-" in text
    assert any(word in text for word in words_of("chinese")[5:])
    assert any(word in text for word in words_of("japanese")[10:])


def test_the_workspace_holds_every_file_where_it_would_be_looked_for(tmp_path):
    written = write_files(SMALL, str(tmp_path))

    found = Workspace(str(tmp_path)).discover().files
    assert {file.path for file in found} == {SMALL.path(number) for number in range(SMALL.files)}
    assert sum(file.size for file in found) == written


@pytest.mark.slow
def test_a_question_has_eight_terms_that_all_stand_in_its_chunk():
    for question in SMALL.questions(40):
        terms = query_terms(question.text).terms
        file = next(file for file in everything(SMALL) if file.path == question.path)
        text = file.chunks[question.ordinal].text.lower()

        assert len(question.words) == 8
        assert len(terms) == 8 - ("note" in question.words)  # which says nothing in a question to notes
        assert all(word in text for word in question.words)


def test_a_question_mixes_common_words_with_rare_ones():
    ranks = [[vocabulary(7).rank_of.get(word, 0) for word in one.words] for one in SMALL.questions(20)]

    assert all(max(row[:3]) < min(row[-2:]) for row in ranks)


def test_vectors_have_length_one_and_files_are_clusters():
    rows = np.concatenate([SMALL.vectors(number) for number in range(SMALL.files)])
    cosines = rows @ rows.T
    same_file = np.kron(np.eye(SMALL.files), np.ones((10, 10))).astype(bool)

    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert cosines[same_file].mean() > 0.4
    assert cosines[~same_file].mean() < 0.2


def test_the_chunk_that_a_question_is_about_is_hardly_ever_far_from_it():
    rows = np.concatenate([SMALL.vectors(number) for number in range(SMALL.files)])
    nearest = [
        [SMALL.place(int(chunk)) for chunk in np.argsort(-(rows @ question.vector))[:5]]
        for question in SMALL.questions(40)
    ]

    found = [(one.path, one.ordinal) in near for one, near in zip(SMALL.questions(40), nearest, strict=True)]
    assert sum(found) > 32


@pytest.mark.parametrize("rows", [1, 25, 64, 10_000])
def test_blocks_hold_every_vector_once_and_in_order(rows):
    blocks = list(SMALL.blocks(rows))

    assert [first for first, _ in blocks] == [
        sum(len(block) for _, block in blocks[:at]) for at in range(len(blocks))
    ]
    whole = np.concatenate([SMALL.vectors(number) for number in range(SMALL.files)])
    assert np.array_equal(np.concatenate([block for _, block in blocks]), whole)
