"""Questions that we wrote, with the notes and talks that answer them: `training/written/*.jsonl.xz`.

A line of a file is a document: its lines, and questions with the numbers of the lines that answer. What stands in the
same document and does not answer is hard to tell from what does: a reranker learns from it, and so does a table. A line
of `families.jsonl.xz` is one matter in the words of several people, in several languages.
"""

from __future__ import annotations

import itertools
import json
import lzma
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from training.inputs import Pair

FOLDER = Path(__file__).resolve().parent / "written"
MOST = {"written_chat": 20_000, "written_asked": 20_000, "written_notes": 20_000, "written_others": 10_000}
_ROOM = 480  # characters that a reranker reads of a result
_BESIDE = 5


class Asked(NamedTuple):
    """A question about a document; `kind` says how it is asked, `language` in which language."""

    text: str
    answers: tuple[int, ...]
    kind: str
    language: str


class Document(NamedTuple):
    """Lines on one subject, and what is asked about them."""

    source: str
    language: str
    title: str
    lines: tuple[str, ...]
    questions: tuple[Asked, ...]


def read_documents(folder: Path = FOLDER) -> Iterator[Document]:
    """Every document of every file."""
    for file in sorted(folder.glob("*.jsonl.xz")):
        if file.name.startswith("families"):
            continue
        source = f"written_{file.name.split('.')[0]}"
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                questions = tuple(
                    Asked(text, tuple(answers), kind, more[0] if more else row["lang"])
                    for text, answers, kind, *more in row["q"]
                )
                yield Document(source, row["lang"], row["title"], tuple(row["lines"]), questions)


def read_pairs(documents: Iterator[Document], seed: int) -> Iterator[Pair]:
    """Questions in English about documents in English, each line that answers among its neighbours by chance."""
    chance = random.Random(seed)
    for document in documents:
        if document.language != "en":
            continue
        source = document.source if document.source in MOST else "written_others"
        for asked in document.questions:
            if asked.language != "en":
                continue
            silent = [at for at in range(len(document.lines)) if at not in asked.answers]
            starts = chance.sample(silent, min(_BESIDE, len(silent)))
            others = tuple(_window(document, at, silent, chance) for at in starts)
            for at in asked.answers:
                passage = _window(document, at, range(len(document.lines)), chance)
                yield Pair(asked.text, passage, "en", source, others)


def read_sides(documents: Iterator[Document]) -> Iterator[tuple[str, str]]:
    """Questions in any language with a line that answers; what belongs to one document comes in a row."""
    for document in documents:
        for asked in document.questions:
            for at in asked.answers:
                yield asked.text, document.lines[at]


def read_wordings(folder: Path = FOLDER) -> Iterator[tuple[str, str]]:
    """Two ways each to say the same, in one language or in two."""
    for file in sorted(folder.glob("families*.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                said = [text for _, text in json.loads(line)["same"]]
                yield from itertools.combinations(said, 2)


def _window(document: Document, at: int, allowed: Sequence[int], chance: random.Random) -> str:
    """A line with some of its neighbours, or alone, beneath the title of its document or without."""
    first = last = at
    wanted = chance.choice((1, 1, 2, 3, 4))
    room = _ROOM - len(document.lines[at]) - len(document.title)
    while last - first + 1 < wanted:
        near = [one for one in (first - 1, last + 1) if one in allowed and len(document.lines[one]) < room]
        if not near:
            break
        chosen = chance.choice(near)
        first, last = min(first, chosen), max(last, chosen)
        room -= len(document.lines[chosen])
    lines = document.lines[first : last + 1]
    return "\n".join([document.title, *lines] if chance.random() < 0.7 else lines)
