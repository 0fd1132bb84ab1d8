"""Every way in which a request fails, told in a sentence, and whether and when to ask again.

NetFailure
├── Unreachable        no connection: name, network, port, proxy              retryable
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
│   └── TextTooLong    the same, because of the length of a text
├── AnswerTooLarge     more bytes than the answer can need
├── AnswerUnreadable   not what the server promises to answer
└── Abandoned          we stopped waiting: closed, or another request had failed

No message holds a key, a text that we sent or a whole answer; see `mask`. What a user can do about a failure
depends on who asked, and for what: the guest that shows it adds that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NoReturn

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.value import field, value

_MOST_CHARACTERS = 200
_SHORTEST_ECHO = 12
_MASK = "…"
# Keys as providers write them, and long runs that could be one. `sk-…` stands before a partly starred key too.
_KEY_LIKE = pattern(
    r"bearer\s+\S+|\b(?:sk|pk|rk|pa|hf|gsk|xai|key)[-_][\w*.\-]{4,}|\bAIza[\w*\-]{6,}|[\w+/=\-]{40,}",
    re.IGNORECASE,
)
_TRANSIENT = frozenset({408, 409, 425})
_NO_CREDIT = pattern(
    r"insufficient_quota|insufficient.{0,20}(?:credit|balance|funds)|billing_hard_limit", re.I
)
_PER_DAY = pattern(r"per_?day", re.I)
_BAD_KEY = pattern(r"api[_ ]key[_ ](?:not valid|invalid)|invalid[_ ]api[_ ]key|incorrect api key", re.I)
_NO_MODEL = pattern(r"model_not_found|model\b.{0,80}\b(?:not found|does not exist|is not supported)", re.I)
_TOO_LONG = pattern(
    r"(?:maximum|max\w*) (?:context|input|sequence|request|allowed)|context[_ ](?:length|size|window)"
    r"|too (?:long|large|many tokens)|token limit|exceeds? .{0,60}(?:tokens?|length|limit)|string_above_max",
    re.I,
)
# llama.cpp's server answers 500 to a text that does not fit its batch.
_MAY_MEAN_LENGTH = frozenset({400, 413, 422, 500})


class NetFailure(PlainmindError):
    """A request failed. `retry_after` is how many seconds we are asked to wait, `status` that of the answer."""

    retryable: ClassVar[bool] = False  # the same request may work in a moment
    terminal: ClassVar[bool] = False  # it will not work before something is changed
    may_have_worked: ClassVar[bool] = False  # the server may have done, and counted, what was asked

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


class Unreachable(NetFailure):
    """No connection could be made."""

    retryable = True


class ConnectionLost(NetFailure):
    """The connection broke before the answer was complete."""

    retryable = True
    may_have_worked = True


class TimedOut(NetFailure):
    """There was no complete answer before the deadline."""

    retryable = True
    may_have_worked = True


class ServerTrouble(NetFailure):
    """The server has a problem of its own."""

    retryable = True


class RateLimited(NetFailure):
    """Too many requests or tokens a minute."""

    retryable = True


class Untrusted(NetFailure):
    """The host could not prove who it is; nothing was sent."""


class AddressRefused(NetFailure):
    """The host has an address to which we send neither text nor keys."""

    terminal = True


class RedirectRefused(NetFailure):
    """The server sent us elsewhere. We never follow: the key is for one origin alone."""

    terminal = True


class KeyRefused(NetFailure):
    """The API key is missing, wrong, or not allowed to do this."""

    terminal = True


class QuotaSpent(NetFailure):
    """The account has no credit left; waiting a minute does not help."""

    terminal = True


class ModelUnknown(NetFailure):
    """The server has no such model, or nothing stands at this address."""

    terminal = True


class RequestRefused(NetFailure):
    """The server does not take this request."""

    terminal = True


class TextTooLong(RequestRefused):
    """A text of the request, or all of them together, is longer than the model takes."""

    terminal = False


class AnswerTooLarge(NetFailure):
    """The answer has more bytes than it can need."""

    may_have_worked = True


class AnswerUnreadable(NetFailure):
    """The answer is not what the server promises: no JSON, another shape, an error with status 200."""

    may_have_worked = True


class Abandoned(NetFailure):
    """We stopped waiting for the answer."""

    may_have_worked = True


def mask(message: str, *, secrets: Iterable[str] = (), private: Iterable[str] = ()) -> str:
    """Cut a server's words to 200 printable characters without keys and without what we sent as `private`."""
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
    """Three more attempts, each after a random part of a pause that doubles from half a second to eight."""

    retries: int = 3
    first_pause_s: float = 0.5
    longest_pause_s: float = 8.0
    longest_asked_for_s: float = 60.0  # when the server asks for more, we give up instead

    def pause_s(
        self,
        failure: PlainmindError,
        *,
        attempt: int,
        remaining_s: float,
        random: Callable[[], float],
    ) -> float | None:
        """Seconds to wait after failed attempt number `attempt` (from 1); None when it was the last.

        A server that says how long to wait is not asked sooner. Time that ends before the pause is not waited for.
        """
        if not isinstance(failure, NetFailure) or not failure.retryable or attempt > self.retries:
            return None
        asked_for = failure.retry_after or 0.0
        if asked_for > self.longest_asked_for_s:
            return None
        pause = asked_for + random() * min(self.first_pause_s * 2 ** (attempt - 1), self.longest_pause_s)
        return pause if pause < remaining_s else None


@value
class Answer:
    """What came back. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def is_success(self) -> bool:
        """Whether the server did what was asked, by its own word."""
        return 200 <= self.status < 300


def json_of(answer: Answer, host: str) -> Any:
    """Read strict JSON: Python's own reader also takes NaN and Infinity. Raises AnswerUnreadable."""
    try:
        return json.loads(answer.body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        # Without its cause, which holds the whole answer.
        raise AnswerUnreadable(
            f"{host} answered with something that is not JSON ({_kind(answer)}, {len(answer.body)} bytes)",
            status=answer.status,
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _kind(answer: Answer) -> str:
    return mask(answer.headers.get("content-type", "of no kind"))[:60]


def failure_of(
    answer: Answer, *, host: str, secrets: Iterable[str] = (), private: Iterable[str] = ()
) -> NetFailure:
    """Name the failure in an answer that is not the wanted one; `private` texts are not repeated in it."""
    said = _Said.of(answer)
    kind = _kind_of_failure(said)
    detail = mask(said.message, secrets=secrets, private=private)
    sentence = f"{host} {_WORDS[kind]} ({said.status})"
    return kind(
        f"{sentence}: {detail}" if detail else sentence,
        retry_after=said.retry_after,
        status=said.status,
    )


_WORDS: dict[type[NetFailure], str] = {
    KeyRefused: "refused the API key",
    QuotaSpent: "says that the account has no quota left",
    RateLimited: "was asked too often",
    ModelUnknown: "has no such model or address",
    TextTooLong: "takes no text of this length",
    RequestRefused: "refused the request",
    ServerTrouble: "has a problem of its own",
    AnswerUnreadable: "answered something unexpected",
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


def _kind_of_failure(said: _Said) -> type[NetFailure]:
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
    from email.utils import parsedate_to_datetime  # 5 ms, for a header that hardly any answer has

    try:
        return max(
            0.0, (parsedate_to_datetime(value or "") - parsedate_to_datetime(sent or "")).total_seconds()
        )
    except (TypeError, ValueError):
        return None
