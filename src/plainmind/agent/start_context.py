"""What a session begins with: the curated memory, and the logs of yesterday and today, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plainmind.agent.recall import Recalled, fence
from plainmind.agent.scope import Access
from plainmind.base.errors import PathNotAllowed
from plainmind.base.lazy import pattern
from plainmind.base.model import PRIVATE, SHARED, split_lines
from plainmind.base.value import value
from plainmind.notes.scopes import folder_of_scope
from plainmind.text.note_format import without_note_ids
from plainmind.text.validity import mentions_validity, validities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date
    from typing import TypeAlias

CURATED = ("MEMORY.md", "memory.md")
# Gives the text of a file by its cited path; None when there is no such file, or nothing in it. Raises PathNotAllowed
# for one that is there and is not read.
Read: TypeAlias = "Callable[[str], str | None]"

_TRIES = 8


@value
class StartContext:
    """The text to put before a conversation, in the user's role: it is data, and says so."""

    text: str  # "" when there is nothing to begin with
    paths: tuple[str, ...] = ()  # what it was taken from
    truncated: tuple[str, ...] = ()  # those of which a part was left out


@value
class _Page:
    """A file, and which end of it matters most: how a curated text begins, what a log was told last."""

    path: str
    text: str
    keeps_end: bool


def start_context(access: Access, today: date, read: Read, *, max_chars: int, nonce: str) -> StartContext:
    """Put together what a context may begin with; `max_chars` is the length of all of it, marks included."""
    unread: list[str] = []

    def text_of(path: str) -> str | None:
        try:
            return read(path)
        except PathNotAllowed as refused:
            unread.append(str(refused))  # said, or it would be missed only when it is needed
            return None

    pages = _pages(access, today, text_of)
    allowed = max_chars
    for _ in range(_TRIES):
        items, truncated = _cut(pages, allowed)
        text = fence(items, nonce, remarks=unread)
        if len(text) <= max_chars:
            paths = tuple(item.path for item in items)
            return StartContext(text, paths, tuple(truncated))
        # Marks and headings take their place too, and what looks like a mark is written longer.
        allowed = allowed * max_chars // len(text) * 49 // 50
    return StartContext("", truncated=tuple(page.path for page in pages))


def _pages(access: Access, today: date, read: Read) -> list[_Page]:
    """Read what there is, in the order in which it was written."""
    pages: list[_Page] = []
    if access.sees_everything and access.writes == PRIVATE:
        pages += [
            _Page(path, _text_to_show(text, today), keeps_end=False)
            for path in CURATED
            if (text := read(path))
        ][:1]
    pages += [
        _Page(path, _text_to_show(text, today), keeps_end=True)
        for path in _logs(access, today)
        if (text := read(path))
    ]
    return [page for page in pages if _says_something(page.text)]


def _logs(access: Access, today: date) -> Sequence[str]:
    if not access.is_allowed:
        return ()
    own = access.scopes - {SHARED}  # in this channel, and in all of them
    folders = ["memory"] if access.writes == PRIVATE else sorted(filter(None, map(folder_of_scope, own)))
    days = [day for day in (today.toordinal() - 1, today.toordinal()) if day > 0]
    return [f"{folder}/{today.fromordinal(day).isoformat()}.md" for day in days for folder in folders]


def _text_to_show(text: str, today: date) -> str:
    """A file as a session begins with it. A line whose time is over is left blank: the numbers stay true."""
    text = without_note_ids(text)
    if mentions_validity(text):
        lines, day = split_lines(text), today.isoformat()
        over = {number for number, found in validities(lines).items() if found.is_expired(day)}
        text = "\n".join("" if number in over else line for number, line in enumerate(lines, 1))
    return text.rstrip()


def _says_something(text: str) -> bool:
    """Whether there is more than a title: a file that was made just now has nothing to recall."""
    first, _, rest = text.strip().partition("\n")
    return bool(rest.strip() or (first and not first.startswith("# ")))


def _cut(pages: Sequence[_Page], allowed: int) -> tuple[list[Recalled], list[str]]:
    items, truncated = [], []
    for page, chars in zip(pages, _shares([len(page.text) for page in pages], allowed), strict=True):
        whole = len(page.text) <= chars
        if chars > 0:
            items.append(_whole(page) if whole else _part(page, chars))
        if not whole:
            truncated.append(page.path)
    return items, truncated


def _shares(sizes: Sequence[int], allowed: int) -> list[int]:
    """Share the room out evenly; what a short text leaves goes to the others."""
    shares = [0] * len(sizes)
    left = max(allowed, 0)
    for done, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[place] = min(sizes[place], left // (len(sizes) - done))
        left -= shares[place]
    return shares


def _whole(page: _Page) -> Recalled:
    return Recalled(page.path, page.text, 1, page.text.count("\n") + 1)


def _part(page: _Page, chars: int) -> Recalled:
    """Cut between two entries, else at the end of a line, and say where to read what was left out."""
    total = page.text.count("\n") + 1
    if page.keeps_end:
        kept = page.text[-chars:]
        kept = _entries_at_end(kept.partition("\n")[2]) or kept.partition("\n")[2] or kept
        first = total - kept.count("\n")
        remark = f"only the end of {total} lines fits here: memory_get reads it from line 1"
        return Recalled(page.path, kept, first, total, remark=remark)
    kept = page.text[:chars]
    kept = _entries_at_start(page.text, kept.rpartition("\n")[0]) or kept.rpartition("\n")[0] or kept
    last = kept.count("\n") + 1
    remark = f"only the beginning of {total} lines fits here: memory_get reads on from line {last + 1}"
    if last == total:
        remark = "only the beginning of its last line fits here: memory_get reads it whole"
    return Recalled(page.path, kept, 1, last, remark=remark)


# A list item or a heading begins one, and so does a paragraph; what is indented belongs to what stands before it.
_BEGINS_ENTRY = pattern(r"(?:[-*+]|[0-9]{1,9}[.)])\s|#{1,6}\s")


def _entries_at_end(kept: str) -> str:
    """The whole entries that a text ends with; "" when no other one begins in it."""
    lines = kept.split("\n")
    return next(("\n".join(lines[at:]) for at in range(len(lines)) if _begins(lines, at)), "")


def _entries_at_start(text: str, kept: str) -> str:
    """The whole entries that a text begins with, when no more than `kept` of it fits; "" when the first is longer."""
    lines = text.split("\n")
    end = kept.count("\n") + 1 if kept else 0
    while end > 0 and not _begins(lines, end):
        end -= 1
    return "\n".join(lines[:end]).rstrip("\n")


def _begins(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if not line.strip() or line[0].isspace():
        return False
    return _BEGINS_ENTRY.match(line) is not None or (at > 0 and not lines[at - 1].strip())
