"""What every index store promises, whatever it is made of."""

from __future__ import annotations

import random
import threading
from array import array
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.index.conftest import make_desk
from tests.support.examples import examples
from tests.support.index_contents import (
    DIMS,
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
from tests.support.plain_store import PlainStore
from tests.support.stores import DRIVERS, PARAMS, open_for_test

from plainmind.base.errors import BadVector, ConflictError, IndexUnavailable
from plainmind.base.model import EVERY_SCOPE, PRIVATE, SHARED, Restriction, SearchFilter
from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.protocol import keyword_candidates, vector_candidates

MEMORY_ONLY = SearchFilter(sources=frozenset({"memory"}), scopes=EVERY_SCOPE)
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "workspace"
STUDIO = "the gateway runs on a Mac Studio"
HETZNER = "the gateway moved to Hetzner"


@pytest.fixture(params=PARAMS)
def unbuilt(request, tmp_path):
    store = open_for_test(request.param, tmp_path)
    yield store
    store.close()


@pytest.fixture
def store(unbuilt):
    with unbuilt.rebuild(fingerprint(), reason="there is no index yet"):
        pass
    return unbuilt


def test_an_index_that_was_never_built_is_empty_and_has_no_fingerprint(unbuilt):
    with unbuilt.reading() as reader:
        assert reader.fingerprint() is None
        assert reader.files() == {}
        assert keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=5) == []
        assert vector_candidates(reader, vector("gateway"), where=EVERYWHERE, limit=5) == []
        assert reader.term_statistics(["gateway"], where=EVERYWHERE).chunks_with == {"gateway": 0}


def test_an_index_that_was_never_built_takes_no_files(unbuilt):
    with pytest.raises(IndexUnavailable, match="not been built"):
        put(unbuilt, "MEMORY.md", STUDIO)


def test_a_rebuilt_index_knows_how_it_was_made(store):
    with store.reading() as reader:
        assert reader.fingerprint() == fingerprint()


def test_a_file_comes_back_as_it_was_put_in(store):
    state = replace(file_state("memory/größe.md", "x"), inode=2**64 - 1, size=2**40, mtime_ns=2**62)
    chunks = embedded(state.path, "erste Zeile", "zweite Zeile")
    chunks[0] = replace(chunks[0], chunk=replace(chunks[0].chunk, context="Netz › Tor", day="2026-02-10"))
    store.replace_file(state, chunks)

    with store.reading() as reader:
        assert reader.files() == {("memory", state.path): state}
        assert reader.chunks_between("memory", state.path, 1, 99) == [each.chunk for each in chunks]


def test_replacing_a_file_leaves_none_of_its_old_chunks(store):
    put(store, "MEMORY.md", STUDIO)
    put(store, "MEMORY.md", HETZNER)

    assert found_texts(store, "studio") == []
    assert found_texts(store, "gateway") == [HETZNER]
    assert near_texts(store, STUDIO) == [HETZNER]
    with store.reading() as reader:
        assert reader.counts().chunks == {"memory": 1}


def test_removing_a_file_leaves_the_others(store):
    put(store, "a.md", STUDIO)
    put(store, "b.md", HETZNER)
    store.remove_file("memory", "a.md")

    assert found_texts(store, "gateway") == [HETZNER]
    assert near_texts(store, STUDIO) == [HETZNER]
    with store.reading() as reader:
        assert list(reader.files()) == [("memory", "b.md")]


def test_removing_what_is_not_there_is_fine(store):
    store.remove_file("memory", "never.md")
    store.erase("memory", "never.md")


def test_the_same_path_in_two_sources_is_two_files(store):
    put(store, "a.md", STUDIO, source="memory")
    put(store, "a.md", HETZNER, source="sessions")
    store.remove_file("memory", "a.md")

    assert found_texts(store, "gateway") == [HETZNER]


def test_touching_a_file_changes_how_it_looks_and_nothing_else(store):
    state = put(store, "a.md", STUDIO)
    digest = store.digest()
    touched = replace(state, mtime_ns=99, inode=100)
    store.touch_file(touched)

    with store.reading() as reader:
        assert reader.files() == {("memory", "a.md"): touched}
    assert store.digest() == digest


def test_touching_a_file_whose_text_changed_or_that_is_unknown_does_nothing(store):
    state = put(store, "a.md", STUDIO)
    store.touch_file(replace(state, hash="0" * 64, mtime_ns=99))
    store.touch_file(file_state("never.md"))

    with store.reading() as reader:
        assert reader.files() == {("memory", "a.md"): state}


def test_a_file_without_chunks_is_still_known(store):
    state = put(store, "empty.md")

    with store.reading() as reader:
        assert reader.files() == {("memory", "empty.md"): state}
        assert reader.counts().files == {"memory": 1}
        assert reader.counts().chunks == {"memory": 0}


@pytest.mark.parametrize("text", ["", " \n", "a\0b", "half a \ud800 pair", "\udfff" * 400, "日本 🦊 é"])
def test_any_text_and_any_context_come_back_as_they_were(store, text):
    (chunk,) = embedded("a.md", "plain")
    chunk = replace(chunk, chunk=replace(chunk.chunk, text=text, context=text))
    store.replace_file(file_state("a.md"), [chunk])

    with store.reading() as reader:
        assert reader.chunks_between("memory", "a.md", 1, 3) == [chunk.chunk]
    store.digest()


def test_chunks_are_found_by_the_lines_they_share(store):
    put(store, "a.md", "one", "two", "three")  # lines 1-3, 4-6, 7-9

    with store.reading() as reader:
        assert [each.text for each in reader.chunks_between("memory", "a.md", 3, 4)] == ["one", "two"]
        assert [each.text for each in reader.chunks_between("memory", "a.md", 9, 50)] == ["three"]
        assert reader.chunks_between("memory", "a.md", 10, 50) == []
        assert reader.chunks_between("sessions", "a.md", 1, 9) == []


