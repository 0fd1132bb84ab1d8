"""A chat model by the name of its provider."""

from __future__ import annotations

from plainmind.base.errors import ConfigError
from plainmind.guests.chat.models.anthropic import AnthropicDialect
from plainmind.guests.chat.models.dialect import Dialect
from plainmind.guests.chat.models.endpoint import EndpointModel
from plainmind.guests.chat.models.openai import OpenAIDialect
from plainmind.guests.chat.models.settings import ChatModelSettings

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
