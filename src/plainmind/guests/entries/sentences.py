"""Which sentence is worth keeping as an entry, and which entry is meant, by their words."""

from __future__ import annotations

from collections.abc import Iterable

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.guests.entries.model import Entry
from plainmind.text.sentences import category_of

LEAST_CHARS = 10
MOST_CHARS = 500
_MOST_LINES = 4


@value
class Proposal:
    """Something to keep, if somebody agrees."""

    text: str
    category: str
    importance: float


def proposal_of(message: str, most_chars: int = MOST_CHARS) -> Proposal | None:
    """What of a person's message may be worth keeping; None for nearly all of them."""
    text = message.strip()
    if not LEAST_CHARS <= len(text) <= most_chars or text.count("\n") >= _MOST_LINES:
        return None
    found = category_of(text)
    return None if found is None else Proposal(text, *found)


# What stands around the words of a note: the mark of a list item, the time it was written, and its id.
_AROUND = pattern(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\d\d:\d\d\s+)?|\s*<!-- m:[0-9A-Za-z_-]+ -->\s*$")

_BARE_WORD = pattern(r"\w+")
_WITHOUT_SPACES = "\u0e00"  # the first of the scripts that put none between words


def entries_meant(entries: Iterable[Entry], what: str) -> list[Entry]:
    """The entry with this id; else those with this text, or with all of its words in any order, in whatever case."""
    what, everything = what.strip(), list(entries)
    if same := [entry for entry in everything if entry.id == what]:
        return same
    wanted = _folded(what)
    return [entry for entry in everything if wanted and _has(_folded(entry.text), wanted)]


def _has(text: str, wanted: str) -> bool:
    """A part of a word is no word: who has the code of a door forgotten does not mean a postcode."""
    if wanted in text:
        return True
    own, words = set(_BARE_WORD.findall(text)), _BARE_WORD.findall(wanted)
    return bool(words) and all(
        word in own or (max(word) >= _WITHOUT_SPACES and word in text) for word in words
    )


def entries_that_say(entries: Iterable[Entry], lines: Iterable[str]) -> list[Entry]:
    """The entries that say what one of these lines of notes says, no more and no less."""
    said = {_folded(_AROUND.sub("", line)) for line in lines} - {""}
    return [entry for entry in entries if _folded(entry.text) in said]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