def test_a_tall_chunk_is_found_by_each_of_its_lines(store):
    state = file_state("a.md", "a")
    chunks = embedded("a.md", "short", "tall", "after", "last")
    tall = replace(chunks[1].chunk, start_line=2, end_line=400)
    after = replace(chunks[2].chunk, start_line=3, end_line=3)
    last = replace(chunks[3].chunk, start_line=401, end_line=401)
    store.replace_file(
        state,
        [
            chunks[0],
            *(replace(each, chunk=c) for each, c in zip(chunks[1:], (tall, after, last), strict=True)),
        ],
    )

    with store.reading() as reader:
        assert [each.text for each in reader.chunks_between("memory", "a.md", 399, 400)] == ["tall"]
        assert [each.text for each in reader.chunks_between("memory", "a.md", 3, 3)] == [
            "short",
            "tall",
            "after",
        ]
        assert [each.text for each in reader.chunks_between("memory", "a.md", 401, 500)] == ["last"]


def test_nobody_can_change_the_files_that_others_see(store):
    put(store, "a.md", STUDIO)

    with store.reading() as reader, pytest.raises(TypeError):
        reader.files()["memory", "b.md"] = file_state("b.md")


# --- keywords ------------------------------------------------------------------------------------------------


def test_three_notes_about_one_thing_still_rank_by_the_word_that_tells_them_apart(store):
    put(store, "a.md", "gateway on the mac")
    put(store, "b.md", "gateway on hetzner")
    put(store, "c.md", "gateway gone")

    with store.reading() as reader:
        found = keyword_candidates(reader, ["gateway", "hetzner"], where=EVERYWHERE, limit=5)
    assert found[0].chunk.path == "b.md"
    assert len(found) == 3
    assert all(0 < each.score <= 1 for each in found)
    assert found[0].score > 2 * found[1].score


def test_the_only_note_is_found_by_its_words(store):
    put(store, "a.md", STUDIO)

    with store.reading() as reader:
        (found,) = keyword_candidates(reader, ["studio"], where=EVERYWHERE, limit=5)
    assert found.score > 0.3


def test_a_rare_word_that_stands_nowhere_lowers_every_score(store):
    for number in range(20):
        put(store, f"{number}.md", f"gateway number {number}")

    with store.reading() as reader:
        alone = keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=1)[0].score
        with_missing = keyword_candidates(reader, ["gateway", "zeppelin"], where=EVERYWHERE, limit=1)[0].score
    assert with_missing < alone / 10


def test_a_repeated_query_term_counts_once(store):
    put(store, "a.md", STUDIO)
    put(store, "b.md", HETZNER)

    with store.reading() as reader:
        once = keyword_candidates(reader, ["studio", "gateway"], where=EVERYWHERE, limit=5)
        twice = keyword_candidates(reader, ["studio", "gateway", "studio"], where=EVERYWHERE, limit=5)
    assert once == twice


def test_no_terms_find_nothing(store):
    put(store, "a.md", STUDIO)

    assert found_texts(store) == []
    assert found_texts(store, "") == []
    assert found_texts(store, "studio", limit=0) == []
    assert near_texts(store, "studio", limit=0) == []


def test_term_statistics_count_chunks_not_occurrences(store):
    put(store, "a.md", "mac mac mac", "mac studio")
    put(store, "b.md", "hetzner")

    with store.reading() as reader:
        statistics = reader.term_statistics(["mac", "studio", "nowhere"], where=EVERYWHERE)
    assert statistics.chunk_count == 3
    assert statistics.chunks_with == {"mac": 2, "studio": 1, "nowhere": 0}


def test_statistics_forget_what_was_removed(store):
    put(store, "a.md", "mac mac")
    put(store, "b.md", "mac")
    store.remove_file("memory", "a.md")

    with store.reading() as reader:
        assert reader.term_statistics(["mac"], where=EVERYWHERE).chunks_with == {"mac": 1}
        assert reader.term_statistics(["mac"], where=EVERYWHERE).chunk_count == 1


HOSTILE = [
    'a"b', '"', '""', "'", "*", "foo*", "AND", "NOT", "NEAR(", "-x", "+x", "col:x", "^a", "(", ")", "{}", "\\",
    "a\x00b", "\x00", "\x01", "\x7f", "\x1c", "\ud800", "\udfff", "😀", "👩‍👩‍👧", "é", "e\u0301", "İ", "ß", "ς", "Σ",
    "\u00a0", "\u3000", "\u2028", "\u200b", "\ufeff", "\uffff", "\U0010ffff", "中文", "a b", "%_",
    "'; DROP TABLE chunks; --",
    "x" * 40_000, "--", "/*", "C++", "#L3-L7", "src/app.py:17", "$HOME", "`x`", "~", "|", "=", ";", "@", "[", "]",
]  # fmt: skip


@pytest.mark.parametrize("term", HOSTILE, ids=[ascii(term)[:24] for term in HOSTILE])
def test_any_term_at_all_is_found_exactly_where_it_stands(store, term):
    state = file_state("a.md", "a")
    chunks = embedded("a.md", "with it", "without it")
    chunks[0] = replace(chunks[0], terms=("before", term, "after"))
    store.replace_file(state, chunks)

    assert found_texts(store, term) == ["with it"]
    with store.reading() as reader:
        assert reader.term_statistics([term], where=EVERYWHERE).chunks_with == {term: 1}


def test_a_term_that_stands_there_more_often_than_can_be_counted_is_found(store):
    state = file_state("a.md", "a")
    chunks = embedded("a.md", "often", "once")
    store.replace_file(
        state,
        [replace(chunks[0], terms=("mac",) * 70_000), replace(chunks[1], terms=("mac", "studio"))],
    )

    with store.reading() as reader:
        found = keyword_candidates(reader, ["mac"], where=EVERYWHERE, limit=5)
        assert {each.chunk.text for each in found} == {"often", "once"}
        assert all(0 < each.score <= 1 for each in found)
        assert reader.term_statistics(["mac"], where=EVERYWHERE).chunks_with == {"mac": 2}


