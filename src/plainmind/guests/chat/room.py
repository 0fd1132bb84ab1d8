"""When a context has become so full that something has to be done about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class RoomSettings:
    """How full a context may become."""

    context_window: int
    reserve_tokens_floor: int = 20_000
    soft_threshold_tokens: int = 4_000
    flush_enabled: bool = True

    @property
    def compacts_above(self) -> int:
        """Tokens that may be used before the context is compacted; of a window below the reserve, half of it."""
        room = self.context_window - self.reserve_tokens_floor
        return room if room > 0 else self.context_window // 2

    @property
    def flushes_above(self) -> int:
        """Tokens that may be used before what lasts is saved."""
        room = self.context_window - self.reserve_tokens_floor - self.soft_threshold_tokens
        return room if room > 0 else max(1, self.compacts_above * 9 // 10)


def flush_due(entry: Mapping[str, Any], settings: RoomSettings, *, is_writable: bool) -> bool:
    """Whether what lasts should be saved now: once in a compaction cycle, before the context is compacted.

    What has failed is tried once more: when the context is about to be compacted.
    """
    if not settings.flush_enabled or not is_writable or is_flushed(entry):
        return False
    if _has_failed(entry):
        return compaction_due(entry, settings)
    return _count(entry, "totalTokens") > settings.flushes_above


def compaction_due(entry: Mapping[str, Any], settings: RoomSettings) -> bool:
    """Whether the context has to be compacted now."""
    return _count(entry, "totalTokens") > settings.compacts_above


def is_flushed(entry: Mapping[str, Any]) -> bool:
    """Whether the flush of this compaction cycle is done."""
    flushed = entry.get("memoryFlushCompactionCount")
    return isinstance(flushed, int) and flushed == _count(entry, "compactionCount")


def _has_failed(entry: Mapping[str, Any]) -> bool:
    failure = entry.get("memoryFlushFailure")
    return isinstance(failure, dict) and failure.get("compactionCount") == _count(entry, "compactionCount")


def _count(entry: Mapping[str, Any], name: str) -> int:
    found = entry.get(name)
    return int(found) if isinstance(found, int | float) and not isinstance(found, bool) else 0
