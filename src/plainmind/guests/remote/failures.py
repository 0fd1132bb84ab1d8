"""Failures of an embedding provider: our own decisions not to ask it, and what the memory is told of all of them.

Inside this package a failure is a NetFailure; what leaves it is an EmbeddingError that says what to do.
"""

from __future__ import annotations

from plainmind.base.errors import EmbeddingError, TransientEmbeddingError
from plainmind.guests.net.failures import (
    AddressRefused,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectionLost,
    KeyRefused,
    ModelUnknown,
    NetFailure,
    QuotaSpent,
    RateLimited,
    RedirectRefused,
    RequestRefused,
    ServerTrouble,
    TextTooLong,
    TimedOut,
    Unreachable,
    Untrusted,
)


class TextRefused(RequestRefused):
    """The provider takes requests like this one, but not with this text."""

    terminal = False


class BudgetSpent(NetFailure):
    """Our own daily limit of tokens is reached."""


class ProviderPaused(NetFailure):
    """The provider has failed before and is not asked again until `retry_after` seconds have passed."""


class VectorsPending(EmbeddingError):
    """A batch job is making these vectors; a later sync finds them in the cache."""


_ASKED_AGAIN = "it is asked again by itself"
_IS_IT_AN_API = "check `remote.baseUrl`: is it the address of an embeddings API?"
_HINTS: dict[type[NetFailure], str] = {
    Unreachable: "check `remote.baseUrl`, `remote.proxy`, whether the server runs, and the network",
    ConnectionLost: _ASKED_AGAIN,
    TimedOut: "it may be overloaded; what is missing is asked for again at the next sync",
    ServerTrouble: _ASKED_AGAIN,
    RateLimited: f"{_ASKED_AGAIN}; lower `remote.concurrency` when this happens often",
    Untrusted: "check `remote.baseUrl` and the clock; a certificate of your own is named by SSL_CERT_FILE",
    AddressRefused: "check `remote.baseUrl`; an address of your own network must be set there by yourself, and "
    "others need https",
    RedirectRefused: "set `remote.baseUrl` to the address that the API really has",
    KeyRefused: "check `remote.apiKey` or the provider's environment variable",
    QuotaSpent: "add credit to the account, or choose another provider; keywords answer meanwhile",
    ModelUnknown: "check `model` and `remote.baseUrl`",
    RequestRefused: "check `model`, `remote.baseUrl` and `outputDimensionality`",
    TextTooLong: "choose a model with a longer context, or smaller chunks (`chunking.tokens`)",
    AnswerTooLarge: _IS_IT_AN_API,
    AnswerUnreadable: _IS_IT_AN_API,
}


def hint_for(failure: NetFailure) -> str | None:
    """What a user can do about it."""
    kinds = (kind for kind in type(failure).__mro__ if kind in _HINTS)
    return failure.hint or _HINTS.get(next(kinds, NetFailure))


def embedding_error(failure: NetFailure) -> EmbeddingError:
    """Say it to the memory; the failure itself is to be its cause."""
    kind = TransientEmbeddingError if failure.retryable else EmbeddingError
    return kind(str(failure), hint=hint_for(failure))