TERM = st.text(st.sampled_from("ab\"'*\x00 é中😀\ud800-"), min_size=1, max_size=4)


@given(chunks=st.lists(st.lists(TERM, max_size=6), max_size=6), query=st.lists(TERM, max_size=4))
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_scores_are_shares_of_one_and_the_same_for_ids_as_for_candidates(store, chunks, query):
    texts = embedded("a.md", *(f"text {at}" for at in range(len(chunks))))
    store.replace_file(
        file_state("a.md"), [replace(each, terms=tuple(own)) for each, own in zip(texts, chunks, strict=True)]
    )

    with store.reading() as reader:
        found = keyword_candidates(reader, query, where=EVERYWHERE, limit=10)
        again = reader.keyword_scores(query, [each.id for each in found], where=EVERYWHERE)
    assert all(0 < each.score <= 1 for each in found)
    assert [each.score for each in found] == pytest.approx(again)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


def test_a_larger_limit_only_adds_at_the_end(store):
    dice = random.Random(5)
    for number in range(40):
        put(store, f"{number}.md", " ".join(dice.choices(["mac", "studio", "tor", "netz", "port"], k=6)))

    with store.reading() as reader:
        few = keyword_candidates(reader, ["mac", "tor"], where=EVERYWHERE, limit=6)
        many = keyword_candidates(reader, ["mac", "tor"], where=EVERYWHERE, limit=20)
        near = vector_candidates(reader, vector("mac"), where=EVERYWHERE, limit=6)
        nearer = vector_candidates(reader, vector("mac"), where=EVERYWHERE, limit=20)
    assert many[:6] == few
    assert nearer[:6] == near


def test_candidates_without_a_term_score_zero(store):
    put(store, "a.md", STUDIO)
    put(store, "b.md", "hetzner")

    with store.reading() as reader:
        near = vector_candidates(reader, vector(STUDIO), where=EVERYWHERE, limit=2)
        scores = reader.keyword_scores(["hetzner"], [each.id for each in near], where=EVERYWHERE)
    assert scores[0] == 0.0
    assert scores[1] > 0.3


# --- vectors -------------------------------------------------------------------------------------------------


def test_the_nearest_chunk_comes_first_with_its_cosine(store):
    put(store, "a.md", STUDIO)
    put(store, "b.md", HETZNER)
    between = blend(vector(STUDIO), vector(HETZNER), 0.8)
    expected = sum(a * b for a, b in zip(between, vector(STUDIO), strict=True))

    with store.reading() as reader:
        found = vector_candidates(reader, between, where=EVERYWHERE, limit=2)
    assert [each.chunk.text for each in found] == [STUDIO, HETZNER]
    assert found[0].score == pytest.approx(expected, abs=2e-3)


def test_opposite_vectors_score_zero_and_not_less(store):
    put(store, "a.md", STUDIO)
    opposite = array("f", (-number for number in vector(STUDIO)))

    with store.reading() as reader:
        (found,) = vector_candidates(reader, opposite, where=EVERYWHERE, limit=2)
        assert found.score == 0.0
        assert reader.similarities(opposite, [found.id]) == [0.0]


def test_chunks_without_a_vector_are_found_by_words_only(store):
    put(store, "a.md", STUDIO, without_vector=True)
    put(store, "b.md", HETZNER)

    assert near_texts(store, STUDIO) == [HETZNER]
    assert found_texts(store, "studio") == [STUDIO]
    with store.reading() as reader:
        (found,) = keyword_candidates(reader, ["studio"], where=EVERYWHERE, limit=1)
        assert reader.similarities(vector(STUDIO), [found.id]) == [0.0]


def test_similarities_are_those_of_the_candidates(store):
    put(store, "a.md", *(f"note number {number}" for number in range(50)))
    query = vector("note number 7")

    with store.reading() as reader:
        found = vector_candidates(reader, query, where=EVERYWHERE, limit=20)
        again = reader.similarities(query, [each.id for each in reversed(found)])
    assert found[0].chunk.text == "note number 7"
    assert list(reversed(again)) == pytest.approx([each.score for each in found])


def test_the_vectors_of_a_file_come_back_in_order(store):
    put(store, "other.md", HETZNER)
    put(store, "a.md", STUDIO, HETZNER, "without")
    chunks = embedded("a.md", STUDIO, HETZNER, "without")
    chunks[2] = replace(chunks[2], vector=None)
    store.replace_file(file_state("a.md"), chunks)

    with store.reading() as reader:
        first, second, third = reader.vectors_of("memory", "a.md")
        assert reader.vectors_of("memory", "never.md") == []
    assert list(first) == pytest.approx(list(vector(STUDIO)), abs=2e-3)
    assert list(second) == pytest.approx(list(vector(HETZNER)), abs=2e-3)
    assert third is None
    digest = store.digest()
    store.replace_file(
        file_state("a.md"),
        [replace(each, vector=own) for each, own in zip(chunks, (first, second, third), strict=True)],
    )
    assert store.digest() == digest


@pytest.mark.parametrize(
    "bad",
    [
        array("f", [1.0] + [0.0] * DIMS),
        array("f", [1.0]),
        array("f", [0.0] * DIMS),
        array("f", [float("nan")] * DIMS),
        array("f", [float("inf")] + [0.0] * (DIMS - 1)),
        array("f", [2.0] + [0.0] * (DIMS - 1)),
    ],
    ids=["too long", "too short", "zero", "not a number", "infinite", "not a unit"],
)
def test_a_bad_vector_gets_neither_in_nor_searched_for(store, bad):
    put(store, "a.md", STUDIO)
    chunks = embedded("a.md", HETZNER, "second")

    with pytest.raises(BadVector):
        store.replace_file(file_state("a.md"), [chunks[0], replace(chunks[1], vector=bad)])
    with store.reading() as reader, pytest.raises(BadVector):
        vector_candidates(reader, bad, where=EVERYWHERE, limit=5)
    assert found_texts(store, "gateway") == [STUDIO]
    assert near_texts(store, STUDIO) == [STUDIO]


