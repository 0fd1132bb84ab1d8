"""Secrets in a column that its heading names: in Markdown, with commas or tabs between, or set apart by spaces."""

from __future__ import annotations

from collections.abc import Callable, Generator

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_LONGEST_HEADING = 1_000
_MOST_CELLS = 40
_LONGEST_NAME = 40
_MOST_ROWS = 100_000
_CELL_OF_SPACES = pattern(r"(?:[^ \t\r\n]|[ ](?![ \t]))++")
_CELLS = {sign: pattern(f"[^{sign}\\r\\n]*+") for sign in "|\t;,"}
_RULE = pattern(r"[\s|:+=-]{3,}+")
_AROUND = " \t\"'`*_"


def is_heading(low: str, start: int, end: int) -> bool:
    """Whether the name of a secret may be the heading of a column, looking at what stands on both sides of it."""
    if not _ENDS_CELL.match(low, end):
        return False
    before = low[max(0, start - _LONGEST_BEFORE) : start]
    begins = max(before.rfind(sign) + len(sign) if sign in before else -1 for sign in _BEGIN_CELL)
    if begins < 0 and len(before) < start:
        return False
    words = before[max(begins, 0) :].lstrip(_AROUND_NAME).split()
    return len(words) <= _MOST_WORDS and all(len(word) <= _LONGEST_WORD for word in words)


_ENDS_CELL = pattern(r"""["'`*)_]{0,3}[ ]{0,24}:?[*]{0,2}(?:[|,;\t\r\n]|(?<=  )\S)""")
_BEGIN_CELL = ("\n", "|", ",", ";", "\t", "  ")
_AROUND_NAME = " \"'`*(_"
_LONGEST_BEFORE, _MOST_WORDS, _LONGEST_WORD = 88, 4, 20


def cells_under(
    text: str, at: int, is_secret: Callable[[str], bool], kind: str
) -> Generator[Found, None, bool]:
    """Report what stands below a heading and is a secret; the table ends where a row has another number of cells.

    Say in the end whether it may go on behind the text.
    """
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    if end < 0 or end - start > _LONGEST_HEADING:
        return False
    for cell_of in (*_CELLS.values(), _CELL_OF_SPACES):
        heading = [cell for cell in cell_of.finditer(text, start, end) if cell[0]]
        if 1 < len(heading) <= _MOST_CELLS:
            number = next(
                (place for place, cell in enumerate(heading) if cell.start() <= at < cell.end()), -1
            )
            if number >= 0 and len(heading[number][0].strip(_AROUND)) <= _LONGEST_NAME:
                column = _Column(cell_of, len(heading), number, heading[number][0].strip(_AROUND).lower())
                return (yield from _secrets_of(column, text, end + 1, is_secret, kind))
            return False
    return False


# `Passwords:` and then `root: …`, `nas - …`.
_ENTRY = pattern(
    r"[ \t]*+(?:[-*•] )?([^\s:=|][^:=|\r\n]{0,40}?)[ \t]{0,4}(?:[:=]|[–—-](?= ))[ \t]{0,4}([^\s]{4,200}+)[ \t\r]*+"
)
_MOST_ENTRIES = 1_000
_NOTHING_ELSE = pattern(r"[\w ]{0,24}[*_:：\s]{0,6}")


def lines_under(
    text: str, at: int, is_secret: Callable[[str], bool], kind: str
) -> Generator[Found, None, bool]:
    """Report what a list below a heading gives as secrets, line by line; it ends where a line is of another form.

    Say in the end whether it may go on behind the text.
    """
    end = text.find("\n", at)
    start = text.rfind("\n", 0, at) + 1
    is_field = ":" in text[start:at] or "=" in text[start:at]
    if end < 0 or is_field or end - start > _LONGEST_NAME or not _NOTHING_ELSE.fullmatch(text, at, end):
        return False
    for _ in range(_MOST_ENTRIES):
        entry = _ENTRY.match(text, end + 1)
        if entry is None or text[entry.end() : entry.end() + 1] not in ("", "\n"):
            return text.find("\n", end + 1) < 0  # it may be cut off
        given = entry[2].rstrip(".,;").strip("`\"'")
        if is_secret(given):
            first = entry.start(2) + entry[2].index(given)
            yield first, first + len(given), kind
        end = entry.end()
    return False


@value
class _Column:
    """Where the cells of a column are: how cells are told, how many a row has, and which of them it is."""

    cell_of: re.Pattern[str]
    count: int
    number: int
    heading: str


def _secrets_of(
    column: _Column, text: str, start: int, is_secret: Callable[[str], bool], kind: str
) -> Generator[Found, None, bool]:
    for _ in range(_MOST_ROWS):
        end = text.find("\n", start)
        is_last = end < 0
        end = len(text) if is_last else end
        if end - start > _LONGEST_HEADING or start >= len(text):
            return start >= len(text)
        if not _RULE.fullmatch(text, start, end):
            row = [cell for cell in column.cell_of.finditer(text, start, end) if cell[0]]
            if len(row) != column.count:
                return is_last  # it may be cut off
            cell = row[column.number]
            given = cell[0].strip(_AROUND + "\r")
            if given.lower() == column.heading:
                return False  # another table begins
            if is_secret(given):
                first = cell.start() + cell[0].index(given)
                yield first, first + len(given), kind
        start = end + 1
    return False
