"""What a conversation has cost so far, counted from its transcript.

The registry is not rewritten for every message: it holds the counters as of some place in the transcript, and that
place (`plainmind.countedTo`). A reader counts on from there; compacting, resetting, updating and closing
write the result down. So a counter can be old in the file, but never wrong, doubled or lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from plainmind.sessions.entries import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COUNTERS = ("inputTokens", "outputTokens", "totalTokens", "compactionCount")
_MARK = "plainmind"
_INPUT = ("input", "inputTokens", "input_tokens")
_OUTPUT = ("output", "outputTokens", "output_tokens")
_TOTAL = ("totalTokens", "total_tokens")
_CACHED = ("cacheRead", "cacheWrite")


def place_of_count(entry: Entry) -> int | None:
    """Up to which place the counters are counted; None when another program keeps them."""
    mark = entry.get(_MARK)
    found = mark.get("countedTo") if isinstance(mark, dict) else None
    return found if isinstance(found, int) and found >= 0 else None


def with_place_of_count(entry: Entry, place: int) -> Entry:
    """Note up to which place the counters are counted."""
    mark = entry.get(_MARK)
    return {**entry, _MARK: {**(mark if isinstance(mark, dict) else {}), "countedTo": place}}


def count_on(entry: Entry, lines: Iterable[Entry]) -> Entry:
    """Count on: sums of what went in and out, and how full the context was at the last answer (`totalTokens`)."""
    counters = {name: _number(entry.get(name)) for name in COUNTERS}
    for line in lines:
        kind = line.get("type")
        if kind == "message":
            _count_message(counters, line.get("message"))
        elif kind == "compaction":
            counters["compactionCount"] += 1
            counters["totalTokens"] = _number(line.get("tokensAfter"))
        elif kind == "reset":
            counters["totalTokens"] = 0
    return entry | {name: count for name, count in counters.items() if count or name in entry}


def may_count(line: bytes) -> bool:
    """Whether a line could change a counter: most cannot, and need not be decoded."""
    return b'"usage"' in line or b'"compaction"' in line or b'"reset"' in line


def _count_message(counters: dict[str, int], message: Any) -> None:
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(usage, dict):
        return
    read, written = _first(usage, _INPUT), _first(usage, _OUTPUT)
    counters["inputTokens"] += read
    counters["outputTokens"] += written
    cached = sum(_number(usage.get(name)) for name in _CACHED)
    counters["totalTokens"] = _first(usage, _TOTAL) or read + written + cached


def _first(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    return next((_number(usage[name]) for name in names if name in usage), 0)


def _number(found: object) -> int:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return 0
    return int(found) if 0 <= found < 1e15 else 0
