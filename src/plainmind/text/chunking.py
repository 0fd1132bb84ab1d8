"""Text cut into passages: small enough to embed, whole enough to understand, with exact line numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from plainmind.base.lazy import pattern
from plainmind.base.model import Passage, split_lines
from plainmind.base.value import value
from plainmind.text.markdown import Block, read_blocks
from plainmind.text.terms import WIDE_RUN, WIDE_WEIGHT, weight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias


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
    for run in WIDE_RUN.finditer(window):
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


Strategy: TypeAlias = "Literal['markdown', 'lines']"

_CHARACTERS_PER_TOKEN = 4
_SMALLEST_LIMIT = 32
BREADCRUMB = " › "
_MANY = 1_000  # headings of a text
_TINY = 32  # characters for each of them


def chunk(text: str, *, strategy: Strategy, tokens: int, overlap: int) -> list[Passage]:
    """Cut by the configured strategy. The `markdown` strategy has no overlap: headings give its context."""
    return chunk_lines(text, tokens, overlap) if strategy == "lines" else chunk_markdown(text, tokens)


def chunk_lines(text: str, tokens: int = 400, overlap: int = 80) -> list[Passage]:
    """Fill passages line by line and repeat the last few lines at the start of the next one.

    What is repeated stays within `overlap` tokens and half a passage: a long line is not indexed twice.
    """
    limit = _limit(tokens)
    overlap_budget = min(max(0, overlap * _CHARACTERS_PER_TOKEN), limit // 2)
    passages: list[Passage] = []
    kept: list[_Piece] = []
    used = 0
    for piece in _pieces(text, limit):
        if kept and used + piece.size > limit:
            passages.extend(_passage(kept))
            kept = _carry_over(kept, min(overlap_budget, limit - piece.size))
            used = sum(carried.size for carried in kept)
        kept.append(piece)
        used += piece.size
    passages.extend(_passage(kept))
    return passages


def chunk_markdown(text: str, tokens: int = 200) -> list[Passage]:
    """Pack paragraphs, list items, tables and code blocks of one section, and split only what is too long.

    A heading always starts a passage, unless there are thousands with next to nothing below them; `context` is the path
    of headings down to it.
    """
    lines, limit = split_lines(text), _limit(tokens)
    blocks = read_blocks(lines)
    headings = sum(block.level > 0 for block in blocks)
    # Where there is hardly more than headings, a passage for each would cost a hundred times what the text does.
    is_hardly_more = headings > _MANY and headings * _TINY > len(text)
    packer = _Packer(lines, limit, least=min(4 * _TINY, limit // 2) if is_hardly_more else 0)
    for block in blocks:
        if block.level:
            packer.open_section(block)
        else:
            packer.add(block.first, block.last, block.inner_items)
    packer.close_passage()
    return packer.passages


def _limit(tokens: int) -> int:
    return max(_SMALLEST_LIMIT, tokens * _CHARACTERS_PER_TOKEN)


@value
class _Piece:
    line: int  # 1-based
    text: str
    size: int  # weight, and one for the line break


def _pieces(text: str, limit: int) -> Iterator[_Piece]:
    for number, line in enumerate(split_lines(text), start=1):
        size = weight(line) + 1
        if size <= limit + 1:
            yield _Piece(number, line, size)
        else:
            for segment in cut(line, limit):
                yield _Piece(number, segment, weight(segment) + 1)


def _passage(pieces: Sequence[_Piece]) -> Iterator[Passage]:
    text, line = "", 0
    for piece in pieces:
        # Two pieces of one long line are joined as they were: no line break stood between them.
        text += "\n" + piece.text if line not in {0, piece.line} else piece.text
        line = piece.line
    if text.strip():
        yield Passage(pieces[0].line, pieces[-1].line, text)


def _carry_over(pieces: Sequence[_Piece], budget: int) -> list[_Piece]:
    """Return the last pieces that the budget allows; it is always smaller than all of them together."""
    first = len(pieces)
    while pieces[first - 1].size <= budget:
        first -= 1
        budget -= pieces[first].size
    return list(pieces[first:])


class _Packer:
    """Fills one passage at a time: lines `_first` to `_last` (0-based), none when `_first` is negative."""

    def __init__(self, lines: Sequence[str], limit: int, *, least: int) -> None:
        """Sections that are smaller than `least` go together."""
        self.passages: list[Passage] = []
        self._lines = lines
        self._limit = limit
        self._least = least
        self._size_before = list(accumulate((weight(line) + 1 for line in lines), initial=0))
        self._headings: list[Block] = []
        self._first = self._last = -1
        self._holds_only_headings = False

    def open_section(self, heading: Block) -> None:
        """Start a passage at a heading; one that follows its parent directly stays with it."""
        is_first_child = self._holds_only_headings and heading.level > self._headings[-1].level
        has_room = self._first >= 0 and self._size(self._first, self._last) < self._least
        if not (is_first_child or has_room) or self._size(self._first, heading.last) > self._limit:
            self.close_passage()
        holds_only_headings = self._first < 0 or self._holds_only_headings
        while self._headings and self._headings[-1].level >= heading.level:
            self._headings.pop()
        self._headings.append(heading)
        self.add(heading.first, heading.last)
        self._holds_only_headings = holds_only_headings and self._first >= 0

    def add(self, first: int, last: int, inner_starts: Sequence[int] = ()) -> None:
        """Add lines that belong together, in parts when they fit no passage."""
        fits_alone = self._size(first, last) <= self._limit
        if self._first >= 0 and self._size(self._first, last) <= self._limit:
            self._last, self._holds_only_headings = last, False
        elif fits_alone and (first == last or not self._holds_only_headings):
            self.close_passage()
            self._first, self._last = first, last
        elif first == last:
            self._cut(first)
        else:
            starts = [first, *inner_starts] if inner_starts else range(first, last + 1)
            for start, following in pairwise([*starts, last + 1]):
                self._add_part(start, following - 1)

    def close_passage(self) -> None:
        if self._first >= 0:
            lines = self._lines[self._first : self._last + 1]
            self._emit(self._first, self._last, "\n".join(lines))
            self._first = -1
            self._holds_only_headings = False

    def _add_part(self, first: int, last: int) -> None:
        while last >= first and not self._lines[last].strip():
            last -= 1
        if last >= first:
            self.add(first, last)

    def _cut(self, line: int) -> None:
        """Make passages of one long line; the headings right above it go with its first piece."""
        first, headings, room = line, "", self._limit
        if self._holds_only_headings and self._size(self._first, line - 1) < self._limit // 2:
            first, room = self._first, self._limit - self._size(self._first, line - 1) - 1
            headings = "\n".join([*self._lines[first:line], ""])
            self._first, self._holds_only_headings = -1, False
        self.close_passage()
        for piece in cut(self._lines[line], room):
            self._emit(first, line, headings + piece)
            first, headings = line, ""

    def _emit(self, first: int, last: int, text: str) -> None:
        if text.strip():
            context = BREADCRUMB.join(heading.title for heading in self._headings if heading.title)
            self.passages.append(Passage(first + 1, last + 1, text, context))

    def _size(self, first: int, last: int) -> int:
        return self._size_before[last + 1] - self._size_before[first] - 1


def estimated_tokens(text: str) -> int:
    """Guess the tokens of a text: some four letters each, but one for each character of most other scripts."""
    narrow = sum(1 for char in text if char < "\u0250") if not text.isascii() else len(text)
    return narrow // 4 + (len(text) - narrow) + 1
