"""When a chat model fails: the same failures as those of an embedding provider, in words that fit here."""

from __future__ import annotations

from plainmind.base.errors import PlainmindError
from plainmind.guests.chat.models.protocol import Reply
from plainmind.guests.remote.failures import (
    AddressRefused,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectionLost,
    KeyRefused,
    ModelUnknown,
    ProviderFailure,
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

_ADDRESS = "check `chat.baseUrl` and `chat.provider`"
_HINTS: dict[type[ProviderFailure], str] = {
    KeyRefused: "check `chat.apiKey`; a key from the environment goes to the provider's own address only",
    QuotaSpent: "add credit to the account, or set another `chat.model`",
    RateLimited: "wait a moment, then ask again",
    ModelUnknown: "check `chat.model` and `chat.baseUrl`, which mostly ends with /v1 (Anthropic's does not)",
    TextTooLong: "lower `chat.contextWindow` to what the model really takes",
    RequestRefused: "check `chat.model`, `chat.provider` and `chat.maxOutputTokens`",
    ServerTrouble: "ask again in a while",
    ConnectionLost: "ask again",
    TimedOut: "ask again, or raise `chat.timeoutMs`",
    Unreachable: "check `chat.baseUrl`, whether the server runs, and the network",
    Untrusted: "check `chat.baseUrl` and the clock; a certificate of your own is named by SSL_CERT_FILE",
    AddressRefused: _ADDRESS,
    RedirectRefused: "set `chat.baseUrl` to the address that the API really has",
    AnswerTooLarge: _ADDRESS,
    AnswerUnreadable: f"{_ADDRESS}: does a chat model answer there?",
}


class ChatFailure(PlainmindError):
    """A chat model did not answer, or not to the end; `partial` is what it had said by then."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        is_too_long: bool = False,
        partial: Reply | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.is_too_long = is_too_long  # the conversation, for this model
        self.partial = partial


def chat_failure(failure: ProviderFailure, partial: Reply) -> ChatFailure:
    """Say it as a failure of a chat, with a hint about settings that count here."""
    kinds = (kind for kind in type(failure).__mro__ if kind in _HINTS)
    kind = next(kinds, None)
    return ChatFailure(
        str(failure),
        hint=_HINTS[kind] if kind is not None else failure.hint,
        is_too_long=isinstance(failure, TextTooLong),
        partial=partial if partial.text else None,
    )
