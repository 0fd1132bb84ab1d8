"""A chunk taken apart: its units, how long they are, and its text in the form in which words are looked for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from plainmind.base.model import Chunk
from plainmind.base.pattern import pattern
from plainmind.search.units import has_lines, is_one_line, units_of
from plainmind.text.terms import may_be_spaceless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

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
    """The units of a chunk in reading order; `ends[n]` is how long those before n are, each with a line break.

    A plain text is taken apart when somebody asks for its parts: most pages of a search are only glanced at.
    """

    __slots__ = (
        "_chunk_text",
        "_one_line",
        "_speakers",
        "ends",
        "folded",
        "glanced_at",
        "index",
        "is_foreign",
        "is_plain",
        "text",
        "units",
    )
    units: list[str]
    ends: list[int]
    text: str  # the units one after the other, each with a space behind it: `ends` says where they begin
    # The same without case, letter by letter, and with nothing but spaces between words; empty when it is foreign, for
    # then it is folded by other rules.
    folded: str

    def __init__(self, chunk: Chunk) -> None:
        self.index: WordIndex | None = None  # worth making for a page that is read more than once
        self._speakers: list[str | None] | None = None
        self._chunk_text = chunk.text
        self._one_line = is_one_line(chunk)
        self.is_plain = chunk.text.isascii()
        self.is_foreign = False
        if self.is_plain:
            self.glanced_at = chunk.text.lower()  # has all that `folded` has between spaces
        else:
            self._take_apart()
            self._fold_accents()
            self.glanced_at = self.folded

    def __getattr__(self, name: str) -> Any:
        """Be asked for a part of a plain page for the first time."""
        self._take_apart()
        is_as_long = has_lines(self._chunk_text, len(self.units))  # then a line break stands for each space
        self.folded = _spaced(f"{self.glanced_at} " if is_as_long else self.text.lower())
        return object.__getattribute__(self, name)

    def _take_apart(self) -> None:
        units = self.units = units_of(self._chunk_text, one_line=self._one_line)
        self.ends = [0, *accumulate([len(unit) + 1 for unit in units])]
        self.text = " ".join([*units, ""])

    def _fold_accents(self) -> None:
        """Put plain marks for typographic ones, which say nothing, and see how much is left beyond ASCII."""
        self.folded = ""
        self.is_foreign = may_be_spaceless(self.text)
        if self.is_foreign:
            return
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
        self.text = self.folded = self.glanced_at = self._chunk_text = ""

    def spoken_by(self, names: frozenset[str]) -> list[int]:
        """The units in which one of these people (folded) speaks."""
        if not names:
            return []
        if self._speakers is None:
            self._speakers = self._find_speakers()
        return [position for position, speaker in enumerate(self._speakers) if speaker in names]

    def may_be_spoken_by(self, names: frozenset[str]) -> bool:
        """Whether one of these people (folded) may speak in it; never False when one does."""
        if self._speakers is not None or not self.is_plain:
            return bool(self.spoken_by(names))
        return ":" in self.glanced_at and any(name in self.glanced_at for name in names)

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
