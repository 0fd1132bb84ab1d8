"""Lines too long to keep whole, cut where a reader would pause."""

from __future__ import annotations

from collections.abc import Iterator

from plainmind.base.pattern import pattern
from plainmind.text.cjk import WIDE_WEIGHT, weight, wide_run

# In order of preference: after a sentence, after a clause, between words.
_PAUSES = (
    pattern(r"[.!?…][\"'”’)\]]*\s+|[。！？]+[”’」』）]*"),
    pattern(r"[,;:]\s+|[，、；：]"),
    pattern(r"\s+"),
)


def cut(line: str, limit: int) -> Iterator[str]:
    """Yield pieces of about equal weight, none over the limit, that give the line when joined."""
    whole = weight(line)
    pieces = -(-whole // limit)
    # A little more than an even share leaves room to look for a pause and avoids a tiny last piece.
    share = min(limit, whole * 6 // (pieces * 5) + WIDE_WEIGHT) if pieces > 1 else limit
    start = 0
    while start < len(line):
        end = _reach(line, start, share)
        if end < len(line):
            end = _pause(line, start, end)
        yield line[start:end]
        start = end


def _reach(line: str, start: int, limit: int) -> int:
    """Return where the longest piece from `start` within the limit ends."""
    window = line[start : start + limit]
    if window.isascii():
        return start + len(window)
    room, position = limit, 0
    for run in wide_run().finditer(window):
        room_for_run = room - (run.start() - position)
        fitting = max(0, room_for_run) // WIDE_WEIGHT
        if fitting < len(run[0]):
            return start + min(run.start(), position + room) + fitting
        room, position = room_for_run - len(run[0]) * WIDE_WEIGHT, run.end()
    return start + min(position + room, len(window))


def _pause(line: str, start: int, end: int) -> int:
    """Return the end of the last pause after the first third of the piece, or `end` when there is none."""
    earliest = start + (end - start) // 3
    for pause in _PAUSES:
        last = 0
        for found in pause.finditer(line, earliest, end):
            last = found.end()
        if last:
            return last
    return end