def test_freed_places_of_vectors_are_used_again_and_never_surface(store):
    for turn in range(6):
        put(store, "a.md", *(f"turn {turn} note {number}" for number in range(300)))
        if turn % 2:
            store.remove_file("memory", "a.md")
            assert near_texts(store, "turn 1 note 1") == []
    put(store, "b.md", STUDIO)

    assert near_texts(store, "turn 1 note 1", limit=50) == [STUDIO]


def test_none_of_the_nearest_is_missed_in_a_small_index(store):
    with store.rebuild(fingerprint(dims=64), reason="a test") as fresh:
        chunks = embedded("a.md", *(f"note {number}" for number in range(1_000)), dims=64)
        alike = [replace(each, vector=blend(vector("x", 64), each.vector, 0.98)) for each in chunks]
        fresh.replace_file(file_state("a.md"), alike)

    for number in range(10):
        query = blend(vector("x", 64), vector(f"query {number}", 64), 0.9)
        with store.reading() as reader:
            every = [each.id for each in keyword_candidates(reader, ["note"], where=EVERYWHERE, limit=5_000)]
            exact = sorted(reader.similarities(query, every), reverse=True)[:10]
            found = vector_candidates(reader, query, where=EVERYWHERE, limit=10)
        assert [each.score for each in found] == exact


def test_hardly_any_of_the_nearest_is_missed(store):
    dice = random.Random(2)
    topics = [vector(f"topic {number}", 64) for number in range(12)]
    with store.rebuild(fingerprint(dims=64), reason="a test") as fresh:
        for number in range(30):
            chunks = embedded(f"{number}.md", *(f"note {number} {part}" for part in range(100)), dims=64)
            near = [
                replace(each, vector=blend(dice.choice(topics), each.vector, dice.uniform(0.2, 0.7)))
                for each in chunks
            ]
            fresh.replace_file(file_state(f"{number}.md", str(number)), near)

    missed = 0
    with store.reading() as reader:
        all_ids = [each.id for each in keyword_candidates(reader, ["note"], where=EVERYWHERE, limit=5_000)]
        assert len(all_ids) == 3_000
        for number in range(20):
            query = blend(topics[number % 12], vector(f"query {number}", 64), 0.6)
            exact = sorted(reader.similarities(query, all_ids), reverse=True)[:48]
            found = vector_candidates(reader, query, where=EVERYWHERE, limit=48)
            assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
            missed += sum(score > found[-1].score for score in exact) - sum(
                each.score > found[-1].score for each in found
            )
    assert missed <= 0.02 * 20 * 48


# --- filters -------------------------------------------------------------------------------------------------


def test_a_filter_hides_the_other_source_from_every_retriever(store):
    put(store, "a.md", STUDIO, source="memory")
    put(store, "s.jsonl", STUDIO, source="sessions")

    with store.reading() as reader:
        words = keyword_candidates(reader, ["studio"], where=MEMORY_ONLY, limit=10)
        near = vector_candidates(reader, vector(STUDIO), where=MEMORY_ONLY, limit=10)
        nothing = SearchFilter(sources=frozenset(), scopes=EVERY_SCOPE)
        assert keyword_candidates(reader, ["studio"], where=nothing, limit=10) == []
        assert vector_candidates(reader, vector(STUDIO), where=nothing, limit=10) == []
    assert [each.chunk.source for each in words] == ["memory"]
    assert [each.chunk.source for each in near] == ["memory"]


def test_hidden_rows_do_not_take_the_places_of_visible_ones(store):
    put(store, "s.jsonl", *(f"{STUDIO} studio {number}" for number in range(30)), source="sessions")
    put(store, "a.md", f"{STUDIO} and much more that makes this note a long one", source="memory")

    assert len(found_texts(store, "studio", where=MEMORY_ONLY, limit=3)) == 1
    assert len(near_texts(store, f"{STUDIO} studio 4", where=MEMORY_ONLY, limit=3)) == 1


def restricted(where=EVERYWHERE, **wishes):
    return replace(where, only=Restriction(**wishes))


def test_what_does_not_pass_takes_no_place_of_what_does(store):
    put(store, "best.md", *(f"{STUDIO} studio {number}" for number in range(30)))
    put(store, "projects/a.md", *(f"studio and much more of it {number}" for number in range(5)))
    put(store, "s.jsonl", f"{STUDIO} studio", source="sessions")
    put(store, "gone/b.md", f"{STUDIO} studio")
    store.remove_file("memory", "gone/b.md")

    for wishes in (
        {"paths": ("projects", "gone")},
        {"phrases": ("much more",)},
        {"without": ("gateway",)},
        {"without_paths": ("best", "s.jsonl")},
    ):
        where = restricted(**wishes)
        found = found_texts(store, "studio", where=where, limit=3), near_texts(store, STUDIO, where, limit=3)
        assert [len(texts) for texts in found] == [3, 3], wishes
        assert all("much more" in text for texts in found for text in texts), wishes


def test_a_restriction_shows_nothing_that_a_scope_hides(store):
    put(store, "notes/own.md", "studio of the group", scope=GROUP)
    put(store, "notes/other.md", "studio of others", scope=OTHER_GROUP)

    for wishes in ({"paths": ("notes",)}, {"phrases": ("studio of",)}, {"without": ("gateway",)}):
        where = restricted(seen_by(GROUP), **wishes)
        assert both_retrievers(store, where) == (["studio of the group"], ["studio of the group"])


