"""A chunk taken apart: its units, how long they are, and its text in the form in which words are looked for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from commonplace.model import Chunk
from commonplace.pattern import pattern
from commonplace.search.units import is_one_line, units_of
from commonplace.text.terms import may_be_spaceless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# By term: the positions of the units in which it stands, and how often it stands there.
WordIndex: TypeAlias = Mapping[str, tuple[tuple[int, int], ...]]

# Of a page with more bytes beyond ASCII than one in so many, every word is looked at.
PLAIN_SHARE = 16
# Each stands between words, and is as long as the space that is put for it.
_TYPOGRAPHY = "“”—–…•·‘„«»\xa0"
BEYOND_ASCII = pattern(r"[^\0-\x7f]")
_SPACE = pattern(r"\s")
_SPEAKER = pattern(r"[\s>*_-]*(\w+)[*_]*\s?[:：]")
# What divides words, apart from the space and from what `units_of` divides by.
_WHITESPACE = "\t\x0b\x0c\r\x1c\x1d\x1e\x1f"


class Page:
    """The units of a chunk in reading order; `ends[n]` is how long those before n are, each with a line break."""

    __slots__ = ("_speakers", "ends", "folded", "index", "is_foreign", "is_plain", "text", "units")

    def __init__(self, chunk: Chunk) -> None:
        self.index: WordIndex | None = None  # worth making for a page that is read more than once
        self._speakers: list[str | None] | None = None
        self.units = units_of(chunk.text, one_line=is_one_line(chunk))
        self.ends = [0, *accumulate([len(unit) + 1 for unit in self.units])]
        # The units one after the other, each with a space behind it: `ends` says where they begin.
        self.text = " ".join([*self.units, ""])
        self.is_plain = self.text.isascii()
        self.is_foreign = not self.is_plain and may_be_spaceless(self.text)
        # The same without case, letter by letter, and with nothing but spaces between words; empty when it is foreign,
        # for then it is folded by other rules.
        self.folded = ""
        if self.is_plain:
            self.folded = _spaced(self.text.lower())
        elif not self.is_foreign:
            self._fold_accents()

    def _fold_accents(self) -> None:
        """Put plain marks for typographic ones, which say nothing, and see how much is left beyond ASCII."""
        text = self.text.replace("’", "'")
        for mark in _TYPOGRAPHY:
            text = text.replace(mark, " ")
        self.text = text
        self.is_plain = text.isascii()
        if self.is_plain:
            self.folded = _spaced(text.lower())
        else:
            beyond = len(text.encode("utf-8", "surrogatepass")) - len(text)
            self.is_foreign = PLAIN_SHARE * beyond > len(text)
            self.folded = _SPACE.sub(" ", text.replace("İ", "i").lower())

    def put_in_order(self, index: WordIndex) -> None:
        """Find words by an index from now on: what they were looked for in is let go."""
        self.index = index
        self._speakers = self._find_speakers()
        self.text = self.folded = ""

    def spoken_by(self, names: frozenset[str]) -> list[int]:
        """The units in which one of these people (folded) speaks."""
        if not names:
            return []
        if self._speakers is None:
            self._speakers = self._find_speakers()
        return [position for position, speaker in enumerate(self._speakers) if speaker in names]

    def _find_speakers(self) -> list[str | None]:
        if ":" not in self.text and "：" not in self.text:
            return []
        return [speaker_of(unit) for unit in self.units]


def _spaced(text: str) -> str:
    for mark in _WHITESPACE:
        if mark in text:
            return _SPACE.sub(" ", text)
    return text.replace("\n", " ")


def speaker_of(unit: str) -> str | None:
    """Who says a line of a conversation: `Anna: …`, `**Anna:** …`, `- Anna: …`."""
    match = _SPEAKER.match(unit) if ":" in unit or "：" in unit else None
    return match[1].casefold() if match else None
