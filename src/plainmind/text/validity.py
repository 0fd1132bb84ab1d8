"""Until when a line holds, and what holds instead: the forms in which people and `plainmind tidy` write it.

Expiry:      - the guest network is called Lindenblatt (until 2026-12-01)
             - parking at the back <!-- expires: 2026-12-01 -->
Superseded:  - ~~the office is in Bern~~ (until 2026-11-15, now MEMORY.md#L9)

The day named is the last one on which the line holds. On a heading the form means its whole section, on a list item
also what is indented beneath, in a front matter (`expires: 2026-12-01`) the whole file. A superseded line never ends.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.text.markdown import Block, read_blocks
from plainmind.text.note_format import ID_MARK

_DAY = r"(?P<{}>\d{{4}}-\d{{2}}-\d{{2}})"
_UNTIL = pattern(
    r"[(（]until "
    + _DAY.format("day")
    + r"(?:, now (?P<path>[^\n]+?\.md)#L(?P<first>\d{1,9})(?:-L?\d{1,9})?)?[)）]"
)
_EXPIRES = pattern(r"<!--\s*expires:\s*" + _DAY.format("day") + r"\s*-->")
_FIELD = pattern(r"expires:\s*[\"']?" + _DAY.format("day") + r"[\"']?\s*$")
_FENCES = ("```", "~~~")
_STRUCK = pattern(r"~~(?=\S)(.+?)(?<=\S)~~")
_LEAD = pattern(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?(?:\d\d:\d\d[ \t]+)?")


@value
class Validity:
    """The last day on which a line holds; for a superseded line also where the newer one stands."""

    until: str  # YYYY-MM-DD
    path: str | None = None  # the newer line, as cited
    line: int = 0

    @property
    def is_superseded(self) -> bool:
        """Whether another line took its place: then it is ranked below that one, and never left out."""
        return self.path is not None

    def is_expired(self, today: str) -> bool:
        """Whether it is over on a day (YYYY-MM-DD), and nothing took its place."""
        return self.path is None and self.until < today


def mentions_validity(text: str) -> bool:
    """Whether it is worth looking closer: nearly no text has one of the forms."""
    return "until " in text or "expires:" in text


def validity_of(line: str) -> Validity | None:
    """What a line says of itself; the last form counts, and one with a day that does not exist is none."""
    if not mentions_validity(line):
        return None
    forms = list(_UNTIL.finditer(line))
    found = forms[-1] if forms else _EXPIRES.search(line)
    if found is None or not is_day(found["day"]):
        return None
    cited = found.groupdict().get("path")
    return Validity(found["day"], cited, int(found["first"]) if cited else 0)


def validities(lines: Sequence[str]) -> dict[int, Validity]:
    """What holds for how long, by line number (1-based); lines that say nothing of it are not among them."""
    result: dict[int, Validity] = {}
    if not any(map(mentions_validity, lines)):
        return result
    whole: Validity | None = None
    sections: list[tuple[int, Validity]] = []  # headings around the present line that have a form, by level
    for block in read_blocks(lines):
        if block.first == 0 and lines[0].rstrip() == "---" and block.last > 0:
            whole = _of_front_matter(lines[1 : block.last])
            continue
        if block.level:
            sections = [section for section in sections if section[0] < block.level]
            if own := _of_lines(lines[block.first : block.last + 1]):
                sections.append((block.level, own))
        around = sections[-1][1] if sections else whole
        for number, own in _within(block, lines):
            if found := own or around:
                result[number + 1] = found
    return result


def _within(block: Block, lines: Sequence[str]) -> Iterator[tuple[int, Validity | None]]:
    """Each line of a block with what holds for it by the block itself."""
    numbers = range(block.first, block.last + 1)
    if lines[block.first].lstrip().startswith(_FENCES):
        yield from ((number, None) for number in numbers)
        return
    alone = next((own for number in numbers if (own := _alone(lines[number]))), None)
    if block.indent < 0:
        yield from ((number, validity_of(lines[number]) or alone) for number in numbers)
        return
    starts = {block.first, *block.inner_items}
    items: list[tuple[int, Validity]] = []  # list items around the present line that have a form, by indent
    for number in numbers:
        if number in starts:
            indent = indent_of(lines[number])
            items = [item for item in items if item[0] < indent]
            if own := validity_of(lines[number]):
                items.append((indent, own))
        yield number, validity_of(lines[number]) or (items[-1][1] if items else alone)


def _of_front_matter(lines: Sequence[str]) -> Validity | None:
    found = next(filter(None, map(_FIELD.match, lines)), None)
    return Validity(found["day"]) if found and is_day(found["day"]) else None


def _of_lines(lines: Sequence[str]) -> Validity | None:
    return next(filter(None, map(validity_of, lines)), None)


def _alone(line: str) -> Validity | None:
    """A comment on a line of its own speaks for the whole paragraph or item that it stands in."""
    return (
        validity_of(line) if line.lstrip().startswith("<!--") and _EXPIRES.fullmatch(line.strip()) else None
    )


def is_day(day: str) -> bool:
    """Whether this is a day of the calendar: 2026-11-15, and not 2026-11-31."""
    try:
        dt.date.fromisoformat(day)
    except ValueError:
        return False
    return True


def indent_of(line: str) -> int:
    """How many spaces and tabs a line begins with."""
    return len(line) - len(line.lstrip(" \t"))


# --- writing the forms ---


def superseded(line: str, *, until: str, path: str, number: int) -> str:
    """Write a line as superseded by another: people see it struck out, with the way to what holds now."""
    lead, words, mark = _parts(line)
    return f"{lead}~~{words.replace('~~', '')}~~ (until {until}, now {path}#L{number}){mark}"


def expiring(line: str, *, until: str) -> str:
    """Write on a line until when it holds."""
    lead, words, mark = _parts(line)
    return f"{lead}{words} (until {until}){mark}"


def without_validity(line: str) -> str:
    """The words of a line without the forms, and without the strokes of a superseded one."""
    if not mentions_validity(line):
        return line
    bare = _EXPIRES.sub("", _UNTIL.sub("", line))
    return _STRUCK.sub(r"\1", bare).rstrip() if _UNTIL.search(line) else bare.rstrip()


def _parts(line: str) -> tuple[str, str, str]:
    """What stands before the words of a line, the words, and the id behind them."""
    found = _LEAD.match(line)
    lead = found[0] if found else ""
    words, mark, rest = line[len(lead) :].rstrip().partition(f" {ID_MARK}")
    return lead, words.rstrip(), mark + rest
