"""Segments fill, empty and are packed anew, a graph appears, and what is searched is always what is there."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.index_contents import (
    EVERYWHERE,
    blend,
    embedded,
    file_state,
    fingerprint,
    found_texts,
    near_texts,
    put,
    seen_by,
    vector,
)
from tests.support.postgres_server import open_postgres_store

from plainmind.base.model import PRIVATE, SHARED
from plainmind.guests.postgres import change, view
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.protocol import keyword_candidates, vector_candidates


@pytest.fixture
def store(tmp_path):
    store = open_postgres_store(tmp_path)
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    yield store
    store.close()


def segments_of(store):
    with store.reading() as reader:
        return reader._now.segments


def test_files_of_one_source_and_scope_share_a_segment_until_it_is_full(store):
    for number in range(6):
        put(store, f"{number}.md", *(f"note {number} {part}" for part in range(100)))
    put(store, "s.jsonl", "a message", source="sessions")
    put(store, "g.md", "of a group", scope="group:1")

    found = Counter((each.source, each.scope, each.used) for each in segments_of(store))
    assert found == {
        ("memory", PRIVATE, 512): 1,
        ("memory", PRIVATE, 88): 1,
        ("sessions", PRIVATE, 1): 1,
        ("memory", "group:1", 1): 1,
    }
    assert near_texts(store, "note 5 99", limit=1) == ["note 5 99"]
    assert len(found_texts(store, "note", limit=1_000)) == 600
    store.digest()


def test_what_is_mostly_holes_is_packed_anew_and_small_neighbours_become_one(store):
    for turn in range(12):
        for number in range(4):
            put(store, f"{number}.md", *(f"turn {turn} note {number} {part}" for part in range(60)))
        put(store, f"kept {turn}.md", f"kept {turn}")

    found = segments_of(store)
    assert sum(each.living for each in found) == 4 * 60 + 12
    assert sum(each.used for each in found) < 3 * (4 * 60 + 12)
    assert len(found) <= 3
    assert len(found_texts(store, "kept", limit=100)) == 12
    assert len(found_texts(store, "turn", limit=1_000)) == 240
    store.digest()


def test_an_empty_segment_is_gone(store):
    put(store, "a.md", *(f"note {part}" for part in range(20)))
    store.remove_file("memory", "a.md")
    assert segments_of(store) == ()


def test_a_chunk_without_any_term_survives_packing(store):
    (nothing,) = embedded("n.md", "…")
    from dataclasses import replace

    store.replace_file(file_state("n.md"), [replace(nothing, terms=())])
    for turn in range(6):
        put(store, "a.md", *(f"turn {turn} {part}" for part in range(100)))
    assert near_texts(store, "…", limit=1) == ["…"]
    store.digest()


def test_a_build_writes_segments_as_they_fill(store, monkeypatch):
    monkeypatch.setattr("plainmind.guests.postgres.change.MOST", 64)
    monkeypatch.setattr(change, "MOST", 64)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for number in range(10):
            put(fresh, f"{number}.md", *(f"note {number} {part}" for part in range(30)))
        put(fresh, "3.md", "replaced")
        fresh.remove_file("memory", "4.md")
    assert len(found_texts(store, "note", limit=1_000)) == 240
    assert found_texts(store, "replaced") == ["replaced"]
    store.digest()


def test_a_build_forgets_what_a_failed_change_had_packed(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "one")
        with pytest.raises(Exception, match="numbers"):
            fresh.replace_file(
                file_state("b.md"), [*embedded("b.md", "two"), *embedded("b.md", "three", dims=3)]
            )
        put(fresh, "c.md", "four")
    assert sorted(found_texts(store, "one", "two", "three", "four")) == ["four", "one"]
    store.digest()


@pytest.fixture
def graph_early(monkeypatch):
    monkeypatch.setattr(change, "GRAPH_FROM", 300)
    monkeypatch.setattr(view, "GRAPH_FROM", 100)
    monkeypatch.setattr(view, "COMPARED", 100)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", ["by a rebuild", "by growing"])
def test_a_graph_finds_hardly_less_than_all_and_hides_what_a_filter_hides(store, graph_early, how):
    dice = random.Random(2)
    topics = [vector(f"topic {number}") for number in range(12)]

    def fill(target):
        from dataclasses import replace

        for number in range(20):
            chunks = embedded(f"{number}.md", *(f"note {number} {part}" for part in range(40)))
            near = [
                replace(each, vector=blend(dice.choice(topics), each.vector, dice.uniform(0.2, 0.7)))
                for each in chunks
            ]
            scope = SHARED if number % 4 == 0 else "group:1" if number == 1 else PRIVATE
            target.replace_file(file_state(f"{number}.md", str(number), scope=scope), near)

    with store.rebuild(fingerprint(), reason="a test") as fresh:
        if how == "by a rebuild":
            fill(fresh)
    if how == "by growing":
        fill(store)
    assert store.describe()["vector"]["graph"]
    missed = 0
    with store.reading() as reader:
        for where in (EVERYWHERE, seen_by(SHARED), seen_by("group:1")):
            every = [each.id for each in keyword_candidates(reader, ["note"], where=where, limit=5_000)]
            for number in range(12):
                query = blend(topics[number], vector(f"query {number}"), 0.6)
                exact = sorted(reader.similarities(query, every), reverse=True)[:24]
                found = vector_candidates(reader, query, where=where, limit=24)
                assert {each.id for each in found} <= set(every)
                missed += sum(score > found[-1].score for score in exact) - sum(
                    each.score > found[-1].score for each in found
                )
    assert missed <= 0.02 * 3 * 12 * 24
    store.remove_file("memory", "3.md")
    assert not any("note 3 " in text for text in near_texts(store, "note 3 1", limit=800))
    store.digest()


@pytest.mark.timeout(60)
def test_an_index_that_has_shrunk_misses_nothing_though_it_has_a_graph(store, monkeypatch):
    monkeypatch.setattr(change, "GRAPH_FROM", 300)
    for number in range(10):
        put(store, f"{number}.md", *(f"note {number} {part}" for part in range(60)))
    assert store.describe()["vector"]["graph"]
    for number in range(1, 10):
        store.remove_file("memory", f"{number}.md")
    assert len(near_texts(store, "note 5 5", limit=100)) == 60


@pytest.mark.timeout(60)
def test_of_what_a_filter_admits_none_is_missed_though_others_have_a_graph(store, monkeypatch):
    monkeypatch.setattr(change, "GRAPH_FROM", 300)
    for number in range(10):
        scope = SHARED if number % 2 else PRIVATE
        put(store, f"{number}.md", *(f"note {number} {part}" for part in range(60)), scope=scope)
    assert store.describe()["vector"]["graph"]
    with store.reading() as reader:
        every = [each.id for each in keyword_candidates(reader, ["note"], where=seen_by(SHARED), limit=999)]
        assert len(every) == 300
        for number in range(10):
            query = vector(f"query {number}")
            scores = sorted(reader.similarities(query, every), reverse=True)[:48]
            found = vector_candidates(reader, query, where=seen_by(SHARED), limit=48)
            assert [each.score for each in found] == scores


STEP = st.tuples(
    st.sampled_from(["a.md", "b.md", "c.md"]),
    st.lists(st.sampled_from("abcde"), max_size=8),
    st.sampled_from([PRIVATE, SHARED]),
)


@pytest.mark.timeout(60)
@given(steps=st.lists(STEP, max_size=12))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_it_answers_as_the_store_in_dictionaries_does(store, steps):
    memory = MemoryStore()
    for each in (store, memory):
        with each.rebuild(fingerprint(), reason="a test"):
            pass
        for path, words, scope in steps:
            put(each, path, *(f"{word} {at}" for at, word in enumerate(words)), scope=scope)

    assert store.digest() == memory.digest()
    for where in (EVERYWHERE, seen_by(SHARED)):
        answers = []
        for each in (store, memory):
            with each.reading() as reader:
                words = keyword_candidates(reader, ["a", "b", "0"], where=where, limit=50)
                near = vector_candidates(reader, vector("a 0"), where=where, limit=50)
            answers.append(
                [
                    sorted((one.score, one.chunk.path, one.chunk.ordinal) for one in found)
                    for found in (words, near)
                ]
            )
        assert answers[0] == answers[1]


def test_proposals_are_the_candidates_without_their_texts(store):
    for number in range(8):
        scope = SHARED if number % 2 else PRIVATE
        put(store, f"{number}.md", *(f"note {number} {part}" for part in range(5)), scope=scope)

    for where in (EVERYWHERE, seen_by(SHARED)):
        with store.reading() as reader:
            words = keyword_candidates(reader, ["note", "3"], where=where, limit=12)
            near = vector_candidates(reader, vector("note 3 1"), where=where, limit=12)
        with store.reading() as reader:
            by_words = reader.by_words(["note", "3"], where=where, limit=12)
            by_vector = reader.by_vector(vector("note 3 1"), where=where, limit=12)
            assert by_words == [each.id for each in words]
            assert by_vector == [each.id for each in near]
            assert reader.chunks(by_vector) == [each.chunk for each in near]
            counts = reader.term_counts(["note", "3", "nowhere"], by_words)
        assert [list(each) for each in counts] == [
            [1, each.chunk.text.split().count("3"), 0] for each in words
        ]


@pytest.mark.timeout(60)
def test_what_was_begun_ahead_changes_no_answer_whether_it_is_asked_for_or_not(store, graph_early):
    for number in range(10):
        put(store, f"{number}.md", *(f"note {number} {part}" for part in range(60)))
    assert store.describe()["vector"]["graph"]
    one, other = vector("note 3 7"), vector("note 8 2")
    with store.reading() as reader:
        plain = reader.by_vector(one, where=EVERYWHERE, limit=24)

    with store.reading() as reader:
        reader.expect_vector(one, where=EVERYWHERE, limit=24)
        words = reader.by_words(["note", "3"], where=EVERYWHERE, limit=24)
        assert reader.by_vector(one, where=EVERYWHERE, limit=24) == plain
        assert reader.chunks(words)
        reader.expect_vector(other, where=EVERYWHERE, limit=24)
        assert reader.by_vector(one, where=EVERYWHERE, limit=24) == plain
        reader.expect_vector(other, where=EVERYWHERE, limit=24)  # and nobody asks

    put(store, "after.md", "the connection is as good as new")
    assert found_texts(store, "connection") == ["the connection is as good as new"]


@pytest.mark.timeout(60)
def test_whoever_sees_a_part_is_shown_no_more_by_what_was_begun_ahead(store, graph_early):
    for number in range(10):
        scope = SHARED if number % 2 else PRIVATE
        put(store, f"{number}.md", *(f"note {number} {part}" for part in range(60)), scope=scope)
    with store.reading() as reader:
        reader.expect_vector(vector("note 4 4"), where=seen_by(SHARED), limit=24)
        found = vector_candidates(reader, vector("note 4 4"), where=seen_by(SHARED), limit=24)

    assert len(found) == 24
    assert all(int(each.chunk.text.split()[1]) % 2 for each in found)
