"""What a user can set about embeddings."""

from __future__ import annotations

from dataclasses import dataclass

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """How many vectors of remote and local models are remembered."""

    enabled: bool = True
    max_entries: int = 50_000
    max_bytes: int = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """Who turns text into vectors. `model` None means the provider's own default."""

    provider: str = AUTO
    model: str | None = None
    fallback: str = "none"  # takes over only when the provider fails
    cache: CacheSettings = CacheSettings()
