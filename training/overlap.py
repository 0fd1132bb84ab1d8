"""What stands in an evaluation set must not be learned from: eight words in a row that both have.

Texts without spaces between words are cut into characters, and twice as many in a row count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

Grams = frozenset[int]

WORDS = 8
_CHARACTERS = 16
_TOKENS = re.compile(r"[぀-ヿ㐀-鿿가-힣]|[^\W_぀-ヿ㐀-鿿가-힣]+")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿]")


def grams(text: str) -> Iterator[int]:
    """A number for every run of eight words."""
    tokens = _TOKENS.findall(text.lower())
    length = _CHARACTERS if len(_UNSPACED.findall(text)) * 2 > len(tokens) else WORDS
    for at in range(len(tokens) - length + 1):
        yield hash(tuple(tokens[at : at + length]))


def collect(texts: Iterable[str]) -> Grams:
    """The runs of all texts."""
    return frozenset(gram for text in texts for gram in grams(text))


def collect_folder(folder: Path) -> Grams:
    """The runs of every line of notes, transcripts and questions beneath a folder."""
    found: set[int] = set()
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".md", ".jsonl", ".txt", ".json"):
            found.update(grams(file.read_text(encoding="utf-8", errors="replace")))
    return frozenset(found)


def shares(barred: Grams, text: str) -> bool:
    """Whether a text has a run that is barred."""
    return any(gram in barred for gram in grams(text))
