"""Questions that people wrote about what other people wrote, with the sentences that they marked as answers.

Each folder beneath FOLDER holds files of one public repository, whose name, licence and commit stand in `SOURCES`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from training.written import Asked, Document


class Source(NamedTuple):
    """Where files come from."""

    name: str
    origin: str
    licence: str


SOURCES = (
    Source("shifts", "modestyachts/squadshifts-website at b7cc4d55: datasets/*_v1.0.json",
           "CC-BY-4.0; new_wiki CC-BY-SA"),
    Source("fairytales", "uci-soe/FairytaleQAData at a24ddc12: data-by-train-split/{section-stories,questions}/train",
           "Apache-2.0"),
)  # fmt: skip
MOST = {"shifts_reddit": 12_000, "shifts_amazon": 12_000, "shifts_wiki": 10_000, "fairytales": 10_000}
_FILES = {"shifts_reddit": "reddit", "shifts_amazon": "amazon_reviews", "shifts_wiki": "new_wiki"}
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)")
_READ = 640  # characters of a section: an answer at the end of a longer one is not read
_MARKED = 40  # characters of an answer: longer ones reach over sentences


def read_documents(folder: Path) -> Iterator[Document]:
    """Every passage that somebody asked about, a sentence a line."""
    for source, name in _FILES.items():
        file = folder / "shifts" / f"{name}_v1.0.json"
        if file.exists():
            yield from _marked(source, json.loads(file.read_text(encoding="utf-8")))
    stories = folder / "fairytales"
    for file in sorted(stories.glob("*-story.csv")):
        yield from _told(file, stories / f"{file.name.removesuffix('-story.csv')}-questions.csv")


def _marked(source: str, whole: dict[str, list[dict[str, list[dict[str, object]]]]]) -> Iterator[Document]:
    for paragraph in (one for part in whole["data"] for one in part["paragraphs"]):
        text, asked = str(paragraph["context"]), []
        starts = [0, *(found.end() for found in _SENTENCE.finditer(text))]
        lines = [text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
        for one in paragraph["qas"]:  # type: ignore[attr-defined]
            answers = [answer for answer in one["answers"] if len(answer["text"]) <= _MARKED]
            at = {max(n for n, start in enumerate(starts) if start <= a["answer_start"]) for a in answers}
            if len(at) == 1:
                asked.append(Asked(one["question"].strip(), tuple(at), "p", "en"))
        yield Document(source, "en", "", tuple(lines), tuple(asked))


def _told(story: Path, questions: Path) -> Iterator[Document]:
    """A tale, a section a line: a question is about one section."""
    with story.open(encoding="utf-8", newline="") as rows:
        sections = {row["section"]: " ".join(row["text"].split()) for row in csv.DictReader(rows)}
    numbers = list(sections)
    asked = []
    with questions.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            section = sections.get(row["cor_section"], "") if row["local-or-sum"] == "local" else ""
            if 0 < len(section) <= _READ:
                asked.append(Asked(row["question"].strip(), (numbers.index(row["cor_section"]),), "p", "en"))
    yield Document("fairytales", "en", "", tuple(sections.values()), tuple(asked))
