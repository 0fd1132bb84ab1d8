"""A chat model by the name of its provider."""

from __future__ import annotations

from commonplace.agent.models.anthropic import AnthropicDialect
from commonplace.agent.models.dialect import Dialect
from commonplace.agent.models.endpoint import EndpointModel
from commonplace.agent.models.openai import OpenAIDialect
from commonplace.agent.models.settings import ChatModelSettings
from commonplace.errors import ConfigError

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
