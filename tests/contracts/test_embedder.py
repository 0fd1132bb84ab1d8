"""What every embedder promises, run on each of them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.errors import EmbeddingError
from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.embed.cache import CachedEmbedder, SqliteEmbeddingCache
from plainmind.embed.protocol import Embedder

TEXTS = [
    "The gateway runs on a Mac Studio in the cellar.",
    "We bake sourdough bread every Sunday morning.",
    "昨天我们决定把备份移到柏林。",
    "Backups of the gateway run at 03:00 and go to Hetzner.",
]


@pytest.fixture(params=["builtin", "cached builtin", "hashing"])
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Embedder]:
    made: dict[str, Embedder] = {
        "builtin": BuiltinEmbedder(),
        "cached builtin": CachedEmbedder(
            BuiltinEmbedder(), SqliteEmbeddingCache(str(tmp_path / "cache.sqlite"))
        ),
        "hashing": HashingEmbedder(),
    }
    yield made[request.param]
    for each in made.values():
        each.close()


def test_vectors_are_unit_length_float32_of_the_promised_size(embedder: Embedder) -> None:
    vectors = [*embedder.embed_documents(TEXTS), embedder.embed_query(TEXTS[0])]

    for vector in vectors:
        assert isinstance(vector, array)
        assert vector.typecode == "f"
        assert len(vector) == embedder.identity.dims > 0
        assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)


def test_each_vector_stands_where_its_text_stands(embedder: Embedder) -> None:
    forwards = embedder.embed_documents(TEXTS)
    backwards = embedder.embed_documents(TEXTS[::-1])

    assert forwards == backwards[::-1]
    assert len({vector.tobytes() for vector in forwards if vector is not None}) == len(TEXTS)


def test_a_text_has_the_same_vector_alone_and_in_company(embedder: Embedder) -> None:
    together = embedder.embed_documents(TEXTS * 40)

    for text, vector in zip(TEXTS, together, strict=False):
        assert embedder.embed_documents([text]) == [vector]


def test_a_question_is_nearest_to_the_text_that_answers_it(embedder: Embedder) -> None:
    question = embedder.embed_query("where does the gateway run?")

    scores = [
        sum(a * b for a, b in zip(question, vector, strict=True))
        for vector in embedder.embed_documents(TEXTS)
        if vector is not None
    ]

    assert scores.index(max(scores)) in (0, 3)
    assert scores.index(min(scores)) in (1, 2)


@pytest.mark.parametrize("blank", ["", " ", "\n\n\t", "\u3000\u2003"])
def test_a_blank_text_has_no_vector_and_spoils_no_other(embedder: Embedder, blank: str) -> None:
    first, middle, last = embedder.embed_documents([TEXTS[0], blank, TEXTS[1]])

    assert middle is None
    assert [first, last] == embedder.embed_documents(TEXTS[:2])


def test_a_blank_question_is_an_error_and_not_a_vector_of_zeros(embedder: Embedder) -> None:
    with pytest.raises(EmbeddingError, match="nothing to embed"):
        embedder.embed_query(" \n")


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed_documents([]) == []


@pytest.mark.parametrize(
    "hostile",
    ["nul \x00 inside", "lone \ud800 surrogate", "a" * 20_000, "👩‍👩‍👧 family " * 300, "<s></s><unk> words"],
)
def test_hostile_text_is_embedded_like_any_other(embedder: Embedder, hostile: str) -> None:
    (vector,) = embedder.embed_documents([hostile])

    assert vector is not None
    assert all(math.isfinite(value) for value in vector)


def test_it_can_be_shared_between_threads(embedder: Embedder) -> None:
    expected = embedder.embed_documents(TEXTS)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(embedder.embed_documents, [TEXTS] * 24))
        questions = list(pool.map(embedder.embed_query, TEXTS * 6))

    assert all(answer == expected for answer in answers)
    assert questions[:4] == questions[-4:]


def test_it_says_who_it_is_and_where_text_goes(embedder: Embedder) -> None:
    assert embedder.identity == embedder.identity
    assert embedder.identity.provider
    assert embedder.identity.model
    assert embedder.sends_text_to is None


def test_closing_twice_does_no_harm(embedder: Embedder) -> None:
    embedder.embed_documents(TEXTS)
    embedder.close()
    embedder.close()
