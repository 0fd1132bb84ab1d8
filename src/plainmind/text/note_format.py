"""A remembered note as Markdown, and the way back: each note carries an invisible id of its own.

One line:       - 14:32 the gateway moved <!-- m:01JD3 -->, or - [ ] 14:32 call the plumber <!-- m:01JD3 -->
Several lines:  ## 14:32 <!-- m:01JD3 -->, a blank line, the text; so too one line that would join another section
Durable notes carry no time: a list item, or the id comment alone on the line before the text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

from plainmind.base.lazy import pattern
from plainmind.base.model import sha256_text, split_lines

DURABLE_SECTION = "Remembered"  # what keeps short durable notes apart from a longer one with headings
ID_MARK = "<!-- m:"  # what every id comment begins with

_ID = r"[0-9A-Za-z][0-9A-Za-z_-]*"
_VALID_ID = pattern(_ID)
_ID_COMMENT = pattern(rf"<!-- m:({_ID}) -->")
_ID_COMMENT_AND_SPACE = pattern(rf"[ \t]*<!-- m:{_ID} -->")
_COMMENT_OPENING = pattern(r"<!--(?=(\s*m:)?)")
_ANY_HEADING = pattern(r"(#{1,6})(?:[ \t]|$)")
_LIST_MARK = pattern(r"(?:[-*+][ \t]+(?:(\[[ xX]\])[ \t]+)?|(\[[ xX]\])[ \t]+)(\S.*)$")
_OUTER_HEADING = pattern(r"#{1,2}(?=[ \t]|$)")
_BEFORE_THE_WORDS = pattern(r"\s*(?:[-*+]\s+|\d{1,9}[.)]\s+|#+\s+|>\s+)?(?:\[[ xX]\]\s+)?")
_FENCE = pattern(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")


def format_note(text: str, *, note_id: str, clock_time: str | None, joins_section: bool = False) -> str:
    """Write a note so that `find_note` can find exactly its lines again, whatever the text contains.

    Three things in the text are changed, and only where they would damage the file around the note: a
    comment that looks like an id or never ends is escaped, headings move below the note's own level,
    and a code fence left open is closed. `joins_section` says that a list item would stand under a heading that is
    not its own, as `joins_section` tells.
    """
    if not _VALID_ID.fullmatch(note_id):
        raise ValueError(f"not a note id: {note_id!r}")
    comment = f"<!-- m:{note_id} -->"
    lines = _trim(split_lines(_with_harmless_comments(text)))
    if len(lines) <= 1:
        return _format_line("".join(lines).strip(), comment, clock_time, joins_section=joins_section)
    opening = f"{comment}\n" if clock_time is None else f"## {clock_time} {comment}\n\n"
    return opening + "\n".join(_within_a_note(lines)) + "\n"


def _format_line(line: str, comment: str, clock_time: str | None, *, joins_section: bool) -> str:
    found = _LIST_MARK.match(line)
    box, words = (found[1] or found[2] or "", found[3]) if found else ("", line)
    if joins_section and clock_time is not None and not box:
        return f"## {clock_time} {comment}\n\n{words}\n"
    own = f"## {clock_time or DURABLE_SECTION}\n\n" if joins_section else ""
    parts = (box, None if own else clock_time, words, comment)
    return f"{own}- {' '.join(part for part in parts if part)}\n"


def joins_section(lines: Sequence[str], *, is_durable: bool) -> bool:
    """Whether a list item at the end of these lines would stand under a heading that has nothing to do with it.

    In a log that is every heading but that of the day; in the curated memory one within a longer note of ours.
    """
    level, in_note, fence = 0, False, ""
    for line in lines:
        was_outside = not fence
        fence = _fence_after(line, fence)
        heading = _ANY_HEADING.match(line) if was_outside else None
        if heading:
            level = len(heading[1])
            in_note = in_note and level > 2
        elif _ID_COMMENT.fullmatch(line.strip()):
            in_note, level = True, 0
        elif _ID_COMMENT.search(line):
            in_note = False
    return in_note and level > 2 if is_durable else level > 1


def without_note_ids(line: str) -> str:
    """Drop the id comments, for what is indexed and shown; line breaks stay where they were."""
    return _ID_COMMENT_AND_SPACE.sub("", line)


def id_of(line: str) -> str | None:
    """The id that a line carries."""
    found = _ID_COMMENT.search(line) if ID_MARK in line else None
    return found[1] if found else None


def words_of(line: str) -> str:
    """What a line says: without its list mark, its note's id and the space around it."""
    return _BEFORE_THE_WORDS.sub("", without_note_ids(line), count=1).strip()


def mark_of(line: str) -> str:
    """A short name for what a line says, by which it is known again when its number has changed."""
    return sha256_text(words_of(line))[:8]


def find_note(lines: Sequence[str], note_id: str) -> tuple[int, int] | None:
    """Return the first and last line (1-based) of a note, or None when no line carries its id.

    A list item includes what a person indented beneath it; a longer note ends before the next note, the
    next heading of the file's own outline, or at the end of the file.
    """
    for first, line in enumerate(lines):
        found = _ID_COMMENT.search(line)
        if found and found[1] == note_id:
            opens_section = line.startswith("#") or line.strip() == found[0]
            last = _end_of_section(lines, first) if opens_section else _end_of_item(lines, first)
            return first + 1, last + 1
    return None


def day_header(day: dt.date | str) -> str:
    """Return how a daily log begins."""
    return f"# {day}\n\n"


def _with_harmless_comments(text: str) -> str:
    last_closing = text.rfind("-->")

    def escape(opening: re.Match[str]) -> str:
        forges_an_id = opening[1] is not None
        never_closes = opening.end() > last_closing
        return r"<\!--" if forges_an_id or never_closes else opening[0]

    return _COMMENT_OPENING.sub(escape, text)


def _trim(lines: list[str]) -> list[str]:
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return [line.rstrip() for line in lines[filled[0] : filled[-1] + 1]] if filled else []


def _within_a_note(lines: list[str]) -> list[str]:
    result, fence = [], ""
    for line in lines:
        outside = not fence
        fence = _fence_after(line, fence)
        result.append(f"##{line}" if outside and _OUTER_HEADING.match(line) else line)
    return [*result, fence] if fence else result


def _end_of_item(lines: Sequence[str], first: int) -> int:
    indent, last = _indent(lines[first]), first
    while last + 1 < len(lines) and lines[last + 1].strip() and _indent(lines[last + 1]) > indent:
        last += 1
    return last


def _end_of_section(lines: Sequence[str], first: int) -> int:
    last, fence = first, ""
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if _ID_COMMENT.search(line) or (not fence and _OUTER_HEADING.match(line)):
            break
        fence = _fence_after(line, fence)
        if line.strip():
            last = number
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _fence_after(line: str, fence: str) -> str:
    """Return the code fence that is open after this line, or nothing."""
    found = _FENCE.match(line)
    if not fence:
        return found[1] if found else ""
    closes = found is not None and found[1].startswith(fence) and line.strip() == found[1]
    return "" if closes else fence
