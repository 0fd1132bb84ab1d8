"""Where each key and value of a JSON5 text stands, so that one can be changed and the rest left alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from plainmind.base.pattern import pattern
from plainmind.base.value import value

_GAP = pattern(r"(?:[\s\ufeff]|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_STRING = pattern(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'", re.DOTALL)
_BARE = pattern(r"[^\s\ufeff,:{}\[\]\"'/]+")
_MAX_DEPTH = 100


class NotUnderstood(Exception):
    """The text cannot be followed; whoever wanted to change it must leave it alone."""


@value
class Entry:
    """One `key: value` of an object; `members` is None when the value is not an object."""

    name: str
    key_start: int
    value_start: int
    value_end: int
    members: tuple[Entry, ...] | None

    def walk(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Entry]]:
        """Give this entry and all below it, each with the names that lead to it."""
        yield above, self
        for member in self.members or ():
            yield from member.walk((*above, member.name))


def outline(text: str) -> Entry:
    """Find everything in the object that the text is, as an entry without a name. Raises NotUnderstood."""
    start = after_gap(text, 0)
    end, members = _value(text, start, 0)
    if members is None or after_gap(text, end) != len(text):
        raise NotUnderstood
    return Entry("", 0, start, end, members)


def after_gap(text: str, at: int) -> int:
    """Find the first place from `at` on that is neither white space nor in a comment."""
    match = _GAP.match(text, at)
    return match.end() if match else at


def is_gap(text: str) -> bool:
    """Whether there is nothing but white space and whole comments."""
    return _GAP.fullmatch(text) is not None


def find_duplicate(text: str) -> tuple[str, tuple[int, int]] | None:
    """Find the first key that stands twice in one object, and its two lines; lists are not looked into."""
    try:
        whole = outline(text)
    except NotUnderstood:
        return None
    seen: dict[tuple[int, str], Entry] = {}
    for names, entry in whole.walk():
        for member in entry.members or ():
            first = seen.setdefault((entry.value_start, member.name), member)
            if first is not member:
                lines = (_line_of(text, first.key_start), _line_of(text, member.key_start))
                return ".".join((*names, member.name)), lines
    return None


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _value(text: str, at: int, depth: int) -> tuple[int, tuple[Entry, ...] | None]:
    """Find the end of the value that starts at `at`, and its members when it is an object."""
    if depth > _MAX_DEPTH:
        raise NotUnderstood
    if text.startswith("{", at):
        return _object(text, at, depth)
    if text.startswith("[", at):
        return _list_end(text, at, depth), None
    match = _STRING.match(text, at) or _BARE.match(text, at)
    if match is None:
        raise NotUnderstood
    return match.end(), None


def _object(text: str, at: int, depth: int) -> tuple[int, tuple[Entry, ...]]:
    members: list[Entry] = []
    at = after_gap(text, at + 1)
    while not text.startswith("}", at):
        key = _STRING.match(text, at) or _BARE.match(text, at)
        colon = after_gap(text, key.end()) if key else at
        if key is None or not text.startswith(":", colon):
            raise NotUnderstood
        start = after_gap(text, colon + 1)
        end, inner = _value(text, start, depth + 1)
        members.append(Entry(_key_name(key[0]), at, start, end, inner))
        at = _after_comma(text, end, "}")
    return at + 1, tuple(members)


def _list_end(text: str, at: int, depth: int) -> int:
    at = after_gap(text, at + 1)
    while not text.startswith("]", at):
        end, _ = _value(text, at, depth + 1)
        at = _after_comma(text, end, "]")
    return at + 1


def _after_comma(text: str, at: int, closing: str) -> int:
    at = after_gap(text, at)
    if text.startswith(",", at):
        return after_gap(text, at + 1)
    if not text.startswith(closing, at):
        raise NotUnderstood
    return at


def _key_name(spelled: str) -> str:
    quoted = spelled[0] in "\"'"
    name = spelled[1:-1] if quoted else spelled
    if "\\" not in name:
        return name
    try:
        return str(json.loads(f'"{name}"'))
    except ValueError:
        raise NotUnderstood from None