def test_scores_are_the_same_with_a_restriction(store):
    put(store, "a.md", STUDIO, "the studio is cold")
    put(store, "b.md", HETZNER, "a studio")

    with store.reading() as reader:
        every = keyword_candidates(reader, ["studio"], where=EVERYWHERE, limit=9)
        some = keyword_candidates(reader, ["studio"], where=restricted(paths=("a.md",)), limit=9)
        assert some == [each for each in every if each.chunk.path == "a.md"]
        assert reader.passing(restricted(paths=("b.md",))) != []
        assert reader.passing(restricted(without=("cold",))) is None


# --- scopes --------------------------------------------------------------------------------------------------

GROUP, OTHER_GROUP = "group:42", "group:43"


def both_retrievers(store, where, limit=10):
    return found_texts(store, "studio", where=where, limit=limit), near_texts(
        store, STUDIO, where=where, limit=limit
    )


def test_a_file_comes_back_with_its_scope(store):
    private = put(store, "a.md", STUDIO)
    shared = put(store, "b.md", STUDIO, scope=SHARED)
    group = put(store, "c.md", scope=GROUP)

    with store.reading() as reader:
        assert set(reader.files().values()) == {private, shared, group}
    assert (private.scope, shared.scope, group.scope) == (PRIVATE, SHARED, GROUP)


def test_a_chunk_is_found_by_those_alone_who_may_see_its_file(store):
    for scope in (PRIVATE, SHARED, GROUP, OTHER_GROUP):
        put(store, f"{scope}.md", f"studio of {scope}", scope=scope)

    for scopes in ((), (PRIVATE,), (SHARED,), (GROUP, SHARED), (OTHER_GROUP, "person:7"), ("person:7",)):
        expected = sorted(f"studio of {scope}" for scope in scopes if scope != "person:7")
        by_words, near = both_retrievers(store, seen_by(*scopes))
        assert sorted(by_words) == sorted(near) == expected
    assert [len(found) for found in both_retrievers(store, EVERYWHERE)] == [4, 4]


def test_a_filter_looks_at_the_source_and_at_the_scope(store):
    put(store, "a.md", "studio a", source="memory", scope=GROUP)
    put(store, "s.jsonl", "studio s", source="sessions", scope=GROUP)
    put(store, "t.jsonl", "studio t", source="sessions")

    where = SearchFilter(sources=frozenset({"sessions"}), scopes=frozenset({GROUP}))
    assert both_retrievers(store, where) == (["studio s"], ["studio s"])


def test_chunks_of_other_scopes_do_not_take_the_places_of_visible_ones(store):
    put(store, "best.md", *(f"{STUDIO} studio {number}" for number in range(30)))
    put(store, "group.md", *(f"studio and much more of it {number}" for number in range(5)), scope=GROUP)
    put(store, "other.md", *(f"{STUDIO} studio {number}" for number in range(30, 60)), scope=OTHER_GROUP)

    by_words, near = both_retrievers(store, seen_by(GROUP), limit=3)
    assert len(by_words) == len(near) == 3
    assert all("much more" in text for text in by_words + near)


@pytest.mark.parametrize(
    "scope", ["", "*", " ", "group:日本 🦊", "group:a'b\"c", "half a \ud800 pair", "x" * 5_000]
)
def test_any_string_is_a_scope_and_opens_nothing_else(store, scope):
    state = put(store, "own.md", "studio own", scope=scope)
    put(store, "a.md", "studio private")
    put(store, "b.md", "studio group", scope=GROUP)

    both = sorted(found_texts(store, "studio", where=seen_by(scope, GROUP)))
    assert (
        both
        == sorted(near_texts(store, "studio", where=seen_by(scope, GROUP)))
        == ["studio group", "studio own"]
    )
    assert found_texts(store, "studio", where=seen_by(GROUP)) == ["studio group"]
    with store.reading() as reader:
        assert reader.files()["memory", "own.md"] == state
    store.digest()


def test_a_file_that_changes_hands_is_found_by_its_new_readers_only(store):
    put(store, "a.md", STUDIO, scope=GROUP)
    put(store, "a.md", STUDIO, scope=OTHER_GROUP)

    assert both_retrievers(store, seen_by(GROUP)) == ([], [])
    assert both_retrievers(store, seen_by(OTHER_GROUP)) == ([STUDIO], [STUDIO])
    put(store, "a.md", STUDIO)
    assert both_retrievers(store, seen_by(GROUP, OTHER_GROUP)) == ([], [])
    assert both_retrievers(store, seen_by(PRIVATE)) == ([STUDIO], [STUDIO])


def test_touching_a_file_does_not_show_it_to_others(store):
    state = put(store, "a.md", STUDIO)
    store.touch_file(replace(state, mtime_ns=99, scope=SHARED))

    with store.reading() as reader:
        assert reader.files() == {("memory", "a.md"): state}
    assert both_retrievers(store, seen_by(SHARED)) == ([], [])


