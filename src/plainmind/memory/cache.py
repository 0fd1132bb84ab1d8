"""The cache of embeddings as a person looks at it: what it holds, and making it smaller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plainmind.base.value import value
from plainmind.embed.cache import Held, Pruned, SqliteEmbeddingCache
from plainmind.memory.sizes import bytes_under
from plainmind.memory.wiring import Parts


@value
class CacheStats:
    """What the cache holds, by who made it, and how much it may hold."""

    path: str
    is_used: bool  # by the provider that is chosen now
    held: tuple[Held, ...]
    file_bytes: int
    max_entries: int
    max_bytes: int

    @property
    def entries(self) -> int:
        """How many vectors there are."""
        return sum(held.entries for held in self.held)

    @property
    def bytes(self) -> int:
        """How much the vectors take by themselves."""
        return sum(held.bytes for held in self.held)


def cache_stats(parts: Parts) -> CacheStats:
    """Look at the cache of this agent; it is shared by all its workspaces."""
    settings, path = parts.loaded.settings.cache, parts.places.cache
    with opened_cache(parts) as cache:
        held = tuple(cache.contents())
    return CacheStats(
        path,
        is_used=parts.cache is not None,
        held=held,
        file_bytes=bytes_under(path) + bytes_under(path + "-wal"),
        max_entries=settings.max_entries,
        max_bytes=settings.max_bytes,
    )


def prune_cache(
    parts: Parts,
    *,
    unused_days: float | None = None,
    provider: str | None = None,
    max_entries: int | None = None,
    max_bytes: int | None = None,
) -> Pruned:
    """Drop vectors that were not used for so many days, those of a provider, and the oldest beyond the bounds."""
    since = None if unused_days is None else int((parts.now().timestamp() - unused_days * 86_400) * 1e9)
    with opened_cache(parts) as cache:
        return cache.prune(
            unused_since_ns=since, provider=provider, max_entries=max_entries, max_bytes=max_bytes
        )


@contextmanager
def opened_cache(parts: Parts) -> Iterator[SqliteEmbeddingCache]:
    """Open the cache, which is there even where the provider of today does not use it."""
    settings = parts.loaded.settings.cache
    cache = SqliteEmbeddingCache(
        parts.places.cache, max_entries=settings.max_entries, max_bytes=settings.max_bytes
    )
    try:
        yield cache
    finally:
        cache.close()
