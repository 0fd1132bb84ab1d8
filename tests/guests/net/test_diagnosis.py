"""Errors as providers really word them, and which failure each is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.guests.net.failures import (
    Answer,
    AnswerUnreadable,
    KeyRefused,
    ModelUnknown,
    NetFailure,
    QuotaSpent,
    RateLimited,
    RequestRefused,
    ServerTrouble,
    TextTooLong,
    failure_of,
    json_of,
)


def diagnosed(status: int, payload: object, headers: dict[str, str] | None = None) -> NetFailure:
    return failure_of(Answer(status, headers or {}, json.dumps(payload).encode()), host="api.example.com")


@pytest.mark.parametrize(
    ("status", "payload", "kind"),
    [
        (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, KeyRefused),
        (403, {"error": {"status": "PERMISSION_DENIED", "message": "denied"}}, KeyRefused),
        (
            400,
            {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
                       "details": [{"reason": "API_KEY_INVALID"}]}},
            KeyRefused,
        ),
        (429, {"error": {"type": "insufficient_quota", "code": "insufficient_quota"}}, QuotaSpent),
        (429, {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, RateLimited),
        (402, {"error": {"message": "Insufficient credits", "code": 402}}, QuotaSpent),
        (
            429,
            {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota",
                       "details": [{"violations": [{"quotaId": "EmbedContentRequestsPerDayPerUser"}]}]}},
            QuotaSpent,
        ),
        (
            429,
            {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota",
                       "details": [{"violations": [{"quotaId": "EmbedContentRequestsPerMinutePerUser"}]},
                                   {"retryDelay": "36s"}]}},
            RateLimited,
        ),
        (404, {"error": {"message": "model 'x' not found, try pulling it first"}}, ModelUnknown),
        (404, {"error": "model not found"}, ModelUnknown),
        (400, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}, ModelUnknown),
        (400, {"detail": "Model voyage-9 is not supported."}, ModelUnknown),
        (400, {"error": {"message": "This model's maximum context length is 8192 tokens"}}, TextTooLong),
        (500, {"error": {"code": 500, "message": "input is too large to process. increase the physical batch size"}},
         TextTooLong),
        (400, {"object": "error", "message": "This model's maximum context length is 512 tokens."}, TextTooLong),
        (400, {"error": "input length exceeds maximum context length"}, TextTooLong),
        (413, {}, TextTooLong),
        (400, {"error": {"message": "'$.input' is invalid"}}, RequestRefused),
        (422, {"detail": [{"loc": ["body"], "msg": "field required", "input": "SECRET NOTE"}]}, RequestRefused),
        (408, {}, ServerTrouble),
        (409, {}, ServerTrouble),
        (425, {}, ServerTrouble),
        (500, {"error": {"message": "internal"}}, ServerTrouble),
        (529, {}, ServerTrouble),
        (200, {"error": {"message": "overloaded", "code": 503}}, ServerTrouble),
        (200, {"error": {"message": "Insufficient credits", "code": 402}}, QuotaSpent),
        (200, {"error": {"message": "what?"}}, AnswerUnreadable),
        (451, {}, RequestRefused),
    ],
)  # fmt: skip
def test_an_error_is_named_by_what_it_says(status: int, payload: object, kind: type[NetFailure]) -> None:
    failure = diagnosed(status, payload)

    assert type(failure) is kind
    assert "api.example.com" in str(failure)
    assert "SECRET" not in str(failure)


def test_a_page_of_html_is_not_repeated() -> None:
    failure = failure_of(Answer(502, {}, b"<html>" + b"gateway " * 500), host="api.example.com")

    assert type(failure) is ServerTrouble
    assert "gateway gateway" not in str(failure)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert diagnosed(429, {}, headers).retry_after == seconds


def test_how_long_to_wait_may_stand_in_the_error() -> None:
    assert diagnosed(429, {"error": {"details": [{"retryDelay": "36s"}]}}).retry_after == 36


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(
                        st.sampled_from(["error", "details", "message", "code", "violations", "detail", "x"]), inner)),
       st.integers(200, 599))  # fmt: skip
def test_whatever_the_body_is_there_is_a_failure_in_words(payload: object, status: int) -> None:
    failure = diagnosed(status, payload)

    assert isinstance(failure, NetFailure)
    assert len(str(failure)) < 300


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"a": NaN}', b"[Infinity]", b"[-Infinity]", b"<html>", b"\xff", b"[" * 200_000]
)
def test_only_strict_json_is_read(body: bytes) -> None:
    with pytest.raises(AnswerUnreadable) as caught:
        json_of(Answer(200, {"content-type": "text/html"}, body), "api.example.com")

    assert caught.value.__cause__ is None
    assert "text/html" in str(caught.value)