def test_a_rebuild_keeps_scopes_apart(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for number in range(6):
            put(fresh, f"{number}.md", f"studio {number}", scope=GROUP if number % 2 else PRIVATE)
        put(fresh, "0.md", "studio handed over", scope=GROUP)

    expected = ["studio 1", "studio 3", "studio 5", "studio handed over"]
    assert [sorted(found) for found in both_retrievers(store, seen_by(GROUP))] == [expected, expected]


def test_words_are_weighed_by_what_may_be_seen(store):
    put(store, "a.md", "mac studio")
    put(store, "b.md", "mac", scope=GROUP)
    put(store, "wordless.md", "", scope=GROUP)

    with store.reading() as reader:
        assert reader.counts().files == reader.counts().chunks == {"memory": 3}
        everything = reader.term_statistics(["mac", "studio"], where=EVERYWHERE)
        seen = reader.term_statistics(["mac", "studio"], where=seen_by(GROUP, SHARED))
        nothing = reader.term_statistics(["mac"], where=seen_by(SHARED))
    assert (everything.chunk_count, everything.chunks_with) == (3, {"mac": 2, "studio": 1})
    assert (seen.chunk_count, seen.chunks_with) == (1, {"mac": 1, "studio": 0})
    assert (nothing.chunk_count, nothing.chunks_with) == (0, {"mac": 0})


def test_a_score_does_not_tell_whether_others_have_written_a_word(store):
    def scores(where):
        with store.reading() as reader:
            found = keyword_candidates(reader, ["mac", "studio"], where=where, limit=9)
            again = reader.keyword_scores(["mac", "studio"], [each.id for each in found], where=where)
            return {each.chunk.text: each.score for each in found}, again

    put(store, "a.md", "mac", "studio and more", scope=GROUP)
    before, everything = scores(seen_by(GROUP)), scores(EVERYWHERE)
    put(store, "b.md", *(f"studio {number}" for number in range(9)))
    put(store, "c.md", "mac and a long story of many more words than all others", scope=OTHER_GROUP)

    assert scores(seen_by(GROUP)) == before
    assert scores(EVERYWHERE)[0]["mac"] != everything[0]["mac"]


SCOPES = st.sampled_from([PRIVATE, SHARED, GROUP, OTHER_GROUP])


@given(
    files=st.lists(st.tuples(SCOPES, st.lists(st.sampled_from("abc"), max_size=4)), max_size=12),
    scopes=st.frozensets(SCOPES),
    limit=st.integers(1, 6),
)
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_what_is_found_is_what_would_be_without_the_rest(store, files, scopes, limit):
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    without_the_rest = MemoryStore(fingerprint())
    for number, (scope, words) in enumerate(files):
        for each in (store, without_the_rest) if scope in scopes else (store,):
            put(each, f"{number}.md", *(f"{word} {number}" for word in words), scope=scope)

    def found(one, where, limit):
        with one.reading() as reader:
            by_words = keyword_candidates(reader, ["a", "b"], where=where, limit=limit)
            near = vector_candidates(reader, vector("a"), where=where, limit=limit)
        return [
            [(each.score, each.chunk.path, each.chunk.ordinal) for each in way] for way in (by_words, near)
        ]

    all_there_is = found(without_the_rest, EVERYWHERE, 1_000)
    for seen, own in zip(found(store, seen_by(*scopes), limit), all_there_is, strict=True):
        # Which of equals comes first is up to the store.
        assert [score for score, *_ in seen] == [score for score, *_ in own][:limit]
        assert set(seen) <= set(own)


# --- files that grow -----------------------------------------------------------------------------------------


def ids_by_text(store, *terms):
    with store.reading() as reader:
        found = keyword_candidates(reader, terms, where=EVERYWHERE, limit=100)
    return {each.chunk.text: each.id for each in found}


def test_the_first_chunks_of_a_file_stay_and_the_rest_is_replaced(store):
    put(store, "a.md", "note one", "note two", "note three")
    before = ids_by_text(store, "note")
    state = put(store, "a.md", "note one", "note two", "note drei", "note four", keeping=2)
    after = ids_by_text(store, "note")

    assert list(after) == ["note one", "note two", "note drei", "note four"]
    assert [after[text] for text in ("note one", "note two")] == [
        before[text] for text in ("note one", "note two")
    ]
    assert sorted(near_texts(store, "note three")) == sorted(after)
    assert found_texts(store, "three") == []
    with store.reading() as reader:
        assert reader.files() == {("memory", "a.md"): state}
        assert reader.counts().chunks == {"memory": 4}
        assert [each.text for each in reader.chunks_between("memory", "a.md", 4, 9)] == [
            "note two",
            "note drei",
        ]
        assert reader.term_statistics(["note", "three"], where=EVERYWHERE).chunks_with == {
            "note": 4,
            "three": 0,
        }


def test_all_chunks_may_stay_and_none_may_follow(store):
    put(store, "a.md", "one", "two", "three")
    digest = store.digest()
    put(store, "a.md", "one", "two", "three", keeping=3)
    assert store.digest() == digest

    put(store, "a.md", "one", keeping=1)
    assert found_texts(store, "one", "two", "three") == ["one"]
    assert near_texts(store, "two") == ["one"]


def test_nothing_changes_when_there_are_not_so_many_chunks_to_keep(store):
    put(store, "a.md", "one", "two")
    digest = store.digest()
    longer = embedded("a.md", "one", "two", "three", "four")

    assert not store.replace_file(file_state("a.md", "longer"), longer[3:], keeping=3)
    assert not store.replace_file(file_state("never.md"), embedded("never.md", "one", "two")[1:], keeping=1)
    assert store.digest() == digest


def test_chunks_follow_only_on_those_of_the_text_they_were_made_for(store):
    first = put(store, "a.md", "one", "two")
    other = put(store, "a.md", "eins", "zwei")
    digest = store.digest()
    grown, chunks = file_state("a.md", "grown"), embedded("a.md", "one", "two", "three")[2:]

    assert not store.replace_file(grown, chunks, replacing=first.hash, keeping=2)
    assert not store.replace_file(grown, chunks, replacing=None, keeping=2)
    assert store.digest() == digest
    assert store.replace_file(grown, chunks, replacing=other.hash, keeping=2)


def test_no_chunk_is_kept_for_other_readers_than_before(store):
    put(store, "a.md", "one", "two")
    digest = store.digest()

    with pytest.raises(ValueError, match="scope"):
        put(store, "a.md", "one", "two", "three", keeping=2, scope=SHARED)
    assert store.digest() == digest
    put(store, "a.md", "one", "two", "three", scope=SHARED)
    assert sorted(found_texts(store, "one", "three", where=seen_by(SHARED))) == ["one", "three"]


@pytest.mark.parametrize(("given_from", "keeping"), [(0, 1), (2, 1), (0, -1)], ids=["again", "gap", "less"])
def test_chunks_that_do_not_follow_on_those_that_stay_are_refused(store, given_from, keeping):
    put(store, "a.md", "one", "two", "three")
    digest = store.digest()

    with pytest.raises(ValueError, match="follow"):
        store.replace_file(
            file_state("a.md"), embedded("a.md", "one", "two", "three")[given_from:], keeping=keeping
        )
    assert store.digest() == digest


def test_a_tall_chunk_that_stays_is_still_found_by_each_of_its_lines(store):
    tall, after = embedded("a.md", "tall", "after")
    tall = replace(tall, chunk=replace(tall.chunk, end_line=400))
    after = replace(after, chunk=replace(after.chunk, start_line=401, end_line=401))
    store.replace_file(file_state("a.md"), [tall])
    store.replace_file(file_state("a.md", "grown"), [after], keeping=1)

    with store.reading() as reader:
        assert [each.text for each in reader.chunks_between("memory", "a.md", 399, 401)] == ["tall", "after"]


def test_chunks_that_share_a_line_or_come_in_no_order_of_lines_are_told_apart(store):
    chunks = embedded("a.md", "one", "two", "three", "four")
    lines = [(1, 1), (7, 7), (1, 1), (1, 1)]
    chunks = [
        replace(each, chunk=replace(each.chunk, start_line=first, end_line=last))
        for each, (first, last) in zip(chunks, lines, strict=True)
    ]
    store.replace_file(file_state("a.md"), chunks)
    store.replace_file(file_state("a.md", "less"), [], keeping=2)

    assert sorted(found_texts(store, "one", "two", "three", "four")) == ["one", "two"]
    store.digest()


def test_a_bad_chunk_leaves_a_growing_file_as_it_was(store):
    put(store, "a.md", "one", "two")
    digest = store.digest()

    with pytest.raises(BadVector):
        put(store, "a.md", "one", "zwei", "drei", keeping=1, dims=3)
    assert store.digest() == digest


WRITTEN = st.tuples(
    st.sampled_from(["a.md", "b.md"]),
    st.integers(0, 8),
    st.lists(st.sampled_from("abcde"), max_size=6),
    SCOPES,
)


@given(steps=st.lists(WRITTEN, max_size=10), building=st.booleans())
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_however_files_have_grown_the_index_is_that_of_a_rebuild(store, steps, building):
    contents: dict[str, tuple[str, list[str]]] = {}

    def live_through(target):
        for path, keeping, words, scope in steps:
            known_scope, known = contents.get(path, (scope, []))
            if keeping > len(known):
                chunks = embedded(path, *known, *("-" * (keeping - len(known))), *words)[keeping:]
                assert not target.replace_file(file_state(path), chunks, keeping=keeping)
                continue
            contents[path] = (known_scope if keeping else scope, known[:keeping] + words)
            put(target, path, *contents[path][1], scope=contents[path][0], keeping=keeping)

    with store.rebuild(fingerprint(), reason="a test") as fresh:
        if building:
            live_through(fresh)
    if not building:
        live_through(store)
    lived = store.digest()
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for path, (scope, texts) in contents.items():
            put(fresh, path, *texts, scope=scope)

    assert store.digest() == lived


# --- rebuilding ----------------------------------------------------------------------------------------------


def test_a_rebuild_is_invisible_until_it_is_complete(store):
    put(store, "a.md", STUDIO)

    with store.rebuild(fingerprint(model="other"), reason="a test") as fresh:
        put(fresh, "b.md", HETZNER)
        assert found_texts(fresh, "gateway") == [HETZNER]
        assert found_texts(store, "gateway") == [STUDIO]
        put(store, "c.md", "written to the old index meanwhile")
    assert found_texts(store, "gateway") == [HETZNER]
    with store.reading() as reader:
        assert reader.fingerprint() == fingerprint(model="other")
        assert list(reader.files()) == [("memory", "b.md")]


def test_changes_that_are_joined_are_all_made(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "first")
        with fresh.joined():
            put(fresh, "a.md", STUDIO)
            put(fresh, "b.md", HETZNER)
            with fresh.joined():
                put(fresh, "b.md", HETZNER, "and more")
            put(fresh, "c.md", "gone")
            fresh.remove_file("memory", "c.md")
        assert found_texts(fresh, "more") == ["and more"]
    with store.joined():
        put(store, "d.md", "of a living index")

    found = found_texts(store, "first", "gone", "studio", "more", "living")
    assert sorted(found) == ["and more", "of a living index", STUDIO]
    store.digest()


def test_an_error_discards_a_rebuild(store):
    put(store, "a.md", STUDIO)
    digest = store.digest()

    with pytest.raises(BadVector), store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "b.md", HETZNER, dims=3)
    assert store.digest() == digest


