"""Recall is really computed, an index is one of its files, and the recipe finds what ours finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from speed.corpus import LAST_DAY, Corpus
from speed.recipe import Reference, extension_path
from speed.resident import opened
from speed.workload import (
    EDITED,
    EVERYTHING,
    NEAREST,
    KnownVectors,
    exact_neighbours,
    fill,
    recall,
    search,
    use,
)

from plainmind.base.model import EmbedderIdentity, IndexFingerprint
from plainmind.index.store import open_store
from plainmind.search.engine import SearchEngine, SearchSettings

CORPUS = Corpus(200, dims=64)
QUESTIONS = CORPUS.questions(14)
FINGERPRINT = IndexFingerprint(EmbedderIdentity("synthetic", "clusters", dims=64), "synthetic", "1", 1)

needs_sqlite_vec = pytest.mark.skipif(extension_path() is None, reason="sqlite-vec is not installed")


@pytest.fixture
def store(tmp_path):
    opened_store = open_store("sqlite", folder=str(tmp_path / "index"))
    fill(CORPUS, opened_store, FINGERPRINT)
    yield opened_store
    opened_store.close()


@pytest.fixture
def reference(tmp_path):
    made = Reference(str(tmp_path / "reference.sqlite"), CORPUS.dims)
    made.fill(CORPUS)
    yield made
    made.close()


def all_vectors():
    return np.concatenate([block for _, block in CORPUS.blocks()])


def test_the_nearest_are_those_that_a_comparison_with_every_vector_finds():
    for nearest, question in zip(exact_neighbours(CORPUS, QUESTIONS), QUESTIONS, strict=True):
        assert nearest == np.argsort(-(all_vectors() @ question.vector))[:NEAREST].tolist()


def test_everything_that_was_made_is_in_the_index(store):
    with store.reading() as reader:
        assert reader.counts().chunks == {"memory": 200}
        assert reader.counts().files == {"memory": 20}


def test_recall_is_whole_for_a_small_index_and_falls_with_what_is_missing(store):
    assert recall(CORPUS, store, QUESTIONS) > 0.99

    for number in range(0, CORPUS.files, 2):
        store.remove_file("memory", CORPUS.path(number))
    assert 0.1 < recall(CORPUS, store, QUESTIONS) < 0.9


def test_every_kind_of_search_is_timed_once_for_each_question_after_the_warm_up(store):
    measured = search(CORPUS, store, QUESTIONS, budget_s=5)

    assert list(measured.times) == ["hybrid", "keyword", "vector", "keywordLookup", "vectorLookup"]
    assert {times.runs for times in measured.times.values()} == {len(QUESTIONS) - 10}
    assert all(0 < times.p50_ms <= times.p95_ms for times in measured.times.values())


def test_a_sync_finds_nothing_to_do_in_a_memory_that_was_filled(tmp_path):
    with opened(str(tmp_path / "workspace"), str(tmp_path / "home")) as memory:
        corpus = Corpus(60, dims=memory.index.embedder.identity.dims)
        filled = fill(
            corpus, memory.index.store, memory.index.indexer.fingerprint, workspace=memory.workspace
        )
        report = memory.sync()

        assert (report.indexed, report.removed, report.rebuilt, report.unchanged) == ((), (), None, 6)
        assert filled.text_bytes == sum(file.size for file in memory.list())
        assert (filled.store.chunks, filled.store.seconds > 0) == (60, True)


def test_an_edit_is_found_and_stays_in_the_file(tmp_path):
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    with opened(str(tmp_path / "workspace"), str(tmp_path / "home")) as memory:
        memory.sync()
        times = use(memory, CORPUS.questions(12), budget_s=0)

        assert {name: one.runs for name, one in times.items()} == {"search": 2, "edit": 3}
        assert "zyx0002wvu" in memory.get(EDITED).text


@needs_sqlite_vec
def test_the_recipe_and_ours_agree_on_a_word_that_stands_in_one_chunk(store, reference):
    words = [set(chunk.text.split()) for number in range(20) for chunk in CORPUS.file(number).chunks]
    chunks = [chunk for number in range(20) for chunk in CORPUS.file(number).chunks]
    at, word = next(
        (at, word)
        for at, own in enumerate(words)
        for word in sorted(own)
        if word.isascii()
        and word.isalpha()
        and sum(word in others for others in words) == 1
        and len(word) > 8
    )
    engine = SearchEngine(
        store,
        KnownVectors([], EmbedderIdentity("synthetic", "clusters", dims=64)),
        SearchSettings(use_vectors=False),
    )

    ours = engine.search(word, where=EVERYTHING, today=LAST_DAY).hits[0]
    (_, path, _, line, *_), *_ = reference.by_words(word)
    assert (path, line) == (chunks[at].path, chunks[at].start_line)
    assert ours.path == path
    assert chunks[at].start_line <= ours.start_line <= chunks[at].end_line


@needs_sqlite_vec
def test_the_recipe_compares_with_every_vector(reference):
    for question in QUESTIONS[:3]:
        found = reference.by_meaning(question.vector)
        best = np.sort(all_vectors() @ question.vector)[::-1][: len(found)]

        assert np.allclose([1 - distance for *_, distance in found], best, atol=1e-5)


@needs_sqlite_vec
def test_the_recipe_adds_both_sides_up_and_keeps_its_threshold(reference):
    asked = QUESTIONS[0]
    number = next(at for at in range(CORPUS.files) if CORPUS.path(at) == asked.path)
    same = replace(asked, vector=CORPUS.vectors(number)[asked.ordinal])

    by_meaning, by_both = reference.search(same), reference.search(same, any_word=True)
    assert (by_meaning[0].path, by_meaning[0].score) == (asked.path, pytest.approx(0.7, abs=1e-4))
    assert (by_both[0].path, by_both[0].score) == (asked.path, pytest.approx(1.0, abs=1e-4))
    assert all(found.score >= 0.35 for found in (*by_meaning, *by_both))


@needs_sqlite_vec
def test_any_word_finds_at_least_what_all_words_find(reference):
    question = QUESTIONS[0]
    of_chunk = " ".join(question.words[:2])

    assert reference.by_words(question.text) == []  # its stop words stand in no chunk together
    assert len(reference.by_words(of_chunk)) <= len(reference.by_words(of_chunk, any_word=True))
    assert reference.by_words("？！") == []
