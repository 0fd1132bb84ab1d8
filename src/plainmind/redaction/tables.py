"""Secrets in a column that its heading names: in Markdown, with commas or tabs between, or set apart by spaces."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from plainmind.redaction.page import Page

_LONGEST_HEADING = _LONGEST_ROW = 1_000
_MOST_CELLS = 40
_LONGEST_NAME = 40
_CELL_OF_SPACES = pattern(r"(?:[^ \t\r\n]|[ ](?![ \t]))++")
_CELLS = {pattern(f"[^{sign}\\r\\n]*+"): sign for sign in "|\t;,"}
_BETWEEN_CELLS = {**_CELLS, _CELL_OF_SPACES: "\t"}
_SIGNS_BETWEEN = {cell_of: (sign, "\r") for cell_of, sign in _CELLS.items()} | {_CELL_OF_SPACES: ("\t", "  ", "\r")}
# Bytes that are neither the end of a row nor of a cell.
_WITHIN_CELLS = {sign: bytes(set(range(256)) - {*f"\n{sign}".encode()}) for sign in "|\t;,"}
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


def cells_under(page: Page, at: int, is_secret: Callable[[str], bool], kind: str) -> Iterator[Found]:
    """Report what stands below a heading and is a secret; the table ends where a row has another number of cells.

    A table within a table has the same rows: each is read once for the same column and the same sort of secret.
    """
    text = page.text
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    if end < 0 or end - start > _LONGEST_HEADING:
        return
    line = text[start:end].rstrip("\r")
    for cell_of, signs in _SIGNS_BETWEEN.items():
        if not any(sign in line for sign in signs):
            continue
        heading = [cell for cell in cell_of.finditer(text, start, end) if cell[0]]
        if 1 < len(heading) <= _MOST_CELLS:
            number = next(
                (place for place, cell in enumerate(heading) if cell.start() <= at < cell.end()), -1
            )
            if number >= 0 and len(heading[number][0].strip(_AROUND)) <= _LONGEST_NAME:
                column = _Column(cell_of, len(heading), number, heading[number][0].strip(_AROUND).lower())
                known = (cell_of, len(heading), number, is_secret, kind)
                start = max(end + 1, page.rows_read.get(known, 0))
                page.rows_read[known] = yield from _secrets_of(column, page, (at, start), is_secret, kind)
            return


# `Passwords:` and then `root: …`, `nas - …`.
_ENTRY = pattern(
    r"[ \t]*+(?:[-*•] )?([^\s:=|][^:=|\r\n]{0,40}?)[ \t]{0,4}(?:[:=]|[–—-](?= ))[ \t]{0,4}([^\s]{4,200}+)[ \t\r]*+"
)
_NOTHING_ELSE = pattern(r"[\w ]{0,24}[*_:：\s]{0,6}")


def lines_under(page: Page, at: int, is_secret: Callable[[str], bool], kind: str) -> Iterator[Found]:
    """Report what a list below a heading gives as secrets, line by line; it ends where a line is of another form."""
    text = page.text
    end = text.find("\n", at)
    start = text.rfind("\n", 0, at) + 1
    is_field = ":" in text[start:at] or "=" in text[start:at]
    if end < 0 or is_field or end - start > _LONGEST_NAME or not _NOTHING_ELSE.fullmatch(text, at, end):
        return
    known = (_ENTRY, 0, 0, is_secret, kind)
    end = max(end, page.rows_read.get(known, 0))
    while True:
        entry = _ENTRY.match(text, end + 1)
        if entry is None or text[entry.end() : entry.end() + 1] not in ("", "\n"):
            page.note_open(at, goes_on=text.find("\n", end + 1) < 0)  # it may be cut off
            page.rows_read[known] = end
            return
        given = entry[2].rstrip(".,;").strip("`\"'")
        if is_secret(given):
            first = entry.start(2) + entry[2].index(given)
            yield first, first + len(given), kind
        end = entry.end()


@value
class _Column:
    """Where the cells of a column are: how cells are told, how many a row has, and which of them it is."""

    cell_of: re.Pattern[str]
    count: int
    number: int
    heading: str


def _secrets_of(
    column: _Column, page: Page, below: tuple[int, int], is_secret: Callable[[str], bool], kind: str
) -> Generator[Found, None, int]:
    """Report the secrets of a column, and say in the end up to where its rows were read."""
    text = page.text
    heading, start = below
    cell_of, sign = column.cell_of, _CELLS.get(column.cell_of, "")
    while True:
        start = _behind_harmless_rows(column, page, start, is_secret)
        end = text.find("\n", start)
        is_last = end < 0
        end = len(text) if is_last else end
        if end - start > _LONGEST_ROW or start >= len(text):
            page.note_open(heading, goes_on=start >= len(text))
            return start
        if not _RULE.fullmatch(text, start, end):
            row = _cells_between(sign, text[start:end]) if sign else cell_of.findall(text, start, end)
            if len(row) != column.count:
                page.note_open(heading, goes_on=is_last)  # it may be cut off
                return start
            given = row[column.number].strip(_AROUND + "\r")
            if given.lower() == column.heading:
                return start  # another table begins
            if is_secret(given):
                cells = [cell for cell in cell_of.finditer(text, start, end) if cell[0]]
                first = text.index(given, cells[column.number].start())
                yield first, first + len(given), kind
        start = end + 1


def _behind_harmless_rows(
    column: _Column, page: Page, start: int, is_secret: Callable[[str], bool]
) -> int:
    """Say where the rows end, from this place on, that belong to a table and have no secret in a column.

    Dozens of them are taken apart at once, which takes as long as two or three of them one by one.
    """
    text = page.text
    sign = _BETWEEN_CELLS[column.cell_of]
    a_row = sign.encode() * (column.count - 1) + b"\n"
    harmless = page.allowance.harmless.setdefault(is_secret, set())
    while True:
        # No row is too long where all of them together are not.
        end = text.find("\n\n", start, start + _LONGEST_ROW) + 1 or (
            text.rfind("\n", start, start + _LONGEST_ROW) + 1
        )
        rows = text[start:end]
        plain = _with_one_sign_between(rows, sign, is_of_spaces=column.cell_of is _CELL_OF_SPACES)
        shape = plain.encode("latin-1", "replace").translate(None, _WITHIN_CELLS[sign])
        count = _how_often(a_row, shape)
        if not count:
            return start
        cells = plain.replace("\n", sign).split(sign, count * column.count)[column.number :: column.count]
        del cells[count:]
        unknown = set(cells).difference(harmless)
        is_next_heading = column.heading in rows.lower()
        if unknown or is_next_heading:
            dubious = set()
            for cell in unknown:
                if is_secret(cell.strip(_AROUND)):
                    dubious.add(cell)
            if len(harmless) < _MOST_HARMLESS:
                harmless |= unknown - dubious
            if is_next_heading:
                dubious.update(cell for cell in set(cells) if cell.strip(_AROUND).lower() == column.heading)
            if dubious:
                count = min(map(cells.index, dubious))
        if count * len(a_row) == len(shape):
            start = end
            continue
        return start + len(rows) - len(rows.split("\n", count)[count])


_MOST_HARMLESS = 4_096


def _with_one_sign_between(rows: str, sign: str, *, is_of_spaces: bool) -> str:
    """Write rows with one sign between two cells and none around a row; nothing if that cannot be told."""
    if is_of_spaces:
        if " \n" in rows or " \r" in rows:
            return ""  # what ends a line may be a cell
        rows = rows.replace("  ", sign)
    rows = f"\n{rows}".replace("\r", sign) if "\r" in rows else f"\n{rows}"
    while sign * 2 in rows:
        rows = rows.replace(sign * 2, sign)
    if is_of_spaces and f"{sign} {sign}" in rows:
        return ""
    return rows.replace(f"{sign}\n", "\n").replace(f"\n{sign}", "\n")[1:]


def _how_often(part: bytes, whole: bytes) -> int:
    """Count how often a part stands at the beginning, one time behind the other."""
    count = len(whole) // len(part)
    if whole.startswith(part * count):
        return count
    low = 0
    while count - low > 1:  # the first `low` are there, and not all of `count`
        middle = (low + count) // 2
        low, count = (middle, count) if whole.startswith(part * (middle - low), low * len(part)) else (low, middle)
    return low


def _cells_between(sign: str, row: str) -> list[str]:
    """Take a row apart in half the time that an expression needs."""
    return [cell for cell in row.replace("\r", sign).split(sign) if cell]
