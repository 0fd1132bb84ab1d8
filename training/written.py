"""Questions that we wrote, with the notes and talks that answer them: `training/written/*.jsonl.xz`.

A line of a file is a document: its lines, and questions with the numbers of the lines that answer. What stands in the
same document and does not answer is hard to tell from what does: a reranker learns from it, and so does a table. A line
of `families.jsonl.xz` is one matter in the words of several people, in several languages.

They are written as plain text (`parse` says how) and packed by `python -m training.written FILE.txt … OUT.jsonl.xz`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from training.inputs import Pair

FOLDER = Path(__file__).resolve().parent / "written"
MOST = {
    "written_chat": 20_000, "written_asked": 20_000, "written_notes": 20_000, "written_friends": 30_000,
    "written_messages": 30_000, "written_assistant": 30_000, "written_asia": 10_000, "written_europe": 10_000,
    "written_tongues": 12_000, "written_reports": 6_000, "written_programs": 6_000, "written_words": 12_000,
}  # fmt: skip
_ROOM = 480  # characters that a reranker reads of a result
_BESIDE = 5
_UNDER_TITLE = 0.7
_TITLE = re.compile(r"=== (.*?)\s*(?:\|\s*([a-z]{2}))?\s*$")
_LINE = re.compile(r"(\d+)[.:)]?\s+(.*)$")
_QUESTION = re.compile(r"([pokn]|x:([a-z]{2}))\s+(\d+(?:\s*,\s*\d+)*)\s+(.*)$")


class Asked(NamedTuple):
    """A question about a document; `kind` says how it is asked, `language` in which language.

    p: plainly, o: in other words, k: as a few words, x: in another language, n: what no line answers.
    """

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


def read_pairs(documents: Iterable[Document], seed: int) -> Iterator[Pair]:
    """Questions in any language, each line that answers among its neighbours by chance."""
    chance = random.Random(seed)
    for document in documents:
        for asked in document.questions:
            silent = [at for at in range(len(document.lines)) if at not in asked.answers]
            starts = chance.sample(silent, min(_BESIDE, len(silent)))
            others = tuple(_window(document, at, silent, chance) for at in starts)
            for at in asked.answers:
                passage = _window(document, at, range(len(document.lines)), chance)
                yield Pair(asked.text, passage, asked.language, document.source, others)


def read_sides(documents: Iterable[Document]) -> Iterator[tuple[str, str]]:
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
    return "\n".join([document.title, *lines] if document.title and chance.random() < _UNDER_TITLE else lines)


def parse(text: str) -> Iterator[dict[str, object]]:
    """Documents as they are written, as rows of a file.

    `=== TITLE | LANGUAGE`, numbered lines, `--`, and questions: how it is asked, the numbers of lines that answer, and
    the question (`o 3,5 What …?`, `x:ja 2 …`, `n 0 …`; 0 is no line).
    """
    for part in re.split(r"^(?==== )", text, flags=re.MULTILINE):
        first, *rest = [line for line in part.splitlines() if line.strip()] or [""]
        if not (title := _TITLE.match(first)):
            continue
        lines: list[str] = []
        questions: list[list[object]] = []
        for line in rest:
            if (found := _LINE.match(line)) and int(found[1]) == len(lines) + 1 and not questions:
                lines.append(found[2])
            elif found := _QUESTION.match(line):
                numbers = [int(one) - 1 for one in found[3].split(",") if int(one)]
                if any(one >= len(lines) for one in numbers):
                    raise ValueError(f"{title[1]}: {line!r} names a line that is not there")
                more = [found[2]] if found[2] else []
                questions.append([found[4], numbers, found[1][0], *more])
            elif line.strip("-"):
                raise ValueError(f"{title[1]}: {line!r} is neither a line nor a question")
        if lines and questions:
            yield {"lang": title[2] or "en", "title": title[1], "lines": lines, "q": questions}


def main() -> None:
    """Pack what was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    with lzma.open(given.out, "wt", encoding="utf-8", preset=9) as out:
        for file in given.files:
            for row in parse(file.read_text(encoding="utf-8")):
                out.write(f"{json.dumps(row, ensure_ascii=False)}\n")


if __name__ == "__main__":
    main()
