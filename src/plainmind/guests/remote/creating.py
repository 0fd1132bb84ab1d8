"""Makes the embedder of a remote provider from its settings."""

from __future__ import annotations

from plainmind.base.errors import ConfigError
from plainmind.guests.remote.embedder import RemoteEmbedder
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.settings import RemoteSettings
from plainmind.guests.remote.wire import Wire

REMOTE_PROVIDERS = ("openai", "gemini", "voyage")


def create_remote(name: str, settings: RemoteSettings, ledger: Ledger) -> RemoteEmbedder:
    """Make the provider `name`, which takes over the ledger and closes it."""
    return RemoteEmbedder(wire_for(name, settings), settings, ledger)


def wire_for(name: str, settings: RemoteSettings) -> Wire:
    """Choose the wire format; base64 only where its provider is known to have it."""
    packed = settings.base_url is None
    if name == "openai":
        from plainmind.guests.remote.openai import OpenAIWire

        return OpenAIWire(packed=packed)
    if name == "voyage":
        from plainmind.guests.remote.voyage import VoyageWire

        return VoyageWire(packed=packed)
    if name == "gemini":
        from plainmind.guests.remote.gemini import GeminiWire

        return GeminiWire()
    raise ConfigError(
        f"unknown remote embedding provider: `{name}`",
        key="provider",
        hint=f"use one of {', '.join(REMOTE_PROVIDERS)}",
    )
