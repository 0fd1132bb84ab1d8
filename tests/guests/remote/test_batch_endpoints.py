from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.providers.batch_clients import settings_for
from tests.support.providers.batches import BatchRoutes, serving
from tests.support.providers.server import DIALECTS, KEY

from plainmind.base.errors import ConfigError
from plainmind.guests.net.failures import AnswerUnreadable, KeyRefused, NetFailure
from plainmind.guests.net.transport import Transport
from plainmind.guests.remote.batch_endpoint import (
    BatchEndpoint,
    BatchesUnavailable,
    Unlisted,
    endpoint_for,
    jsonl,
)
from plainmind.guests.remote.gemini import GeminiBatches, GeminiWire
from plainmind.guests.remote.wire import wire_for

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
