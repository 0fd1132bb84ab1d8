"""The structure of a Markdown text by lines: what belongs together, and under which heading it stands."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plainmind.base.lazy import pattern
from plainmind.base.value import field, record
from plainmind.text.note_format import without_note_ids

_HEADING = pattern(r" {0,3}(#{1,6})(?:[ \t]|$)")
_UNDERLINE = pattern(r" {0,3}(={2,}|-{2,})[ \t]*$")
_FENCE = pattern(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_ITEM = pattern(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_FRONT_MATTER_ENDS = ("---", "...")
_LONGEST_TITLE = 80
_DRAWING = pattern(r"#{1,2} Drawing[ \t]*$")
_DRAWN = pattern(r"```(?:compressed-)?json[ \t]*$")
# Only lines that start with one of these need a closer look than "text".
_MARKERS = frozenset("#=-`~*+0123456789")


def without_drawing(lines: Sequence[str]) -> list[str]:
    """Empty the lines that draw, in a note that is a drawing; its words stand above them."""
    kept, is_drawing, is_drawn = [], False, False
    for line in lines:
        begins = is_drawing and not is_drawn and bool(_DRAWN.match(line))
        kept.append("" if begins or is_drawn else line)
        is_drawn = begins or (is_drawn and not line.startswith("```"))
        is_drawing = not is_drawn and (bool(_DRAWING.match(line)) or (is_drawing and not line.strip()))
    return kept


@record
class Block:
    """Lines `first` to `last` (0-based) that belong together; a heading has a level and a title."""

    first: int
    last: int
    level: int = 0
    title: str = ""
    indent: int = -1  # of a list item's marker; -1 when the block is none
    inner_items: list[int] = field(default_factory=list)  # lines on which nested list items start


def read_blocks(lines: Sequence[str]) -> list[Block]:
    """Divide the non-blank lines into headings, paragraphs (tables too), list items and code fences."""
    reader = _BlockReader(lines)
    for number in range(reader.skip_front_matter(), len(lines)):
        reader.read(number)
    return reader.blocks


class _BlockReader:
    """Reads line by line; `_open` is the block that the next line may still join."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.blocks: list[Block] = []
        self._lines = lines
        self._open: Block | None = None
        self._fence = ""
        self._after_blank = False

    def skip_front_matter(self) -> int:
        """Keep a front matter as one block; return the number of lines that it takes."""
        if not self._lines or self._lines[0].rstrip() != "---":
            return 0
        for number in range(1, len(self._lines)):
            if self._lines[number].rstrip() in _FRONT_MATTER_ENDS:
                self.blocks.append(Block(0, number))
                return number + 1
        return 0

    def read(self, number: int) -> None:
        line = self._lines[number]
        start = line.lstrip()[:1]
        if self._fence:
            self._read_inside_fence(number, line)
        elif not start:
            self._after_blank = True
            if self._open is not None and self._open.indent < 0:
                self._open = None
        else:
            if start not in _MARKERS or not self._read_marked(number, line):
                self._read_text(number, line)
            self._after_blank = False

    def _read_marked(self, number: int, line: str) -> bool:
        """Read a line that starts something by its first characters, or leave it to be text."""
        if heading := _HEADING.match(line):
            self._add_heading(Block(number, number, len(heading[1]), _title(line)))
        elif self._underlines(number, line):
            title = self.blocks.pop()
            level = 1 if line.lstrip().startswith("=") else 2
            self._add_heading(Block(title.first, number, level, _title(self._lines[title.first])))
        elif fence := _FENCE.match(line):
            self._fence = fence[1]
            if not self._continues_item(line):
                self._start(number)
            else:
                self._extend(number)
        elif _ITEM.match(line):
            self._read_item(number, line)
        else:
            return False
        return True

    def _underlines(self, number: int, line: str) -> bool:
        above = self._open
        is_one_line_of_text = above is not None and above.indent < 0 and above.first == number - 1
        return is_one_line_of_text and _UNDERLINE.match(line) is not None

    def _read_item(self, number: int, line: str) -> None:
        indent = _indent(line)
        if self._open is not None and 0 <= self._open.indent <= indent - 2:
            self._open.inner_items.append(number)
            self._extend(number)
        else:
            self._start(number, indent)

    def _read_text(self, number: int, line: str) -> None:
        if self._open is None or (self._after_blank and not self._continues_item(line)):
            self._start(number)
        else:
            self._extend(number)

    def _read_inside_fence(self, number: int, line: str) -> None:
        if line.strip():  # a blank line joins the block when another follows
            self._extend(number)
        found = _FENCE.match(line)
        if found and found[1].startswith(self._fence) and line.strip() == found[1]:
            self._fence = ""
            if self._open is not None and self._open.indent < 0:
                self._open = None

    def _continues_item(self, line: str) -> bool:
        return self._open is not None and self._open.indent >= 0 and _indent(line) > self._open.indent

    def _add_heading(self, heading: Block) -> None:
        self.blocks.append(heading)
        self._open = None

    def _start(self, number: int, indent: int = -1) -> None:
        self._open = Block(number, number, indent=indent)
        self.blocks.append(self._open)

    def _extend(self, number: int) -> None:
        self.blocks[-1].last = number


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _title(line: str) -> str:
    words = without_note_ids(line[:1000]).strip().lstrip("#").strip()
    if words.endswith("#"):
        words = re.sub(r"[ \t]+#+$", "", words)
    return words if len(words) <= _LONGEST_TITLE else words[: _LONGEST_TITLE - 1].rstrip() + "…"
