"""The cache of embeddings as a person looks at it: what it holds, and making it smaller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plainmind.base.value import value
from plainmind.embed.cache import Held, SqliteEmbeddingCache
from plainmind.memory.status import bytes_under
from plainmind.memory.translation import CacheValues


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


def cache_stats(values: CacheValues, *, is_used: bool) -> CacheStats:
    """Look at the cache of an agent; `is_used` by the provider that is chosen now."""
    with open_cache(values) as cache:
        held = tuple(cache.contents())
    return CacheStats(
        values.path,
        is_used=is_used,
        held=held,
        file_bytes=bytes_under(values.path) + bytes_under(values.path + "-wal"),
        max_entries=values.max_entries,
        max_bytes=values.max_bytes,
    )


@contextmanager
def open_cache(values: CacheValues) -> Iterator[SqliteEmbeddingCache]:
    """Open the cache, which is there even where the provider of today does not use it."""
    cache = SqliteEmbeddingCache(values.path, max_entries=values.max_entries, max_bytes=values.max_bytes)
    try:
        yield cache
    finally:
        cache.close()
