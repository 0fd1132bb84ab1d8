"""The promises of every embedder, kept over each of the three wires."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contracts.test_embedder import (  # noqa: F401 - collected here with the fixture below
    TEXTS,
    test_a_blank_question_is_an_error_and_not_a_vector_of_zeros,
    test_a_blank_text_has_no_vector_and_spoils_no_other,
    test_a_question_is_nearest_to_the_text_that_answers_it,
    test_a_text_has_the_same_vector_alone_and_in_company,
    test_closing_twice_does_no_harm,
    test_each_vector_stands_where_its_text_stands,
    test_hostile_text_is_embedded_like_any_other,
    test_it_can_be_shared_between_threads,
    test_no_texts_give_no_vectors,
    test_vectors_are_unit_length_float32_of_the_promised_size,
)
from tests.support.providers.clients import embedder_of
from tests.support.providers.server import DIALECTS, Provider, cosine, serving

from plainmind.guests.remote.embedder import RemoteEmbedder


@pytest.fixture(params=DIALECTS)
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteEmbedder]:
    with serving(Provider(request.param)) as provider, embedder_of(provider, tmp_path) as made:
        yield made


def test_it_says_who_it_is_and_which_host_sees_the_text(embedder: RemoteEmbedder) -> None:
    assert embedder.identity == embedder.identity
    assert embedder.identity.provider in DIALECTS
    assert embedder.identity.model
    assert len(embedder.identity.endpoint) == 64
    assert embedder.sends_text_to == "127.0.0.1"


def test_texts_of_one_meaning_are_nearer_than_texts_of_another(embedder: RemoteEmbedder) -> None:
    gateway, moved, bread = embedder.embed_documents(
        ["the gateway runs in Berlin", "in Berlin the gateway runs", "sourdough needs a night of rest"]
    )

    assert gateway is not None
    assert moved is not None
    assert bread is not None
    assert cosine(gateway, moved) > 0.9 > cosine(gateway, bread)
