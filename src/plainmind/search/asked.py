"""The words of one question: what they weigh, and where they stand in a page."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from plainmind.search.page import BEYOND_ASCII, Page, WordIndex
from plainmind.text.terms import (
    clues,
    may_be_spaceless,
    normalized,
    spaceless_stretches,
    word_terms,
    words_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# A set of terms is a number with one bit for each: bit 0 is the first term of the question.
TermSet: TypeAlias = int
# In order: the position of a unit in its page, the number of a term that stands in it, and how often it does.
Found: TypeAlias = Sequence[tuple[int, int, int]]

# How often a term stands in a chunk is counted so far.
COUNTLESS = 255
_STANDS = b"0" + b"1" * COUNTLESS  # by count: the digit of a set of terms


class Asked:
    """The terms of a question with their weights, ready to be looked for in many pages."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.terms = tuple(weights)
        self.weights = tuple(weights.values())
        self.total = sum(self.weights) or 1.0
        # By a set of terms: how much of the question's weight they carry.
        by_bit = [(1 << number, weight) for number, weight in enumerate(self.weights)]
        self.shares = Memo(lambda terms: sum([one for bit, one in by_bit if terms & bit]) / self.total)
        self._said = _Said(self.terms)
        # What to look for, and the set of the one term that it is a clue of.
        self._clues = [(clue, 1 << number) for number, term in enumerate(self.terms) for clue in clues(term)]
        # The terms that are no words but two letters beside each other in a script without spaces.
        self._pairs = [
            (number, term)
            for number, term in enumerate(self.terms)
            if len(term) == 2 and len(spaceless_stretches(term)) > 1
        ]

    def glance(self, page: Page) -> tuple[TermSet, Found | None]:
        """Which terms may stand in a page, and no others; and where they do, if that is as soon found out."""
        if not page.is_plain or page.index is not None:
            found = self.found_in(page)
            terms = 0
            for _, number, _ in found:
                terms |= 1 << number
            return terms, found
        text, terms = page.glanced_at, 0
        for clue, term in self._clues:
            if clue in text:
                terms |= term
        return terms, None

    def found_in(self, page: Page, among: TermSet = -1) -> Found:
        """Where the words stand, unit by unit; only terms `among` these are looked for."""
        if page.index is not None:
            return self._in_index(page.index)
        found = self._in_every_word(page) if page.is_foreign else self._in_words_with_clues(page, among)
        counts: dict[tuple[int, int], int] = {}
        for place in found:
            counts[place] = counts.get(place, 0) + 1
        return sorted([(position, number, count) for (position, number), count in counts.items()])

    def named(self, terms: TermSet) -> tuple[str, ...]:
        """The terms of a set, in the order of the question."""
        return tuple([term for number, term in enumerate(self.terms) if terms >> number & 1])

    def _in_index(self, index: WordIndex) -> Found:
        return sorted(
            [
                (position, number, count)
                for number, term in enumerate(self.terms)
                if term in index
                for position, count in index[term]
            ]
        )

    def _in_words_with_clues(self, page: Page, among: TermSet) -> list[tuple[int, int]]:
        """Look at the words that may say a term: few of all."""
        text, folded, ends, said = page.text, page.folded, page.ends, self._said
        find, find_before = folded.find, folded.rfind
        words: dict[int, str] = {}
        for clue, term in self._clues:
            at = find(clue) if term & among else -1
            while at >= 0:
                start = find_before(" ", 0, at) + 1
                end = find(" ", at)
                words[start] = text[start:end]
                at = find(clue, end)
        if not page.is_plain:
            for letter in BEYOND_ASCII.finditer(folded):
                start = folded.rfind(" ", 0, letter.start()) + 1
                words[start] = text[start : folded.find(" ", start)]
        return [
            (bisect_right(ends, start) - 1, number) for start, word in words.items() for number in said[word]
        ]

    def _in_every_word(self, page: Page) -> list[tuple[int, int]]:
        """Look at all words, and at all pairs of letters."""
        # A line break joins with no letter, whatever is normalized.
        text = normalized("\n".join([unit.replace("\n", " ") for unit in page.units]))
        units = text.split("\n")
        pairs = [(number, pair) for number, pair in self._pairs if pair in text]
        found = [
            (position, number)
            for number, pair in pairs
            for position, unit in enumerate(units)
            for _ in range(_overlapping(unit, pair))
        ]
        if len(self._pairs) < len(self.terms):
            said = self._said
            for position, unit in enumerate(units):
                found += [(position, number) for word in _spaced(unit) for number in said[word]]
        return found


class _Said(dict[str, tuple[int, ...]]):
    """By word as written: the numbers of the terms that it says, each as often as it says it."""

    def __init__(self, terms: Sequence[str]) -> None:
        super().__init__()
        self._numbers = {term: number for number, term in enumerate(terms)}

    def __missing__(self, word: str) -> tuple[int, ...]:
        known = self._numbers
        terms = [term for part in words_of(word) for term in word_terms(part)]
        self[word] = numbers = tuple([known[term] for term in terms if term in known])
        return numbers


class Memo(dict[int, float]):
    """What a function gives for sets of terms: few different ones occur, so each is worked out once."""

    def __init__(self, function: Callable[[TermSet], float]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, terms: TermSet) -> float:
        self[terms] = worked_out = self._function(terms)
        return worked_out


def terms_with(counts: bytes) -> TermSet:
    """The terms that stand in a chunk, of which it is known how often each does."""
    return int(counts[::-1].translate(_STANDS), 2) if counts else 0


def as_filed(found: Found, counts: bytes) -> Found:
    """What was found, as far as the chunk is filed under it; a word that was cut in two may read like others."""
    left = list(counts)
    for _, number, count in found:
        left[number] -= count
    if min(left, default=0) >= 0:
        return found
    left = [count if count < COUNTLESS else sys.maxsize for count in counts]
    kept = []
    for position, number, count in found:
        counted = min(count, left[number])
        left[number] -= counted
        if counted:
            kept.append((position, number, counted))
    return kept


def _spaced(unit: str) -> list[str]:
    """The words of a unit; of what is written without spaces only letters that stand alone, for pairs are no words."""
    if not may_be_spaceless(unit):
        return unit.split()
    words: list[str] = []
    for word in unit.split():
        stretches = spaceless_stretches(word)
        words += filter(None, stretches[::2])
        words += [run for run in stretches[1::2] if len(run) == 1]
    return words


def _overlapping(text: str, part: str) -> int:
    """How often a part stands in a text, counting those that share a letter."""
    count = 0
    at = text.find(part)
    while at >= 0:
        count += 1
        at = text.find(part, at + 1)
    return count
