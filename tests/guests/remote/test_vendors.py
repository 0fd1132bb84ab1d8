"""What each vendor is sent, one request at a time and in batch jobs, and how its answers are read."""

from __future__ import annotations

import json
import time
from array import array
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.providers.batch_clients import settings_for
from tests.support.providers.batches import BatchRoutes, serving
from tests.support.providers.server import DIALECTS, KEY

from plainmind.base.errors import BadVector, ConfigError
from plainmind.guests.net.failures import AnswerUnreadable, KeyRefused, NetFailure
from plainmind.guests.net.transport import Transport
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.embedder import requests_of
from plainmind.guests.remote.vendors import (
    BatchEndpoint,
    BatchesUnavailable,
    GeminiBatches,
    GeminiWire,
    OpenAIWire,
    Unlisted,
    VoyageWire,
    endpoint_for,
    jsonl,
)
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


NAMES = [f"{number:064x}" for number in range(3)]


@pytest.fixture(params=DIALECTS)
def routes(request: pytest.FixtureRequest) -> BatchRoutes:
    return BatchRoutes(request.param)


@pytest.fixture
def endpoint(routes: BatchRoutes) -> Iterator[BatchEndpoint]:
    with serving(routes) as base_url:
        settings = settings_for(base_url)
        wire = wire_for(routes.dialect, settings)
        transport = Transport(
            base_url, settings="remote", headers=wire.headers(KEY), secrets=[KEY], allow_private=True
        )
        yield endpoint_for(wire, transport, settings)
        transport.close()


def soon() -> float:
    return time.monotonic() + 60


def uploaded(endpoint: BatchEndpoint, tag: str) -> str:
    lines = [endpoint.line(name, f"text {name[-1]} ü") for name in NAMES]
    return endpoint.upload(tag, lines, deadline=soon())


def test_a_job_goes_through_its_states_and_ends_with_an_output(
    routes: BatchRoutes, endpoint: BatchEndpoint
) -> None:
    created = endpoint.create("tag", uploaded(endpoint, "tag"), deadline=soon())
    first = endpoint.look(created.job_id, deadline=soon())
    second = endpoint.look(created.job_id, deadline=soon())

    assert (created.ended, first.ended, second.ended, second.complete) == (False, False, True, True)
    (output,) = second.outputs
    lines = [json.loads(line) for line in routes.files[output][1].splitlines()]
    assert {endpoint.read(line).hash for line in lines} == set(NAMES)
    assert set(second.files) == set(routes.files)


def test_non_ascii_text_arrives_as_it_is(routes: BatchRoutes, endpoint: BatchEndpoint) -> None:
    endpoint.create("tag", uploaded(endpoint, "tag"), deadline=soon())

    assert routes.texts_submitted == [f"text {number} ü" for number in range(3)]


def test_jobs_and_files_are_found_by_their_tag_on_any_page(
    routes: BatchRoutes, endpoint: BatchEndpoint
) -> None:
    made = {
        tag: endpoint.create(tag, uploaded(endpoint, tag), deadline=soon()).job_id
        for tag in ("a", "b", "c", "d")
    }

    for tag, job_id in made.items():
        seen = endpoint.find(tag, "unknown", deadline=soon())
        assert seen is not None
        assert seen.job_id == job_id
        assert endpoint.files_of(tag, deadline=soon()) == [routes.batches[job_id].input_file]
    by_file = endpoint.find("lost", routes.batches[made["b"]].input_file, deadline=soon())
    assert by_file is not None
    assert by_file.job_id == made["b"]
    assert endpoint.find("e", "unknown", deadline=soon()) is None
    assert endpoint.files_of("e", deadline=soon()) == []


def test_an_account_without_any_job_or_file_has_none_to_find(endpoint: BatchEndpoint) -> None:
    assert endpoint.find("a", "f", deadline=soon()) is None
    assert endpoint.files_of("a", deadline=soon()) == []


def test_a_provider_that_does_not_list_says_so(routes: BatchRoutes, endpoint: BatchEndpoint) -> None:
    routes.faults = {"no-list"}

    with pytest.raises(Unlisted):
        endpoint.find("a", "f", deadline=soon())
    with pytest.raises(Unlisted):
        endpoint.files_of("a", deadline=soon())


