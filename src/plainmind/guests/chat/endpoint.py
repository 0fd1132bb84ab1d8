"""A chat model behind an HTTP endpoint: asked, heard while it answers, and asked again when it could not answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from random import random

from plainmind.base.errors import ConfigError
from plainmind.base.value import replace
from plainmind.guests.chat.dialects import (
    AnswerReader,
    AnthropicDialect,
    Dialect,
    ErrorSent,
    EventReader,
    EventTooLarge,
    OpenAIDialect,
    ServerEvent,
)
from plainmind.guests.chat.model import (
    ABORTED,
    ChatFailure,
    ChatModelSettings,
    Reply,
    Request,
    never,
    unheard,
)
from plainmind.guests.net.failures import (
    Abandoned,
    AddressRefused,
    Answer,
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
    RetryPolicy,
    ServerTrouble,
    TextTooLong,
    TimedOut,
    Unreachable,
    Untrusted,
)
from plainmind.guests.net.transport import Transport, as_json
from plainmind.sessions.entries import text_of

_LOOK_UP_S = 0.1
_ACCEPT = {"Accept": "text/event-stream, application/json"}
_ADDRESS = "check `chat.baseUrl` and `chat.provider`"
_HINTS: dict[type[NetFailure], str] = {
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
            relay = _Relay(self._dialect.reader(), on_text)
            try:
                self._ask(request, relay, deadline, stopped)
                return relay.reader.reply(request)
            except Abandoned:
                return replace(relay.reader.reply(request), calls=(), stop=ABORTED)
            except NetFailure as failure:
                pause = self._pause_s(failure, relay, attempt, deadline)
                if pause is None:
                    said = replace(relay.reader.reply(request), calls=())
                    raise _chat_failure(failure, said) from failure
            finally:
                relay.raise_what_the_listener_raised()
            _wait(pause, stopped)

    def close(self) -> None:
        """Let go of connections."""
        self._transport.close()

    def _pause_s(self, failure: NetFailure, relay: _Relay, attempt: int, deadline: float) -> float | None:
        """Seconds until the next attempt; None when there is none."""
        if relay.was_heard:  # a second answer would be shown behind half of the first
            return None
        if isinstance(failure, RequestRefused) and self._says_usage and "stream_options" in str(failure):
            self._says_usage = False
            return 0.0
        return self._policy.pause_s(
            failure, attempt=attempt, remaining_s=deadline - time.monotonic(), random=random
        )

    def _ask(self, request: Request, relay: _Relay, deadline: float, stopped: Callable[[], bool]) -> None:
        body = self._dialect.body(request, self._settings)
        if not self._says_usage:
            body.pop("stream_options", None)
        private = [text_of(message.get("content")) for message in request.messages]
        failure = partial(self._transport.failure, private=private)
        try:
            # A lost connection is not sent to again here: `reply` asks again, as after every lost connection.
            answer = self._transport.stream(
                "POST",
                self._dialect.path(self._base_url),
                receive=lambda _: relay.take,
                body=as_json(body),
                headers=_ACCEPT,
                silence_s=self._settings.silence_s,
                deadline=deadline,
                stopped=lambda: relay.failure is not None or stopped(),
            )
            if not answer.is_success:
                raise failure(answer)
            relay.finish()
        except ErrorSent as error:
            raise failure(Answer(error.status, {}, json.dumps(error.payload).encode())) from None
        except EventTooLarge:
            raise AnswerTooLarge(f"{self.host} streams an event that has no end") from None
        if relay.is_foreign:
            raise AnswerUnreadable(f"{self.host} answered with something that is no answer of a chat model")
        if not (relay.reader.is_complete or relay.reader.has_ended):
            raise ConnectionLost(f"{self.host} ended in the middle of an answer")


class _Relay:
    """An answer on its way from bytes to the listener."""

    def __init__(self, reader: AnswerReader, on_text: Callable[[str], None]) -> None:
        self.reader = reader
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
        return not self.reader.is_complete and self.failure is None

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
        self._say(self.reader.take_whole(payload))

    def raise_what_the_listener_raised(self) -> None:
        """A listener that fails, such as a closed pipe, is no failure of the connection."""
        if self.failure is not None:
            raise self.failure

    def _hear(self, events: Iterable[ServerEvent]) -> None:
        for event in events:
            self.is_foreign = False
            if self.reader.is_complete:
                return
            self._say(self.reader.take(event))

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


def _transport(dialect: Dialect, settings: ChatModelSettings, base_url: str) -> Transport:
    """The way to the endpoint; headers that a person has set win over the provider's own."""
    key = (settings.api_key or "").strip()
    own = {name.lower() for name in settings.headers}
    shown = {name: value for name, value in dialect.headers(key).items() if name.lower() not in own}
    return Transport(
        base_url,
        settings="chat",
        headers={**shown, **settings.headers},
        secrets=[key, *settings.headers.values()],
        allow_private=settings.allow_private,
        proxy=settings.proxy,
    )


def _chat_failure(failure: NetFailure, partial: Reply) -> ChatFailure:
    """Say it as a failure of a chat, with a hint about settings that count here."""
    kinds = (kind for kind in type(failure).__mro__ if kind in _HINTS)
    kind = next(kinds, None)
    return ChatFailure(
        str(failure),
        hint=_HINTS[kind] if kind is not None else failure.hint,
        is_too_long=isinstance(failure, TextTooLong),
        partial=partial if partial.text else None,
    )


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
