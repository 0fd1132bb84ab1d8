"""Text as the reranker reads it: words cut into the pieces that it knows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

LONGEST_RUN = 4  # ideographs that are one piece
IDEOGRAPH = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)
_LONGEST_WORD = 100
_MOST_REMEMBERED = 20_000
_OF_KANA = "\u3099\u309a"  # marks that make another letter, not the same one with an accent


class _Letters(dict[int, str]):
    """What becomes of each character: marks of accents go, punctuation and ideographs stand alone."""

    def __missing__(self, code: int) -> str:
        self[code] = made = _letter(chr(code), code)
        return made


def _letter(letter: str, code: int) -> str:
    if letter in "\t\n\r ":
        return " "
    if letter in _OF_KANA:
        return letter
    category = unicodedata.category(letter)
    if category == "Zs":
        return " "
    if category in ("Mn", "Cc", "Cf", "Cn", "Co", "Cs") or code == 0xFFFD:
        return ""
    is_sign = letter.isascii() and not letter.isalnum()
    if is_sign or category.startswith("P") or IDEOGRAPH.match(letter):
        return f" {letter} "
    return letter


_LETTERS = _Letters()


def split_words(text: str) -> list[str]:
    """The words and signs of a text, in small letters without accents."""
    return unicodedata.normalize("NFD", text).translate(_LETTERS).lower().split()


class WordPieces:
    """Cuts words into the longest pieces that are known, from the left."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._unknown = self._numbers["[UNK]"]
        self._remembered: dict[str, tuple[int, ...]] = {}

    def number(self, piece: str) -> int:
        """The number of a piece that is known to be there, such as a mark."""
        return self._numbers[piece]

    def encode(self, text: str) -> list[int]:
        """The numbers of the pieces of a text."""
        words = split_words(text)
        if IDEOGRAPH.search(text):
            words = self._join(words)
        return [number for word in words for number in self._word(word)]

    def _join(self, words: Sequence[str]) -> list[str]:
        """Words, with ideographs that stand side by side joined to the longest pieces that are known."""
        joined = []
        at = 0
        while at < len(words):
            size = 1
            if IDEOGRAPH.fullmatch(words[at]):
                size = LONGEST_RUN
                while size > 1 and "".join(words[at : at + size]) not in self._numbers:
                    size -= 1
            joined.append("".join(words[at : at + size]))
            at += size
        return joined

    def familiarity(self, text: str) -> float:
        """The share of the words, other than signs and numbers, that are known as a whole."""
        words = [word for word in split_words(text) if len(word) > 1 and word.isalpha()]
        if not words:
            return 0.0
        return sum(word in self._numbers for word in words) / len(words)

    def _word(self, word: str) -> tuple[int, ...]:
        found = self._remembered.get(word)
        if found is None:
            found = self.cut(word)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[word] = found
        return found

    def cut(self, word: str) -> tuple[int, ...]:
        """The numbers of the pieces of a word."""
        if len(word) > _LONGEST_WORD:
            return (self._unknown,)
        found = []
        start = 0
        while start < len(word):
            end = len(word)
            prefix = "##" if start else ""
            while end > start and prefix + word[start:end] not in self._numbers:
                end -= 1
            if end == start:
                return (self._unknown,)
            found.append(self._numbers[prefix + word[start:end]])
            start = end
        return tuple(found)