def test_a_view_does_not_change_while_others_write_and_rebuild(store):
    put(store, "a.md", STUDIO)

    with store.reading() as reader:
        put(store, "a.md", HETZNER)
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "b.md", "something else")
        found = keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=5)
        assert [each.chunk.text for each in found] == [STUDIO]
        assert list(reader.files()) == [("memory", "a.md")]
    assert found_texts(store, "else") == ["something else"]


def test_chunks_made_for_another_index_are_refused(store):
    with store.rebuild(fingerprint(model="new"), reason="a test"):
        pass

    with pytest.raises(ConflictError, match="words"):
        store.replace_file(file_state("a.md"), embedded("a.md", STUDIO), expecting=fingerprint())
    store.replace_file(file_state("a.md"), embedded("a.md", STUDIO), expecting=fingerprint(model="new"))
    assert found_texts(store, "studio") == [STUDIO]


def test_other_dimensions_take_a_rebuild(store):
    put(store, "a.md", STUDIO)
    with store.rebuild(fingerprint(dims=8), reason="dimensions") as fresh:
        put(fresh, "a.md", STUDIO, dims=8)

    with store.reading() as reader:
        (found,) = vector_candidates(reader, vector(STUDIO, 8), where=EVERYWHERE, limit=5)
        assert found.score == pytest.approx(1, abs=2e-3)


