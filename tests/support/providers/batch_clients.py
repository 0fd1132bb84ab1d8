"""Batch jobs of the loopback provider, made as the program makes them, in a home folder that outlives processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.providers.server import KEY

from plainmind.base.model import Vector, sha256_text
from plainmind.embed.cache import SqliteEmbeddingCache
from plainmind.embed.protocol import EmbeddingCache
from plainmind.guests.net.transport import Transport
from plainmind.guests.remote.batch_jobs import BatchJobs
from plainmind.guests.remote.config import BatchConfig, RemoteSettings
from plainmind.guests.remote.embedder import RemoteEmbedder
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.wire import wire_for

DIMS = 64
TEXTS = [f"note {number} about the gateway and its {number * 7} backups" for number in range(20)]


@dataclass
class Clock:
    """Time that passes only while somebody sleeps."""

    at: float = 1_000_000_000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


@dataclass
class Client:
    """Everything of one process that has to do with one provider."""

    jobs: BatchJobs
    embedder: RemoteEmbedder
    ledger: Ledger
    cache: EmbeddingCache

    def cached(self, texts: Sequence[str]) -> dict[str, Vector]:
        """What the cache holds, by text."""
        found = self.cache.lookup(self.embedder.identity, [sha256_text(text) for text in texts])
        return {text: found[sha256_text(text)] for text in texts if sha256_text(text) in found}

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Let jobs work on texts; what the cache holds of them then, in their order."""
        self.jobs.prepare(texts)
        found = self.cached(texts)
        return [found.get(text) for text in texts]


def settings_for(base_url: str, **changes: Any) -> RemoteSettings:
    settings = RemoteSettings(
        base_url=base_url,
        api_key=KEY,
        allow_private=True,
        model=changes.pop("model", None),
        dims=DIMS,
        batch=BatchConfig(**{"enabled": True, **changes.pop("batch", {})}),
        batch_timeout_s=60,
        query_timeout_s=60,
    )
    return replace(settings, **changes)


@contextmanager
def client_of(
    dialect: str,
    base_url: str,
    home: Path,
    *,
    clock: Clock | None = None,
    cache: EmbeddingCache | None = None,
    fewest: int = 1,
    settle_s: float = 1.0,
    max_items: int | None = None,
    **changes: Any,
) -> Iterator[Client]:
    settings = settings_for(base_url, **changes)
    wire = wire_for(dialect, settings)
    ledger = Ledger(str(home / "remote.sqlite"), **({"now": clock.now} if clock else {}))
    cache = cache or SqliteEmbeddingCache(str(home / "cache.sqlite"))
    headers = wire.headers(settings.api_key or "")
    transport = Transport(base_url, settings="remote", headers=headers, secrets=[KEY], allow_private=True)
    embedder = RemoteEmbedder(wire, settings, ledger)
    jobs = BatchJobs(
        wire,
        transport,
        ledger,
        settings,
        cache=cache,
        identity=lambda: embedder.identity,
        folder=str(home),
        fewest=fewest,
        settle_s=settle_s,
        **({"clock": clock.now, "sleep": clock.sleep} if clock else {}),
    )
    if max_items is not None:
        jobs._steps.endpoint.max_items = max_items
    try:
        yield Client(jobs, embedder, ledger, cache)
    finally:
        jobs.close()
        transport.close()
        embedder.close()
        cache.close()
