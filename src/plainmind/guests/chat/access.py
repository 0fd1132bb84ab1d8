"""How the chat model of the settings is reached: its address, and the one key that was given for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plainmind.base.errors import ConfigError
from plainmind.config.load import resolve_secret
from plainmind.config.settings import Settings
from plainmind.guests.chat.config import ChatConfig
from plainmind.guests.chat.models.endpoint import EndpointModel, create_chat_model, dialect_of
from plainmind.guests.chat.models.protocol import ChatModelSettings
from plainmind.guests.net.address import split_base_url


def chat_model_of(
    settings: Settings, environ: Mapping[str, str], *, model: str | None = None
) -> EndpointModel:
    """Make the chat model of the settings, or another one of the same endpoint. Raises ConfigError."""
    chat = settings.section(ChatConfig)
    name = model or chat.model
    if not name:
        raise ConfigError(
            "no chat model is chosen",
            key="chat.model",
            hint="`plainmind config set chat.model NAME`, or --model NAME; `chat.provider` says whose it is",
        )
    base_url = _base_url(settings)
    key = next(_keys(settings, base_url, environ), None)
    dialect = dialect_of(chat.provider)
    if key is None and not chat.headers and _is_at(base_url, None, dialect.default_base_url):
        raise ConfigError(
            f"there is no API key for {chat.provider}",
            key="chat.apiKey",
            hint=f"set {dialect.key_variable} or `chat.apiKey`; a server of your own is named by `chat.baseUrl`",
        )
    return create_chat_model(
        chat.provider,
        ChatModelSettings(
            model=name,
            base_url=base_url,
            api_key=key,
            headers=chat.headers,
            proxy=chat.proxy,
            context_window=chat.context_window,
            max_output_tokens=chat.max_output_tokens,
            silence_s=chat.timeout_ms / 1000,
            # Nobody but the user can set an address: a project file may not.
            allow_private=base_url is not None,
        ),
    )


def chat_destination(settings: Settings) -> dict[str, str | None] | None:
    """Whom `chat` and `flush` ask, and at which host; None when no model is chosen. Facts for `status`."""
    chat = settings.section(ChatConfig)
    if not chat.model:
        return None
    facts: dict[str, str | None] = {"provider": chat.provider, "model": chat.model}
    try:
        base_url = _base_url(settings) or dialect_of(chat.provider).default_base_url
        origin, _ = split_base_url(base_url, settings="chat")
    except ConfigError as error:
        return facts | {"to": None, "problem": str(error)}
    return facts | {"to": origin.host}


def _base_url(settings: Settings) -> str | None:
    chat = settings.section(ChatConfig)
    own = settings.provider_access.get(chat.provider)
    return chat.base_url or (own.base_url if own else None)


def _keys(settings: Settings, base_url: str | None, environ: Mapping[str, str]) -> Iterator[str]:
    """The keys that may be sent to this address, best first. A key belongs to the address that it was given for."""
    chat = settings.section(ChatConfig)
    own = settings.provider_access.get(chat.provider)
    dialect = dialect_of(chat.provider)
    written = [chat.api_key]
    if own is not None and _is_at(base_url, own.base_url, dialect.default_base_url):
        written.append(own.api_key)
    for secret in written:
        key = resolve_secret(secret, environ)
        if key is not None and key.strip():
            yield key
    if _is_at(base_url, None, dialect.default_base_url) and environ.get(dialect.key_variable, "").strip():
        yield environ[dialect.key_variable]


def _is_at(base_url: str | None, other: str | None, default: str) -> bool:
    """Whether both are the same scheme, host and port; None is the provider's own address."""
    one, _ = split_base_url(base_url or default, settings="chat")
    return one == split_base_url(other or default, settings="chat")[0]