def test_deleting_a_file_that_is_gone_is_no_error(routes: BatchRoutes, endpoint: BatchEndpoint) -> None:
    file_id = uploaded(endpoint, "tag")
    endpoint.delete(file_id, deadline=soon())
    endpoint.delete(file_id, deadline=soon())

    assert routes.files == {}


def test_a_cancelled_job_ends(routes: BatchRoutes, endpoint: BatchEndpoint) -> None:
    created = endpoint.create("tag", uploaded(endpoint, "tag"), deadline=soon())
    endpoint.cancel(created.job_id, deadline=soon())
    seen = endpoint.look(created.job_id, deadline=soon())

    assert seen.ended
    assert not seen.complete


@pytest.mark.parametrize(
    ("state", "ended"), [("unheard-of", False), ("failed", True), ("expired", True), ("cancelled", True)]
)
def test_states_other_than_success_are_told_apart(
    routes: BatchRoutes, endpoint: BatchEndpoint, state: str, ended: bool
) -> None:
    routes.script = [state]
    created = endpoint.create("tag", uploaded(endpoint, "tag"), deadline=soon())
    seen = endpoint.look(created.job_id, deadline=soon())

    assert seen.ended is ended
    assert not seen.complete


def test_why_a_whole_job_failed_is_told(routes: BatchRoutes, endpoint: BatchEndpoint) -> None:
    file_id = endpoint.upload("tag", [b"no json\n"], deadline=soon())
    created = endpoint.create("tag", file_id, deadline=soon())
    seen = endpoint.look(created.job_id, deadline=soon())

    assert seen.ended
    assert "line 1 is not a request" in (seen.trouble or "")


@pytest.mark.parametrize("refusal", ["no-batches", "create-refused"])
def test_a_server_without_jobs_is_known_by_its_refusal(
    routes: BatchRoutes, endpoint: BatchEndpoint, refusal: str
) -> None:
    routes.faults = {refusal}

    with pytest.raises(BatchesUnavailable) as caught:
        endpoint.create("tag", uploaded(endpoint, "tag"), deadline=soon())
    assert caught.value.terminal


def test_a_wrong_key_is_that_and_nothing_else(routes: BatchRoutes, endpoint: BatchEndpoint) -> None:
    routes.key = "another"

    with pytest.raises(KeyRefused):
        uploaded(endpoint, "tag")
    with pytest.raises(KeyRefused):
        endpoint.find("a", "f", deadline=soon())


def test_a_redirected_download_is_refused(routes: BatchRoutes, endpoint: BatchEndpoint) -> None:
    assert "://" not in endpoint.content_path("files/../../secret?x=1#")


@pytest.mark.parametrize(
    "line",
    [None, 3, [], {}, {"custom_id": 5, "key": 5}, {"custom_id": "a", "key": "a", "error": {"code": 1}}],
)
def test_a_line_without_an_answer_is_unreadable(endpoint: BatchEndpoint, line: Any) -> None:
    with pytest.raises(NetFailure):
        endpoint.read(line)


def test_gemini_behind_a_gateway_has_its_files_behind_the_same_gateway() -> None:
    settings = settings_for("https://gateway.example.com/gemini/v1beta")
    batches = GeminiBatches(GeminiWire(), Transport(settings.base_url or "", settings="remote"), settings)

    assert batches.content_path("files/x") == "/gemini/download/v1beta/files/x:download?alt=media"


def test_an_operation_that_ends_with_an_error_alone_has_ended() -> None:
    settings = settings_for("https://gateway.example.com/v1beta")
    batches = GeminiBatches(GeminiWire(), Transport(settings.base_url or "", settings="remote"), settings)
    seen = batches._view({"name": "batches/1", "done": True, "error": {"code": 13, "message": "internal"}})

    assert (seen.ended, seen.complete, seen.trouble) == (True, False, "internal")
    with pytest.raises(AnswerUnreadable):
        batches._view({"done": True})


def test_an_unknown_provider_has_no_jobs(tmp_path: Path) -> None:
    class Other(GeminiWire):
        name = "other"

    with pytest.raises(ConfigError, match="no batch jobs"):
        endpoint_for(
            Other(),
            Transport("https://example.com/", settings="remote"),
            settings_for("https://example.com/"),
        )


def test_a_line_is_one_line_whatever_the_text_holds() -> None:
    row = jsonl({"text": "a\nb\r\u2028 \ud800 é"})

    assert row.count(b"\n") == 1
    assert json.loads(row)["text"].startswith("a\nb\r\u2028 ")
