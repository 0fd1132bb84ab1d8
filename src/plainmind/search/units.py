"""Texts taken apart into the smallest things a snippet can show: lines, and pieces of very long lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat

from plainmind.base.model import Chunk
from plainmind.base.pattern import pattern
from plainmind.text.lines import split_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Where a unit stands in its file: the line that it is cited by, and which piece of that line it is.
Place: TypeAlias = "tuple[int, int]"

# Long enough for a few sentences, short enough that two of them and a half fit a 700-character snippet.
PIECE_CHARS = 280
SENTENCE_END = pattern(r"[.!?。！？…]['\")\]”’」』）]*\s*|[;；]\s+|\n")
# More than any line has: keeps pieces of one line that come from different chunks apart, and in order.
PIECES_OF_CHUNK = 10_000


def is_one_line(chunk: Chunk) -> bool:
    """Whether one cited line stands for all of a chunk: perhaps a piece of an overlong line, or of a message."""
    return chunk.start_line == chunk.end_line


def units_of(text: str, *, one_line: bool) -> list[str]:
    """Take a text apart, in reading order."""
    lines = [text] if one_line else split_lines(text)
    if not _has_cut(lines):
        return lines
    return [piece for line in lines for piece in _cut(line)]


def places_of(chunk: Chunk, units: Sequence[str]) -> list[Place]:
    """Where each unit of a chunk stands."""
    start = chunk.start_line
    if is_one_line(chunk):
        first_piece = chunk.ordinal * PIECES_OF_CHUNK
        return [(start, first_piece + number) for number in range(len(units))]
    if has_lines(chunk.text, len(units)):  # then none was cut
        return list(zip(range(start, start + len(units)), repeat(0)))
    lines = split_lines(chunk.text)
    return [(line, number) for line, text in enumerate(lines, start) for number in range(len(_cut(text)))]


# Good chunks are read again and again, and cutting is most of the reading. A line is no longer than a chunk.
@lru_cache(maxsize=1024)
def _cut(line: str) -> tuple[str, ...]:
    return tuple(pieces(line))


def has_lines(text: str, count: int) -> bool:
    """Whether a text has so many lines, divided by nothing but line feeds; found out without splitting it."""
    return text.count("\n") + 1 == count and not text.endswith("\n") and "\r" not in text


def _has_cut(lines: Sequence[str]) -> bool:
    return max(map(len, lines), default=0) > 2 * PIECE_CHARS


def pieces(text: str, limit: int = PIECE_CHARS) -> Iterator[str]:
    """Cut a long text after sentences, or words, or anywhere; the pieces joined are the text."""
    if len(text) <= 2 * limit:
        yield text
        return
    start = 0
    while len(text) - start > limit:
        cut = _last_end(SENTENCE_END, text, start + limit // 3, start + limit)
        if cut is None:
            space = text.rfind(" ", start + limit // 3, start + limit)
            cut = space + 1 if space >= 0 else start + limit
        yield text[start:cut]
        start = cut
    yield text[start:]


def _last_end(ends: re.Pattern[str], text: str, first: int, last: int) -> int | None:
    """Where the last match inside a window ends."""
    end = None
    for match in ends.finditer(text, first, last):
        end = match.end()
    return end
