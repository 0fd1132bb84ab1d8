"""What a search asks before it reads any text: ids, and how often words stand in their chunks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.index_contents import EVERYWHERE, embedded, file_state, fingerprint, put, vector

from plainmind.base.value import replace
from plainmind.index import bm25
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.drivers.sqlite import SqliteStore
from plainmind.index.protocol import keyword_candidates, vector_candidates

WORDS = ["gateway", "printer", "lantern", "harbour", "東京"]


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    opened = MemoryStore() if request.param == "memory" else SqliteStore(str(tmp_path / "index"))
    with opened.rebuild(fingerprint(), reason="a test"):
        pass
    yield opened
    opened.close()


def test_proposals_are_the_ids_and_the_chunks_of_the_candidates(store):
    put(store, "memory/a.md", "the gateway", "a printer", "gateway and printer")
    put(store, "memory/b.md", "the harbour", "a gateway gateway")
    with store.reading() as reader:
        by_words = keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=2)
        by_vector = vector_candidates(reader, vector("the harbour"), where=EVERYWHERE, limit=2)
        words = reader.by_words(["gateway"], where=EVERYWHERE, limit=2)
        near = reader.by_vector(vector("the harbour"), where=EVERYWHERE, limit=2)

        assert words == [each.id for each in by_words]
        assert near == [each.id for each in by_vector]
        assert reader.chunks(near + words) == [each.chunk for each in by_vector + by_words]


def test_a_store_knows_how_often_words_stand_in_a_chunk(store):
    put(store, "memory/a.md", "gateway gateway", "a printer and a gateway")
    with store.reading() as reader:
        ids = [each.id for each in keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=5)]
        terms = ["printer", "Gateway", "nothing"]

        assert sorted(reader.term_counts(terms, ids)) == [b"\0\2\0", b"\1\1\0"]
        assert reader.term_counts([], ids) == [b"", b""]
        assert reader.term_counts(terms, []) == []


def test_a_term_that_stands_countless_times_is_counted_as_far_as_it_goes(store):
    put(store, "memory/a.md", "gateway " * 400)
    with store.reading() as reader:
        (found,) = keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=5)
        assert reader.term_counts(["gateway"], [found.id]) == [b"\xff"]


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), min_size=1, max_size=30), st.data())
@settings(max_examples=20, deadline=None)
def test_counts_are_those_of_the_terms_that_a_chunk_was_filed_under(tmp_path_factory, texts, data):
    opened = SqliteStore(str(tmp_path_factory.mktemp("index")))
    with opened.rebuild(fingerprint(), reason="a test") as building:
        for number in range(2):
            chunks = embedded(f"memory/{number}.md", *map(" ".join, texts))
            filed = [replace(each, terms=terms) for each, terms in zip(chunks, texts, strict=True)]
            building.replace_file(file_state(f"memory/{number}.md"), filed)
    gone = data.draw(st.booleans())
    if gone:
        opened.remove_file("memory", "memory/0.md")
    with opened.reading() as reader:
        candidates = keyword_candidates(reader, WORDS, where=EVERYWHERE, limit=100)
        asked = data.draw(st.permutations(candidates))
        counts = reader.term_counts(WORDS, [each.id for each in asked])
        for each, counted in zip(asked, counts, strict=True):
            own = bm25.occurrences(texts[each.chunk.ordinal])
            assert list(counted) == [own.get(word, 0) for word in WORDS]
    opened.close()


def test_frequent_words_are_no_reason_to_load_numpy(store, monkeypatch):
    put(store, "memory/a.md", "printer gateway", "a printer", "printer and lantern")
    asked = []

    def note(postings):
        asked.append(postings)
        return bm25

    monkeypatch.setattr("plainmind.index.reader.word_arithmetic", note)

    with store.reading() as reader:
        reader.by_words(["printer", "gateway"], where=EVERYWHERE, limit=1)

    assert asked == [1]  # the one posting of the rarer word
