"""From a provider's answer to the failure that it is: what counts is what the error says, then its status."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

from plainmind.guests.remote.failures import (
    AnswerUnreadable,
    KeyRefused,
    ModelUnknown,
    ProviderFailure,
    QuotaSpent,
    RateLimited,
    RequestRefused,
    ServerTrouble,
    TextTooLong,
    masked,
)

_TRANSIENT = frozenset({408, 409, 425})
_NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient.{0,20}(?:credit|balance|funds)|billing_hard_limit", re.I
)
_PER_DAY = re.compile(r"per_?day", re.I)
_BAD_KEY = re.compile(r"api[_ ]key[_ ](?:not valid|invalid)|invalid[_ ]api[_ ]key|incorrect api key", re.I)
_NO_MODEL = re.compile(r"model_not_found|model\b.{0,80}\b(?:not found|does not exist|is not supported)", re.I)
_TOO_LONG = re.compile(
    r"(?:maximum|max\w*) (?:context|input|sequence|request|allowed)|context[_ ](?:length|size|window)"
    r"|too (?:long|large|many tokens)|token limit|exceeds? .{0,60}(?:tokens?|length|limit)|string_above_max",
    re.I,
)
# llama.cpp's server answers 500 to a text that does not fit its batch.
_MAY_MEAN_LENGTH = frozenset({400, 413, 422, 500})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def parsed(answer: Answer, host: str) -> Any:
    """Read strict JSON: Python's own reader also takes NaN and Infinity. Raises AnswerUnreadable."""
    try:
        return json.loads(answer.body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        # Without its cause, which holds the whole answer.
        raise AnswerUnreadable(
            f"{host} answered with something that is not JSON ({_kind(answer)}, {len(answer.body)} bytes)",
            hint="check `remote.baseUrl`: is it the address of an embeddings API?",
            status=answer.status,
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _kind(answer: Answer) -> str:
    return masked(answer.headers.get("content-type", "of no kind"))[:60]


def failure_of(
    answer: Answer, *, host: str, secrets: Iterable[str] = (), private: Iterable[str] = ()
) -> ProviderFailure:
    """Name the failure in an answer that is not the wanted one; `private` texts are not repeated in it."""
    said = _Said.of(answer)
    kind = _kind_of_failure(said)
    detail = masked(said.message, secrets=secrets, private=private)
    sentence = f"{host} {_WORDS[kind]} ({said.status})"
    return kind(
        f"{sentence}: {detail}" if detail else sentence,
        hint=_HINTS[kind],
        retry_after=said.retry_after,
        status=said.status,
    )


_WORDS: dict[type[ProviderFailure], str] = {
    KeyRefused: "refused the API key",
    QuotaSpent: "says that the account has no quota left",
    RateLimited: "was asked too often",
    ModelUnknown: "has no such model or address",
    TextTooLong: "takes no text of this length",
    RequestRefused: "refused the request",
    ServerTrouble: "has a problem of its own",
    AnswerUnreadable: "answered something unexpected",
}
_HINTS: dict[type[ProviderFailure], str] = {
    KeyRefused: "check `remote.apiKey` or the provider's environment variable",
    QuotaSpent: "add credit to the account, or choose another provider; keywords answer meanwhile",
    RateLimited: "it is asked again by itself; lower `remote.concurrency` when this happens often",
    ModelUnknown: "check `model` and `remote.baseUrl`",
    TextTooLong: "choose a model with a longer context, or smaller chunks (`chunking.tokens`)",
    RequestRefused: "check `model`, `remote.baseUrl` and `outputDimensionality`",
    ServerTrouble: "it is asked again by itself",
    AnswerUnreadable: "check `remote.baseUrl`: is it the address of an embeddings API?",
}


@dataclass(frozen=True, slots=True)
class _Said:
    """What an answer says about its error."""

    status: int
    message: str
    codes: str  # machine-readable words: codes, types, reasons
    retry_after: float | None

    @staticmethod
    def of(answer: Answer) -> _Said:
        try:
            payload = json.loads(answer.body)
        except (ValueError, RecursionError):
            payload = None  # HTML of some gateway: the status says enough, and the page is not for people
        error = _error_in(payload)
        details = [one for one in _list(error.get("details")) if isinstance(one, dict)]
        status = answer.status
        if 200 <= status < 300 and isinstance(error.get("code"), int):
            status = error["code"]
        codes = [
            error.get("code"),
            error.get("type"),
            error.get("status"),
            *(one.get("reason") for one in details),
        ]
        codes += [
            one.get("quotaId")
            for row in details
            for one in _list(row.get("violations"))
            if isinstance(one, dict)
        ]
        return _Said(
            status,
            _message_of(error),
            " ".join(str(code) for code in codes if isinstance(code, str | int)),
            _retry_after(answer.headers, details),
        )


def _kind_of_failure(said: _Said) -> type[ProviderFailure]:
    status, words = said.status, f"{said.codes} {said.message}"
    for kind, applies in (
        (KeyRefused, status in (401, 403) or (status == 400 and _BAD_KEY.search(words))),
        (QuotaSpent, status == 402 or (status in (400, 429) and _NO_CREDIT.search(words))),
        (QuotaSpent, status == 429 and _PER_DAY.search(said.codes)),
        (RateLimited, status == 429),
        (TextTooLong, status == 413 or (status in _MAY_MEAN_LENGTH and _TOO_LONG.search(words))),
        (ModelUnknown, status == 404 or (status == 400 and _NO_MODEL.search(words))),
        (ServerTrouble, status in _TRANSIENT or status >= 500),
        (RequestRefused, status >= 400),
    ):
        if applies:
            return kind
    return AnswerUnreadable


def _error_in(payload: object) -> dict[str, Any]:
    """Find the error: `{"error": {…}}`, `{"error": "…"}`, `{"detail": …}`, or a list of one of these."""
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, dict):
        return {}
    error = payload.get("error")
    if isinstance(error, dict):
        return error
    if isinstance(error, str):
        return {**payload, "message": error}
    return payload


def _message_of(error: Mapping[str, Any]) -> str:
    for name in ("message", "detail", "msg"):
        value = error.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):  # of a validator, which repeats the input beside each `msg`
            return "; ".join(str(one["msg"]) for one in value if isinstance(one, dict) and "msg" in one)
    return ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _retry_after(headers: Mapping[str, str], details: list[dict[str, Any]]) -> float | None:
    """How many seconds we are asked to wait: in a header as seconds or as a date, or in the error itself."""
    candidates = (
        _seconds(headers.get("retry-after-ms"), 1000),
        _seconds(headers.get("retry-after"), 1),
        _until(headers.get("retry-after"), headers.get("date")),
        *(_seconds(str(one["retryDelay"]).removesuffix("s"), 1) for one in details if "retryDelay" in one),
    )
    return next((seconds for seconds in candidates if seconds is not None), None)


def _seconds(value: str | None, units_a_second: int) -> float | None:
    try:
        seconds = float(value or "") / units_a_second
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _until(value: str | None, sent: str | None) -> float | None:
    """Seconds from the answer's own date to another date, so that our clock does not matter."""
    try:
        return max(
            0.0, (parsedate_to_datetime(value or "") - parsedate_to_datetime(sent or "")).total_seconds()
        )
    except (TypeError, ValueError):
        return None
