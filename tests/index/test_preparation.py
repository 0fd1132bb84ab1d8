import gc
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.model import Document
from plainmind.embed.protocol import NoEmbedder
from plainmind.index import chunks as preparing
from plainmind.index.chunks import ChunksOnDemand, Preparation
from plainmind.index.plan import ChunkingSettings

TEXT = "".join(f"# Part {number}\n\nwords of part {number}, and more of them\n" for number in range(2_000))


class Computed(HashingEmbedder):
    """An embedder that counts as one of this process."""

    identity = NoEmbedder.identity.__class__("builtin", "hashing", dims=64)


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(preparing, "LARGE", 1_000)


def document(text: str, path: str = "a.md") -> Document:
    return Document(path, "memory", text, "2026-02-10")


def test_a_large_document_is_made_ready_while_it_is_gone_through(large):
    embedder = Computed()
    small, big = (
        Preparation(ChunkingSettings(), embedder).prepare([document("few words"), document(TEXT)]).documents
    )

    assert isinstance(big, ChunksOnDemand)
    assert embedder.embedded == ["few words"]
    assert [each.chunk.text for each in small] == ["few words"]
    assert len(big) == 2_000
    assert len(list(big)) == 2_000


def test_a_large_document_is_the_same_as_many_small_ones(monkeypatch, large):
    big = Preparation(ChunkingSettings(), Computed()).prepare([document(TEXT)]).documents[0]
    monkeypatch.setattr(preparing, "LARGE", 10**9)
    whole = Preparation(ChunkingSettings(), Computed()).prepare([document(TEXT)]).documents[0]

    assert list(big) == whole
    assert big[7] == whole[7]
    assert big[-3:] == whole[-3:]


def test_a_large_document_takes_little_more_memory_than_its_text(large):
    big = Preparation(ChunkingSettings(), Computed()).prepare([document(TEXT)]).documents[0]
    assert all(each.terms for each in big)  # what words are made into is kept from now on, and not counted
    gc.collect()
    tracemalloc.start()
    count = sum(len(each.terms) > 0 for each in big)
    _, at_once = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    everything = list(big)
    _, together = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == len(everything)
    assert at_once < together / 2


def test_a_provider_that_may_fail_is_asked_before_anything_is_written(large):
    embedder = HashingEmbedder()
    prepared = Preparation(ChunkingSettings(), embedder).prepare([document(TEXT)])

    assert len(embedder.embedded) == 2_000
    assert not isinstance(prepared.documents[0], ChunksOnDemand)


@given(st.lists(st.text(max_size=30), max_size=6), st.integers(0, 5))
def test_remembering_changes_nothing(texts, again):
    remembering = Preparation(ChunkingSettings(tokens=8), HashingEmbedder())
    documents = [document(text, f"{number}.md") for number, text in enumerate(texts)]
    first = remembering.prepare(documents)

    assert remembering.prepare(documents) == first
    fresh = Preparation(ChunkingSettings(tokens=8), HashingEmbedder()).prepare(documents[again:])
    assert list(fresh.documents) == list(remembering.prepare(documents[again:]).documents)


def test_what_is_remembered_is_bounded():
    preparation = Preparation(ChunkingSettings(), HashingEmbedder())
    for number in range(3_000):
        preparation.prepare([document(f"note {number}")])

    assert len(preparation._remembered) == preparing._MOST_REMEMBERED


def test_the_same_words_on_another_day_are_filed_under_that_day():
    preparation = Preparation(ChunkingSettings(), HashingEmbedder())
    one = preparation.prepare([Document("a.md", "memory", "words", "2026-02-10")]).documents[0][0]
    other = preparation.prepare([Document("a.md", "memory", "words", "2026-02-11")]).documents[0][0]

    assert one.terms != other.terms
    assert one.vector == other.vector
