"""Secrets in a column that its heading names: in Markdown, with commas or tabs between, or set apart by spaces."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from plainmind.base.lazy import DOTALL, pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.redaction.page import Page

_LONGEST_HEADING = _LONGEST_ROW = 1_000
_MOST_CELLS = 40
_LONGEST_NAME = 40
_SPACES = "  "
_CELL_OF_SPACES = r"(?:[^ \t\r\n]|[ ](?![ \t]))++"
# How a cell is told, by what stands between two of them.
_CELLS = {
    **{sign: pattern(f"[^{sign}\\r\\n]++") for sign in "|\t;,"},
    _SPACES: pattern(_CELL_OF_SPACES),
}
_CELL_OR_END = pattern(rf"{_CELL_OF_SPACES}|\n")
# Bytes that are neither the end of a row nor of a cell.
_WITHIN_CELLS = {sign: bytes(set(range(256)) - {ord("\n"), ord(sign)}) for sign in "|\t;,"}
_RULE = pattern(r"[\s|:+=-]{3,}+")
_RULES = pattern(rf"(?:(?:[^\S\n]|[|:+=-]){{3,{_LONGEST_ROW}}}+\n)++")
_AROUND = " \t\"'`*_"
_AROUND_CELL = _AROUND + "\r"


def is_heading(low: str, start: int, end: int) -> bool:
    """Whether the name of a secret may be the heading of a column, looking at what stands on both sides of it."""
    if not _ENDS_CELL.match(low, end):
        return False
    before = low[max(0, start - _LONGEST_BEFORE) : start]
    cell = _BEFORE_CELL.match(before)
    if cell is None and len(before) < start:
        return False
    words = (before[cell.end() :] if cell else before).lstrip(_AROUND_NAME).split()
    return not words or (len(words) <= _MOST_WORDS and max(map(len, words)) <= _LONGEST_WORD)


_ENDS_CELL = pattern(r"""["'`*)_]{0,3}[ ]{0,24}:?[*]{0,2}(?:[|,;\t\r\n]|(?<=  )\S)""")
_AROUND_NAME = " \"'`*(_"
_LONGEST_BEFORE, _MOST_WORDS, _LONGEST_WORD = 88, 4, 20
_BEFORE_CELL = pattern(rf".{{0,{_LONGEST_BEFORE}}}(?:[\n|,;\t]|  )", DOTALL)


def cells_under(page: Page, at: int, is_secret: Callable[[str], bool], kind: str) -> Iterator[Found]:
    """Report what stands below a heading and is a secret; the table ends where a row has another number of cells.

    A table within a table has the same rows: each is read once for the same column and the same sort of secret.
    """
    text = page.text
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    if end < 0 or end - start > _LONGEST_HEADING:
        return
    line = text[start:end]
    for sign, cell_of in _CELLS.items():
        heading = cell_of.findall(line) if _may_be_between(sign, line) else ()
        if 1 < len(heading) <= _MOST_CELLS:
            break
    else:
        return
    before = cell_of.findall(line, 0, at - start)
    is_within = bool(before) and text[at - 1] not in (sign, "\r") and (sign, text[at - 1]) != (_SPACES, "\t")
    number = len(before) - is_within
    called = heading[number].strip(_AROUND)
    if len(called) <= _LONGEST_NAME:
        column = _Column(sign, len(heading), number, called.lower())
        known = (sign, len(heading), number, is_secret, kind)
        start = max(end + 1, page.rows_read.get(known, 0))
        calm = page.allowance.calm_rows
        # No row is read below an empty line: where rows up to one had no secret, the same ones have none again.
        over = text.find("\n\n", end, end + _LONGEST_ROW) if start == end + 1 else -1
        rows = (text[start : over + 2], column.heading, known)
        length = calm.get(rows) if over >= 0 else None
        if length is None:
            last, has_secret = yield from _secrets_of(column, page, (at, start), is_secret, kind)
            length = last - start
            if over >= 0 and not has_secret and len(calm) < _MOST_CALM:
                calm[rows] = length
        page.rows_read[known] = start + length


_MOST_CALM = 4_096


def _may_be_between(sign: str, line: str) -> bool:
    return sign in line or "\r" in line or (sign is _SPACES and "\t" in line)


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
    """Where the cells of a column are: what stands between cells, how many a row has, and which of them it is."""

    sign: str
    count: int
    number: int
    heading: str


