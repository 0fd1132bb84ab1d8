"""Every way in which a provider fails us, each knowing whether to ask again.

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

import re
from collections.abc import Iterable
from typing import ClassVar

from plainmind.base.errors import EmbeddingError, TransientEmbeddingError

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
