"""What each provider is sent, and how its answers are read."""

from __future__ import annotations

from array import array
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.errors import BadVector
from plainmind.guests.net.failures import AnswerUnreadable
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.embedder import requests_of
from plainmind.guests.remote.gemini import GeminiWire
from plainmind.guests.remote.openai import OpenAIWire
from plainmind.guests.remote.voyage import VoyageWire
from plainmind.guests.remote.wire import in_order, numbers, price_of, tokens_in, wire_for


def test_openai_is_asked_for_base64_only_at_home() -> None:
    home = wire_for("openai", RemoteSettings())
    elsewhere = wire_for("openai", RemoteSettings(base_url="http://localhost:11434/v1"))

    assert home.request("m", ["a"], "document", None).payload == {
        "model": "m", "input": ["a"], "encoding_format": "base64",
    }  # fmt: skip
    assert elsewhere.request("m", ["a"], "query", 8).payload == {
        "model": "m",
        "input": ["a"],
        "dimensions": 8,
    }


def test_voyage_is_told_the_kind_of_text_and_the_size() -> None:
    request = VoyageWire(packed=True).request("voyage-4", ["a"], "query", 256)

    assert request.path == "embeddings"
    assert request.payload == {
        "model": "voyage-4", "input": ["a"], "input_type": "query", "output_dimension": 256,
        "encoding_format": "base64",
    }  # fmt: skip


def test_gemini_is_asked_by_model_with_one_request_a_text() -> None:
    wire = GeminiWire()
    one = wire.request("gemini-embedding-001", ["a"], "query", 768)
    many = wire.request("models/gemini-embedding-001", ["a", "b"], "document", None)

    assert one.path == "models/gemini-embedding-001:embedContent"
    assert one.payload == {
        "model": "models/gemini-embedding-001", "content": {"parts": [{"text": "a"}]},
        "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 768,
    }  # fmt: skip
    assert many.path == "models/gemini-embedding-001:batchEmbedContents"
    assert [request["taskType"] for request in many.payload["requests"]] == ["RETRIEVAL_DOCUMENT"] * 2


def test_gemini_of_the_second_generation_reads_its_task_in_the_text() -> None:
    query = GeminiWire().request("gemini-embedding-2", ["a"], "query", None).payload
    (document,) = GeminiWire().request("gemini-embedding-2", ["a"], "document", None).payload["requests"]

    assert query["content"]["parts"][0]["text"] == "task: search result | query: a"
    assert document["content"]["parts"][0]["text"] == "title: none | text: a"
    assert "taskType" not in query


def test_keys_are_shown_in_headers_and_never_in_a_path() -> None:
    assert OpenAIWire().headers("k") == {"Authorization": "Bearer k"}
    assert VoyageWire().headers("k") == {"Authorization": "Bearer k"}
    assert GeminiWire().headers("k") == {"x-goog-api-key": "k"}


def test_base64_and_numbers_are_the_same_vector() -> None:
    values = [0.5, -0.25, 3.0]
    packed = b64encode(array("f", values).tobytes()).decode()

    assert list(numbers(packed)) == list(numbers(values)) == values


@pytest.mark.parametrize(
    "value", [None, 3, {}, [None], ["1"], [True], [[1.0]], "ÿ", "AAA", "AAAAAAA=", object()]
)
def test_what_is_no_list_of_numbers_is_a_bad_vector(value: object) -> None:
    with pytest.raises(BadVector):
        numbers(value)


@given(st.permutations(range(6)))
def test_rows_stand_where_their_index_says(order: list[int]) -> None:
    rows = [{"index": place, "embedding": [float(place)]} for place in order]

    assert [row["embedding"] for row in in_order(rows, 6)] == [[float(place)] for place in range(6)]


@given(st.lists(st.none() | st.booleans() | st.integers(-1, 4) | st.just("0"), min_size=3, max_size=3))
def test_a_numbering_is_complete_or_absent_or_an_error(places: list[Any]) -> None:
    rows = [{} if place is None else {"index": place} for place in places]
    sound = all(type(place) is int for place in places) and sorted(places) == [0, 1, 2]
    if sound or places == [None] * 3:
        assert len(in_order(rows, 3)) == 3
    else:
        with pytest.raises(BadVector):
            in_order(rows, 3)


@pytest.mark.parametrize("rows", [None, {}, "rows", [{}], [{}] * 3])
def test_another_number_of_rows_is_a_bad_vector(rows: object) -> None:
    with pytest.raises(BadVector, match="2 vectors were expected"):
        in_order(rows, 2)


@pytest.mark.parametrize("wire", [OpenAIWire(), GeminiWire(), VoyageWire()])
@pytest.mark.parametrize("payload", [None, [], {}, "x", 3])
def test_an_answer_of_another_shape_is_unreadable(wire: Any, payload: object) -> None:
    with pytest.raises(AnswerUnreadable, match="has no"):
        wire.answer(payload, 1)


def test_tokens_are_believed_only_as_a_number() -> None:
    assert tokens_in({"total_tokens": 5}, "total_tokens") == 5
    assert tokens_in({"prompt_tokens": 5}, "total_tokens", "prompt_tokens") == 5
    for usage in (None, {}, {"total_tokens": -1}, {"total_tokens": "5"}, {"total_tokens": True},
                  {"total_tokens": 10**12}):  # fmt: skip
        assert tokens_in(usage, "total_tokens") is None


def test_prices_are_known_for_the_default_models() -> None:
    for wire in (OpenAIWire(), GeminiWire(), VoyageWire()):
        assert price_of(wire, wire.default_model, 1_000_000) > 0
        assert wire.known_dims[wire.default_model] > 0
    assert price_of(OpenAIWire(), "nomic-embed-text", 1_000_000) == 0


@given(st.lists(st.text(min_size=1, max_size=40), max_size=60), st.integers(1, 9), st.integers(1, 80))
def test_groups_hold_every_text_once_in_order_and_within_the_limits(
    texts: list[str], max_items: int, max_tokens: int
) -> None:
    groups = requests_of(texts, max_items=max_items, max_tokens=max_tokens)

    assert [text for group in groups for text in group] == texts
    for group in groups:
        assert 1 <= len(group) <= max_items
        assert len(group) == 1 or sum(map(len, group)) <= max_tokens