def _secrets_of(
    column: _Column, page: Page, below: tuple[int, int], is_secret: Callable[[str], bool], kind: str
) -> Generator[Found, None, tuple[int, bool]]:
    """Report the secrets of a column, and say in the end up to where its rows were read and whether one had any."""
    text = page.text
    has_secret = False
    heading, start = below
    cell_of = _CELLS[column.sign]
    for start in _rows_to_read(column, page, start, is_secret):  # noqa: B020 (it goes on from there)
        end = text.find("\n", start)
        is_last = end < 0
        end = len(text) if is_last else end
        if end - start > _LONGEST_ROW or start >= len(text):
            page.note_open(heading, goes_on=start >= len(text))
            break
        if _RULE.fullmatch(text, start, end):
            continue
        row = cell_of.findall(text, start, end)
        if len(row) != column.count:
            page.note_open(heading, goes_on=is_last)  # it may be cut off
            break
        given = row[column.number].strip(_AROUND_CELL)
        if given.lower() == column.heading:
            break  # another table begins
        if is_secret(given):
            cells = list(cell_of.finditer(text, start, end))
            first = text.index(given, cells[column.number].start())
            has_secret = True
            yield first, first + len(given), kind
    return start, has_secret


def _rows_to_read(column: _Column, page: Page, start: int, is_secret: Callable[[str], bool]) -> Iterator[int]:
    """Say where rows begin that may have a secret in a column, or end the table, from one place on.

    Of the others dozens are taken apart at once, which takes as long as a few one by one. Where that is in vain, or the
    first line is none of a table, more rows are read before it is tried again: most headings have no table below them,
    and some tables a rule everywhere.
    """
    text = page.text
    harmless = page.allowance.harmless.setdefault(is_secret, set())
    alike = (column.sign, column.count)
    # Of a table with more headings the rows are kept when they are read for the second time.
    is_again = any(until > start for known, until in page.rows_read.items() if known[:2] == alike)
    closely = int(column.sign not in text[start : text.find("\n", start) + 1])
    while True:
        for _ in range(closely):
            rules = _RULES.match(text, start)
            start = rules.end() if rules else start
            yield start
            start = text.find("\n", start) + 1 or len(text)
        if text.startswith("\n", start):
            yield start  # an empty line ends every table
        some = _rows_from(page, start, *alike, is_kept=is_again)
        cells = some.cells[column.number :: column.count]
        unknown = set(cells).difference(harmless)
        dubious = {cell for cell in unknown if is_secret(cell.strip(_AROUND_CELL))}
        if len(harmless) < _MOST_HARMLESS:
            harmless |= unknown - dubious
        if column.heading in some.low:  # if it is a cell of this column, another table begins
            dubious.update(cell for cell in cells if cell.strip(_AROUND_CELL).lower() == column.heading)
        if dubious or not some.is_all:
            for cell, row in zip(cells, text[start : some.end].split("\n"), strict=False):
                if cell in dubious:
                    yield start
                start += len(row) + 1
        start = some.end if some.is_all else start
        closely = 0 if some.is_all else max(1, min(2 * closely, _MOST_CLOSELY))


_MOST_CLOSELY = 64
_MOST_HARMLESS = 4_096


@value
class Rows:
    """Rows that have as many cells as the heading, taken apart, and whether they are all up to where they end."""

    end: int
    cells: list[str]
    low: str
    is_all: bool


def _rows_from(page: Page, start: int, sign: str, count: int, *, is_kept: bool) -> Rows:
    """Take apart the rows of a table from one place on."""
    known = (start, sign, count)
    some = page.rows_apart.get(known)
    if some is None:
        text = page.text
        # No row is too long where all of them together are not.
        last = start + _LONGEST_ROW
        end = text.find("\n\n", start, last) + 1 or text.rfind("\n", start, last) + 1
        rows = text[start:end]
        plain = _with_one_sign_between(sign, rows)
        between = "\t" if sign is _SPACES else sign
        shape = between.encode() * (count - 1) + b"\n"
        shapes = plain.encode("latin-1", "replace").translate(None, _WITHIN_CELLS[between])
        number = _how_often(shape, shapes)
        cells = plain.replace("\n", between).split(between, number * count)[:-1]
        some = Rows(end, cells, rows.lower(), number > 0 and len(shapes) == number * len(shape))
        if is_kept:
            page.rows_apart[known] = some
    return some


def _with_one_sign_between(sign: str, rows: str) -> str:
    """Write rows with one sign between two cells, and none before a row or behind it."""
    if sign is _SPACES:
        sign = "\t"
        rows = sign.join(_CELL_OR_END.findall(rows))
    rows = f"\n{rows}".replace("\r", sign)
    while sign * 2 in rows:
        rows = rows.replace(sign * 2, sign)
    return rows.replace(f"{sign}\n", "\n").replace(f"\n{sign}", "\n")[1:]


def _how_often(part: bytes, whole: bytes) -> int:
    """Count how often a part stands at the beginning, one time behind the other."""
    low, high = 0, len(whole) // len(part) + 1
    middle = high - 1  # most often it is all
    while high - low > 1:
        if whole.startswith(part * (middle - low), low * len(part)):
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    return low
