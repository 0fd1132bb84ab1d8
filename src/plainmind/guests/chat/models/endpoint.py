"""When a chat model fails: the same failures as those of an embedding provider, in words that fit here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from random import random

from plainmind.base.errors import ConfigError, PlainmindError
from plainmind.base.value import replace
from plainmind.guests.chat.models.anthropic import AnthropicDialect
from plainmind.guests.chat.models.dialect import Dialect, ErrorSent, Reading
from plainmind.guests.chat.models.openai import OpenAIDialect
from plainmind.guests.chat.models.protocol import ABORTED, ChatModelSettings, Reply, Request, never, unheard
from plainmind.guests.chat.models.streaming import StreamingTransport
from plainmind.guests.net.events import EventReader, EventTooLarge, ServerEvent
from plainmind.guests.net.failures import (
    Abandoned,
    AddressRefused,
    Answer,
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
    RetryPolicy,
    ServerTrouble,
    TextTooLong,
    TimedOut,
    Unreachable,
    Untrusted,
)
from plainmind.guests.net.transport import encoded
from plainmind.sessions.entries import text_of

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


_LOOK_UP_S = 0.1


class EndpointModel:
    """A `ChatModel`; see there."""

    def __init__(
        self, dialect: Dialect, settings: ChatModelSettings, *, policy: RetryPolicy | None = None
    ) -> None:
        self.provider = dialect.name
        self.name = settings.model
        self.context_window = settings.context_window or dialect.default_context_window
        self._dialect = dialect
        self._settings = settings
        self._policy = policy or RetryPolicy()
        self._base_url = settings.base_url or dialect.default_base_url
        self._transport = _transport(dialect, settings, self._base_url)
        self._says_usage = True  # until it turns out that the endpoint does not know the option

    @property
    def host(self) -> str:
        """The host that hears the conversation."""
        return self._transport.host

    def reply(
        self,
        request: Request,
        *,
        on_text: Callable[[str], None] = unheard,
        stopped: Callable[[], bool] = never,
    ) -> Reply:
        """Answer; a request is sent again only as long as nothing of an answer was heard."""
        deadline = time.monotonic() + self._settings.answer_s
        attempt = 0
        while True:
            attempt += 1
            hearing = _Hearing(self._dialect.reading(), on_text)
            try:
                self._ask(request, hearing, deadline, stopped)
                return hearing.reading.reply(request)
            except Abandoned:
                return replace(hearing.reading.reply(request), calls=(), stop=ABORTED)
            except ProviderFailure as failure:
                pause = self._pause_s(failure, hearing, attempt, deadline)
                if pause is None:
                    said = replace(hearing.reading.reply(request), calls=())
                    raise chat_failure(failure, said) from failure
            finally:
                hearing.raise_what_the_listener_raised()
            _wait(pause, stopped)

    def close(self) -> None:
        """Let go of connections."""
        self._transport.close()

    def _pause_s(
        self, failure: ProviderFailure, hearing: _Hearing, attempt: int, deadline: float
    ) -> float | None:
        """Seconds until the next attempt; None when there is none."""
        if hearing.was_heard:  # a second answer would be shown behind half of the first
            return None
        if isinstance(failure, RequestRefused) and self._says_usage and "stream_options" in str(failure):
            self._says_usage = False
            return 0.0
        return self._policy.pause_s(
            failure, attempt=attempt, remaining_s=deadline - time.monotonic(), random=random
        )

    def _ask(self, request: Request, hearing: _Hearing, deadline: float, stopped: Callable[[], bool]) -> None:
        body = self._dialect.body(request, self._settings)
        if not self._says_usage:
            body.pop("stream_options", None)
        private = [text_of(message.get("content")) for message in request.messages]
        failure = partial(self._transport.failure, private=private)
        try:
            answer = self._transport.stream(
                self._dialect.path(self._base_url),
                encoded(body),
                silence_s=self._settings.silence_s,
                deadline=deadline,
                stopped=lambda: hearing.failure is not None or stopped(),
                take=hearing.take,
            )
            if not 200 <= answer.status < 300:
                raise failure(answer)
            hearing.finish()
        except ErrorSent as error:
            raise failure(Answer(error.status, {}, json.dumps(error.payload).encode())) from None
        except EventTooLarge:
            raise AnswerTooLarge(f"{self.host} streams an event that has no end") from None
        if hearing.is_foreign:
            raise AnswerUnreadable(f"{self.host} answered with something that is no answer of a chat model")
        if not (hearing.reading.is_complete or hearing.reading.has_ended):
            raise ConnectionLost(f"{self.host} ended in the middle of an answer")


class _Hearing:
    """An answer on its way from bytes to the ears of whoever listens."""

    def __init__(self, reading: Reading, on_text: Callable[[str], None]) -> None:
        self.reading = reading
        self.was_heard = False
        self.is_foreign = False  # bytes came, and not one event
        self.failure: BaseException | None = None
        self._events = EventReader()
        self._on_text = on_text
        self._whole: bytearray | None = None  # an answer in one piece
        self._is_first = True

    def take(self, piece: bytes) -> bool:
        """Take bytes; whether more are needed."""
        if self._is_first:
            self._is_first, self.is_foreign = False, True
            if piece.lstrip()[:1] == b"{":
                self._whole = bytearray()
        if self._whole is not None:
            self._whole += piece
            return True
        self._hear(self._events.feed(piece))
        return not self.reading.is_complete and self.failure is None

    def finish(self) -> None:
        """The stream has ended."""
        if self._whole is None:
            self._hear(self._events.finish())
            return
        try:
            payload = json.loads(self._whole)
        except (ValueError, RecursionError):
            raise AnswerUnreadable("the endpoint answered with something that is not JSON") from None
        if payload.get("error"):
            raise ErrorSent(200, payload)
        self.is_foreign = False
        self._say(self.reading.take_whole(payload))

    def raise_what_the_listener_raised(self) -> None:
        """A listener that fails, such as a closed pipe, is no failure of the connection."""
        if self.failure is not None:
            raise self.failure

    def _hear(self, events: Iterable[ServerEvent]) -> None:
        for event in events:
            self.is_foreign = False
            if self.reading.is_complete:
                return
            self._say(self.reading.take(event))

    def _say(self, text: str) -> None:
        if not text or self.failure is not None:
            return
        self.was_heard = True
        try:
            self._on_text(text)
        except Exception as error:  # noqa: BLE001 (raised again, by `raise_what_the_listener_raised`)
            self.failure = error


def _wait(seconds: float, stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not stopped():
        time.sleep(min(left, _LOOK_UP_S))


def _transport(dialect: Dialect, settings: ChatModelSettings, base_url: str) -> StreamingTransport:
    key = (settings.api_key or "").strip()
    own = {name.lower() for name in settings.headers}
    shown = {name: value for name, value in dialect.headers(key).items() if name.lower() not in own}
    try:
        return StreamingTransport(
            base_url,
            headers={**shown, **settings.headers},
            secrets=[key, *settings.headers.values()],
            allow_private=settings.allow_private,
            proxy=settings.proxy,
        )
    except ConfigError as error:  # written for the settings of embedding providers
        said, hint = (text.replace("`remote.", "`chat.") for text in (str(error), error.hint or ""))
        raise ConfigError(said, key=(error.key or "").replace("remote.", "chat."), hint=hint) from error


_DIALECTS: dict[str, type[Dialect]] = {"openai": OpenAIDialect, "anthropic": AnthropicDialect}


def dialect_of(provider: str) -> Dialect:
    """The language of a provider. Raises ConfigError."""
    if provider not in _DIALECTS:
        raise ConfigError(
            f"unknown chat provider: `{provider}`",
            key="chat.provider",
            hint=f"use one of {', '.join(_DIALECTS)}",
        )
    return _DIALECTS[provider]()


def create_chat_model(provider: str, settings: ChatModelSettings) -> EndpointModel:
    """Make a model; nothing is sent before it is asked."""
    return EndpointModel(dialect_of(provider), settings)
