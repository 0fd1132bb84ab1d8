"""Word forms that are found by each other: without case, without accents, without English endings."""

from __future__ import annotations

import threading

import Stemmer

from plainmind.base.pattern import pattern

_ACCENTS = pattern(r"[\u0300-\u036f]+")
_UNDECOMPOSED = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ħ": "h"}
)


class _ThreadStemmer(threading.local):
    """One Snowball stemmer a thread: they keep state while they work. Its own cache would double ours."""

    def __init__(self) -> None:
        self.stem = Stemmer.Stemmer("english", 0).stemWord


_thread = _ThreadStemmer()


def fold(word: str) -> str:
    """Drop case and accents: Café → cafe. Marks that are letters in other scripts stay (が is not か)."""
    word = word.casefold()
    if word.isascii():
        return word
    import unicodedata

    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare).translate(_UNDECOMPOSED)


def stem(folded: str) -> str:
    """Reduce a folded English word to its stem: memories → memori. Other words stay as they are."""
    if folded.isascii() and folded.isalpha():
        stemmed: str = _thread.stem(folded)
        return stemmed
    return folded
