from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.errors import TransientEmbeddingError
from plainmind.base.model import Vector, sha256_text
from plainmind.embed.cache import CachedEmbedder, SqliteEmbeddingCache


@pytest.fixture
def cache_path(tmp_path: Path) -> str:
    return str(tmp_path / "cache.sqlite")


def test_a_text_is_embedded_once_for_all_processes_to_come(cache_path: str) -> None:
    first, second = HashingEmbedder(), HashingEmbedder()
    one, other = (CachedEmbedder(embedder, SqliteEmbeddingCache(cache_path)) for embedder in (first, second))

    made = one.embed_documents(["alpha", "beta"])
    found = other.embed_documents(["beta", "gamma", "alpha"])

    assert found[0] == made[1]
    assert found[2] == made[0]
    assert second.embedded == ["gamma"]
    one.close()
    other.close()


def test_repeated_texts_in_one_call_are_embedded_once_and_answered_in_order(cache_path: str) -> None:
    inner = HashingEmbedder()
    embedder = CachedEmbedder(inner, SqliteEmbeddingCache(cache_path))

    answers = embedder.embed_documents(["b", "a", "b", "", "a", ""])

    assert inner.embedded == ["b", "a", ""]
    assert answers == HashingEmbedder().embed_documents(["b", "a", "b", "", "a", ""])
    embedder.close()


def test_questions_are_not_answered_with_the_vectors_of_documents(cache_path: str) -> None:
    class Asymmetric(HashingEmbedder):
        def embed_query(self, text: str) -> Vector:
            return super().embed_query("question " + text)

    embedder = CachedEmbedder(Asymmetric(), SqliteEmbeddingCache(cache_path))
    (document,) = embedder.embed_documents(["alpha"])

    assert embedder.embed_query("alpha") != document
    embedder.close()


def test_a_failing_provider_leaves_nothing_behind(cache_path: str) -> None:
    class Failing(HashingEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
            raise TransientEmbeddingError(f"the provider is busy with {len(texts)} texts")

    cache = SqliteEmbeddingCache(cache_path)
    embedder = CachedEmbedder(Failing(), cache)

    with pytest.raises(TransientEmbeddingError):
        embedder.embed_documents(["alpha"])

    assert cache.describe()["entries"] == 0
    embedder.close()


def test_without_its_cache_it_still_embeds_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("not a folder")
    embedder = CachedEmbedder(
        HashingEmbedder(), SqliteEmbeddingCache(str(tmp_path / "a file" / "cache.sqlite"))
    )

    assert embedder.embed_documents(["alpha"]) == HashingEmbedder().embed_documents(["alpha"])
    assert embedder.trouble is not None
    assert "cannot be used" in embedder.trouble
    embedder.close()


def test_texts_are_kept_under_the_hash_that_chunks_are_named_by(cache_path: str) -> None:
    cache = SqliteEmbeddingCache(cache_path)
    embedder = CachedEmbedder(HashingEmbedder(), cache)
    embedder.embed_documents(["alpha"])

    assert list(cache.lookup(embedder.identity, [sha256_text("alpha")])) == [sha256_text("alpha")]
    embedder.close()


class Eager(HashingEmbedder):
    """Hands over vectors a few at a time, as a provider does with each request; may fail at last."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__()
        self.failure = failure

    def embed_keeping(self, texts: Sequence[str], keep: Callable[..., None]) -> list[Vector | None]:
        made = self.embed_documents(texts)
        for start in range(0, len(texts), 3):
            some = dict(zip(texts[start : start + 3], made[start : start + 3], strict=True))
            keep({text: vector for text, vector in some.items() if vector is not None})
        if self.failure is not None:
            raise self.failure
        return made


def test_what_one_request_has_brought_is_kept_when_another_one_fails(cache_path: str) -> None:
    cache = SqliteEmbeddingCache(cache_path)
    failing = CachedEmbedder(Eager(TransientEmbeddingError("later")), cache)
    texts = [f"text {number}" for number in range(700)]
    with pytest.raises(TransientEmbeddingError):
        failing.embed_documents(texts)

    inner = HashingEmbedder()
    assert CachedEmbedder(inner, cache).embed_documents(texts) == HashingEmbedder().embed_documents(texts)
    assert inner.embedded == []
    cache.close()


def test_an_eager_embedder_answers_in_order_too(cache_path: str) -> None:
    embedder = CachedEmbedder(Eager(), SqliteEmbeddingCache(cache_path))
    texts = ["b", "a", "", "b", "c"]

    assert embedder.embed_documents(texts) == HashingEmbedder().embed_documents(texts)
    embedder.close()
