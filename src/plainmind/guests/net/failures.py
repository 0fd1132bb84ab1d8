"""Every way in which a request fails, told in a sentence, and whether and when to ask again.

EmbeddingError
└── ProviderFailure
    ├── Unreachable        no connection: name, network, port                     retryable
    ├── ConnectionLost     the connection broke under an answer                   retryable
    ├── TimedOut           no complete answer before the deadline                 retryable
    ├── ServerTrouble      408, 409, 425, 5xx                                     retryable
    ├── RateLimited        429, with how long to wait                             retryable
    ├── Untrusted          the certificate is not that of the host
    ├── AddressRefused     we do not send text or keys to such an address         terminal
    ├── RedirectRefused    3xx: the key belongs to one origin                     terminal
    ├── KeyRefused         401, 403                                               terminal
    ├── QuotaSpent         402, 429 without credit                                terminal
    ├── ModelUnknown       404                                                    terminal
    ├── RequestRefused     400, 422 and the like                                  terminal
    │   ├── TextTooLong    the same, because of the length of a text
    │   └── TextRefused    the same, because of one text, while others are taken
    ├── AnswerTooLarge     more bytes than vectors can have
    ├── AnswerUnreadable   not what the provider promises to answer
    ├── BudgetSpent        our own limit of tokens a day
    ├── ProviderPaused     it failed before, and we do not ask again yet
    └── Abandoned          we stopped waiting: closed, or another request had failed

No message holds a key, a note or a whole answer; see `masked`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, NoReturn

from plainmind.base.errors import EmbeddingError, TransientEmbeddingError
from plainmind.base.value import field, value

_MOST_CHARACTERS = 200
_SHORTEST_ECHO = 12
_MASK = "…"
# Keys as providers write them, and long runs that could be one. `sk-…` stands before a partly starred key too.
_KEY_LIKE = re.compile(
    r"bearer\s+\S+|\b(?:sk|pk|rk|pa|hf|gsk|xai|key)[-_][\w*.\-]{4,}|\bAIza[\w*\-]{6,}|[\w+/=\-]{40,}",
    re.IGNORECASE,
)


class ProviderFailure(EmbeddingError):
    """A provider failed. `retry_after` is how many seconds it asked us to wait."""

    retryable: ClassVar[bool] = False  # the same request may work in a moment
    terminal: ClassVar[bool] = False  # it will not work before somebody changes something
    billed: ClassVar[bool] = False  # the provider may have counted the tokens

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after
        self.status = status


class Unreachable(ProviderFailure, TransientEmbeddingError):
    """No connection could be made."""

    retryable = True


class ConnectionLost(ProviderFailure, TransientEmbeddingError):
    """The connection broke before the answer was complete."""

    retryable = True
    billed = True


class TimedOut(ProviderFailure, TransientEmbeddingError):
    """There was no complete answer before the deadline."""

    retryable = True
    billed = True


class ServerTrouble(ProviderFailure, TransientEmbeddingError):
    """The provider has a problem of its own."""

    retryable = True


class RateLimited(ProviderFailure, TransientEmbeddingError):
    """Too many requests or tokens a minute."""

    retryable = True


class Untrusted(ProviderFailure):
    """The host could not prove who it is; nothing was sent."""


class AddressRefused(ProviderFailure):
    """The host has an address to which we send neither text nor keys."""

    terminal = True


class RedirectRefused(ProviderFailure):
    """The provider sent us elsewhere. We never follow: the key is for one origin alone."""

    terminal = True


class KeyRefused(ProviderFailure):
    """The API key is missing, wrong, or not allowed to do this."""

    terminal = True


class QuotaSpent(ProviderFailure):
    """The account has no credit left; waiting a minute does not help."""

    terminal = True


class ModelUnknown(ProviderFailure):
    """The provider has no such model, or nothing stands at this address."""

    terminal = True


class RequestRefused(ProviderFailure):
    """The provider does not take this request."""

    terminal = True


class TextTooLong(RequestRefused):
    """A text of the request, or all of them together, is longer than the model takes."""

    terminal = False


class TextRefused(RequestRefused):
    """The provider takes requests like this one, but not with this text."""

    terminal = False


class AnswerTooLarge(ProviderFailure):
    """The answer has more bytes than it can need."""

    billed = True


class AnswerUnreadable(ProviderFailure):
    """The answer is not what the provider promises: no JSON, another shape, an error with status 200."""

    billed = True


class BudgetSpent(ProviderFailure):
    """Our own daily limit of tokens is reached."""


class ProviderPaused(ProviderFailure):
    """The provider has failed before and is not asked again until `retry_after` seconds have passed."""


class Abandoned(ProviderFailure):
    """We stopped waiting for the answer."""

    billed = True


def masked(message: str, *, secrets: Iterable[str] = (), private: Iterable[str] = ()) -> str:
    """Cut a provider's words to 200 printable characters without keys and without what we sent as `private`."""
    text = message[: 4 * _MOST_CHARACTERS]
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, _MASK)
    text = _without_echo(_KEY_LIKE.sub(_MASK, text), [*private])
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + _MASK


def _without_echo(message: str, private: list[str]) -> str:
    """Mask every run of the message that also stands in a private text: errors like to quote what they got."""
    for text in sorted(private, key=len, reverse=True):
        if 4 <= len(text) < _SHORTEST_ECHO:
            message = message.replace(text, _MASK)
    hidden = [False] * len(message)
    for start in range(len(message) - _SHORTEST_ECHO + 1):
        run = message[start : start + _SHORTEST_ECHO]
        if any(run in text for text in private):
            hidden[start : start + _SHORTEST_ECHO] = [True] * _SHORTEST_ECHO
    kept: list[str] = []
    for char, is_hidden in zip(message, hidden, strict=True):
        if not is_hidden:
            kept.append(char)
        elif not kept or kept[-1] != _MASK:
            kept.append(_MASK)
    return "".join(kept)


@value
class RetryPolicy:
    """Three more attempts, each after a random part of a pause that doubles from half a second to eight.

    A question gets one more: somebody waits for the answer, and words alone can give one.
    """

    retries: int = 3
    retries_of_question: int = 1
    first_pause_s: float = 0.5
    longest_pause_s: float = 8.0
    longest_asked_for_s: float = 60.0  # when the provider asks for more, we give up instead

    def pause_s(
        self,
        failure: EmbeddingError,
        *,
        attempt: int,
        remaining_s: float,
        random: Callable[[], float],
        is_question: bool = False,
    ) -> float | None:
        """Seconds to wait after failed attempt number `attempt` (from 1); None when it was the last.

        A provider that says how long to wait is not asked sooner. Time that ends before the pause is not waited for.
        """
        retries = self.retries_of_question if is_question else self.retries
        if not isinstance(failure, ProviderFailure) or not failure.retryable or attempt > retries:
            return None
        asked_for = failure.retry_after or 0.0
        if asked_for > self.longest_asked_for_s:
            return None
        pause = asked_for + random() * min(self.first_pause_s * 2 ** (attempt - 1), self.longest_pause_s)
        return pause if pause < remaining_s else None


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


@value
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


@value
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
