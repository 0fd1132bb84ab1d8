"""Embedders of the loopback provider, made as the program makes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.support.providers.server import KEY, Provider

from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.embedder import RemoteEmbedder
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.wire import wire_for


def _no_pause(_: threading.Event, __: float) -> None:
    pass


def settings_for(provider: Provider, **changes: object) -> RemoteSettings:
    settings = RemoteSettings(
        base_url=provider.base_url, api_key=KEY, allow_private=True, query_timeout_s=60, batch_timeout_s=60
    )
    return replace(settings, **changes)  # type: ignore[arg-type]


@contextmanager
def embedder_of(
    provider: Provider,
    home: Path,
    *,
    pause: Callable[[threading.Event, float], object] = _no_pause,
    now: Callable[[], float] | None = None,
    **changes: object,
) -> Iterator[RemoteEmbedder]:
    """An embedder with its ledger in `home`; pauses between retries take no time unless asked for."""
    settings = settings_for(provider, **changes)
    path = str(home / "remote.sqlite")
    ledger = Ledger(path) if now is None else Ledger(path, now=now)
    made = RemoteEmbedder(wire_for(provider.dialect, settings), settings, ledger, pause=pause)
    try:
        yield made
    finally:
        made.close()
