"""What a user can set about embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.local.hub import Fetched

AUTO = "auto"
# The environment variables that hold a provider's key, in the order in which `auto` looks for them.
KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "voyage": ("VOYAGE_API_KEY",),
}


@value
class CacheSettings:
    """How many vectors of remote and local models are remembered."""

    enabled: bool = True
    max_entries: int = 50_000
    max_bytes: int = 512 * 1024 * 1024


@value
class EmbeddingSettings:
    """Who turns text into vectors. `model` None means the provider's own default."""

    provider: str = AUTO
    model: str | None = None
    fallback: str = "none"  # takes over only when the provider fails
    cache: CacheSettings = CacheSettings()
    model_cache_dir: str | None = None  # where models of this machine are kept once they are downloaded
    downloading: Callable[[Fetched], None] | None = None  # hears how far a download is