def test_an_index_without_vectors_answers_by_words(store):
    with store.rebuild(fingerprint(dims=0), reason="no embedder") as fresh:
        put(fresh, "a.md", STUDIO, without_vector=True)

    assert found_texts(store, "studio") == [STUDIO]


# --- digests -------------------------------------------------------------------------------------------------


def test_the_digest_is_that_of_a_rebuild_whatever_happened_before(store):
    for turn in range(3):
        for number in range(8):
            put(store, f"{number}.md", f"turn {turn} of {number}", STUDIO, HETZNER)
    store.remove_file("memory", "3.md")
    store.erase("memory", "4.md")
    lived = store.digest()

    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for number in reversed([0, 1, 2, 5, 6, 7]):
            put(fresh, f"{number}.md", f"turn 2 of {number}", STUDIO, HETZNER)
    assert store.digest() == lived


def test_the_digest_tells_apart_what_answers_differently(store):
    seen = set()
    chunks = embedded("a.md", STUDIO)
    for change in (
        {},
        {"vector": vector("else")},
        {"vector": None},
        {"terms": ("studio",)},
        {"chunk": replace(chunks[0].chunk, text="other")},
        {"chunk": replace(chunks[0].chunk, end_line=99)},
        {"chunk": replace(chunks[0].chunk, day="2026-01-01")},
    ):
        store.replace_file(file_state("a.md"), [replace(chunks[0], **change)])
        seen.add(store.digest())
    store.replace_file(file_state("a.md", "other bytes"), chunks)
    seen.add(store.digest())
    store.replace_file(file_state("a.md", scope=SHARED), chunks)
    seen.add(store.digest())
    assert len(seen) == 9


def test_the_same_notes_have_the_same_digest_wherever_they_are_kept(unbuilt, tmp_path):
    digests = []
    for name, each in (("here", unbuilt), ("plain", PlainStore())):
        report = make_desk(tmp_path / name, EXAMPLES, store=each, embedder=BuiltinEmbedder()).indexer.sync()
        assert len(report.indexed) == len(list(EXAMPLES.rglob("*.md")))
        digests.append(each.digest())

    assert digests[0] == digests[1]


# --- life ----------------------------------------------------------------------------------------------------


def test_erased_files_are_gone(store):
    put(store, "a.md", STUDIO)
    put(store, "b.md", HETZNER)
    store.erase("memory", "a.md")

    assert found_texts(store, "gateway") == [HETZNER]
    with store.reading() as reader:
        assert list(reader.files()) == [("memory", "b.md")]


def test_many_files_can_be_erased_at_once(store):
    for number in range(4):
        put(store, f"{number}.md", f"gateway {number}")
    store.erase("memory", "0.md", "1.md", "never.md")

    assert sorted(found_texts(store, "gateway")) == ["gateway 2", "gateway 3"]


def test_sizes_say_what_takes_the_room(store):
    put(store, "a.md", "gateway " * 50, HETZNER)
    sizes = store.sizes()

    assert sizes["chunks"] == 2
    assert sizes["texts"] > 0
    assert 2 * DIMS <= sizes["vectors"] <= 2 * 2 * DIMS


def test_a_store_describes_itself_without_the_text_of_notes(store):
    put(store, "a.md", "zanzibar")
    facts = store.describe()

    assert facts["driver"] in DRIVERS
    assert "zanzibar" not in repr(facts)


def test_closing_twice_is_fine(store):
    put(store, "a.md", STUDIO)
    store.close()
    store.close()


@pytest.mark.slow
def test_threads_share_a_store(store):
    errors: list[BaseException] = []
    done = threading.Event()

    def guarded(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (told to the test below)
            errors.append(error)

    def write(name):
        for turn in range(15):
            put(store, f"{name}.md", *(f"{name} turn{turn} part{part}" for part in range(4)))

    def read():
        while not done.is_set():
            with store.reading() as reader:
                found = keyword_candidates(reader, ["part0", "part1"], where=EVERYWHERE, limit=50)
                turns = Counter((each.chunk.path, each.chunk.text.split()[1]) for each in found)
                assert all(count == 2 for count in turns.values()), turns
                near = vector_candidates(reader, vector("x"), where=EVERYWHERE, limit=50)
                assert len(near) == sum(reader.counts().chunks.values())

    writers = [threading.Thread(target=guarded, args=(lambda n=n: write(n),)) for n in ("a", "b")]
    readers = [threading.Thread(target=guarded, args=(read,)) for _ in range(3)]
    for thread in writers + readers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert errors == []
    with store.reading() as reader:
        assert reader.counts().chunks == {"memory": 8}


def test_an_older_text_never_replaces_a_newer_one(store):
    first, second = file_state("MEMORY.md", STUDIO), file_state("MEMORY.md", HETZNER)
    assert store.replace_file(first, embedded("MEMORY.md", STUDIO), replacing=None)
    assert store.replace_file(second, embedded("MEMORY.md", HETZNER), replacing=first.hash)

    assert not store.replace_file(first, embedded("MEMORY.md", STUDIO), replacing=None)
    assert not store.replace_file(first, embedded("MEMORY.md", STUDIO), replacing=first.hash)
    assert found_texts(store, "gateway") == [HETZNER]


def test_what_others_wrote_during_a_rebuild_can_be_caught_up_on_before_it_is_published(store):
    def bring_over(fresh):
        put(fresh, "memory/late.md", "written while the new index was made")

    with store.rebuild(fingerprint(), reason="asked for", catch_up=bring_over) as fresh:
        put(fresh, "MEMORY.md", STUDIO)
        put(store, "memory/late.md", "written while the new index was made")

    with store.reading() as reader:
        assert {path for _, path in reader.files()} == {"MEMORY.md", "memory/late.md"}


def test_a_rebuild_that_cannot_catch_up_is_discarded(store):
    put(store, "MEMORY.md", STUDIO)

    def fail(_fresh):
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"), store.rebuild(fingerprint(), reason="x", catch_up=fail):
        pass

    assert found_texts(store, "gateway") == [STUDIO]
