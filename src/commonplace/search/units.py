"""Chunks taken apart into the smallest things a snippet can show: lines, and pieces of very long lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from commonplace.model import Chunk
from commonplace.text.lines import split_lines
from commonplace.text.terms import document_terms

# Long enough for a few sentences, short enough that two of them and a half fit a 700-character snippet.
PIECE_CHARS = 280
SENTENCE_END = re.compile(r"[.!?。！？…]['\")\]”’」』）]*\s*|[;；]\s+|\n")


@dataclass(frozen=True, slots=True)
class Unit:
    """One line, or one piece of a line too long to show whole. Pieces of a line join without a separator."""

    line: int
    piece: int  # 0, 1, 2 … within the line, across the chunks that share it
    text: str


@lru_cache(maxsize=2048)
def read(chunk: Chunk) -> tuple[tuple[Unit, ...], tuple[Mapping[str, int], ...]]:
    """Take a chunk apart and count the terms of each unit; kept, because good chunks are read again and again."""
    units = tuple(units_of(chunk))
    return units, tuple(Counter(document_terms(unit.text)) for unit in units)


def units_of(chunk: Chunk) -> list[Unit]:
    """Take a chunk apart, in reading order."""
    lines = split_lines(chunk.text)
    if chunk.start_line == chunk.end_line:
        # Perhaps a piece of an overlong line, or of a message: one cited line for all of it. The ordinal keeps pieces
        # of the same line that come from different chunks apart, and in order.
        return [
            Unit(chunk.start_line, chunk.ordinal * 10_000 + number, piece)
            for number, piece in enumerate(pieces(chunk.text))
        ]
    return [
        Unit(line, number, piece)
        for line, text in enumerate(lines, chunk.start_line)
        for number, piece in enumerate(pieces(text))
    ]


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


def _last_end(pattern: re.Pattern[str], text: str, first: int, last: int) -> int | None:
    """Where the last match inside a window ends."""
    end = None
    for match in pattern.finditer(text, first, last):
        end = match.end()
    return end
