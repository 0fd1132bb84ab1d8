"""Conversations and abstracts of public repositories, read as pairs: what the reranker learns from beside DATA.

Each folder beneath FOLDER holds files of one source, whose name, licence and commit stand in `SOURCES`.
"""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from training.inputs import Pair
from training.talk import Turn, make_questions


class Source(NamedTuple):
    """Where files come from."""

    name: str
    origin: str
    licence: str
    most: int  # questions of one conversation
    named: bool = False  # its speakers keep their names


SOURCES = (
    Source("chitchat", "package chitchat-dataset 0.9.0: dataset.json", "MIT", 16),
    Source(
        "topical", "alexa/Topical-Chat at 7c939229: conversations/{test,valid}_*.json", "CDLA-Sharing-1.0", 16
    ),
    Source(
        "changelog",
        "thechangelog/transcripts at 44a0e16c, without bigtent, news",
        "CC-BY-SA-4.0",
        34,
        named=True,
    ),
    Source("qmsum", "Yale-LILY/QMSum at 83d7768c: data/*/all", "MIT", 60),
    Source("acl", "acl-org/acl-anthology at 70ba9735: data/xml of 2016 and later", "CC-BY-4.0", 1),
    Source("pubmedqa", "pubmedqa/pubmedqa at 1cbae8e9: data/ori_pqal.json", "MIT", 1),
)
MOST = {
    "talk_chitchat": 36_000, "talk_topical": 26_000, "talk_changelog": 52_000, "talk_qmsum": 10_000, "acl": 16_000,
    "pubmedqa": 1_000,
}  # fmt: skip
_LEAST_TURNS = 6
_MOST_TURNS = 60  # of a conversation that is read as one
_WORDS = re.compile(r"[a-z][a-z'-]+")
_SPOKEN = re.compile(r"^\*\*([^*]+?):\*\*\s*(.*)$")
_STAMP = re.compile(r"\\\[[\d:.]+\\\]\s*")
_MARKS = re.compile(r"\[([^\]]*)\]\([^)]*\)|[*_`]")


def read_more(folder: Path, seed: int) -> Iterator[Pair]:
    """Questions made from every conversation, and titles with their abstracts."""
    for source in SOURCES:
        chance = random.Random(f"{seed} {source.name}")
        if source.name == "acl":
            yield from _abstracts(folder / "acl")
            continue
        if source.name == "pubmedqa":
            yield from _studies(folder / "pubmedqa")
            continue
        conversations = [
            turns[at : at + _MOST_TURNS]
            for turns in _READERS[source.name](folder / source.name)
            for at in range(0, max(1, len(turns) - _LEAST_TURNS), _MOST_TURNS)
            if len(turns) >= _LEAST_TURNS
        ]
        frequency = Counter(
            word for turns in conversations for turn in turns for word in _WORDS.findall(turn.text.lower())
        )
        for turns in conversations:
            for made in make_questions(turns, frequency, chance, most=source.most, named=source.named):
                yield Pair(made.question, made.passage, "en", f"talk_{source.name}", made.others)


def _joined(said: Iterator[tuple[str, str]]) -> list[Turn]:
    """What one person says in a row is one turn."""
    turns: list[Turn] = []
    for speaker, spoken in said:
        text = " ".join(spoken.split())
        if not text:
            continue
        if turns and turns[-1].speaker == speaker:
            turns[-1] = Turn(speaker, f"{turns[-1].text} {text}")
        else:
            turns.append(Turn(speaker, text))
    return turns


def _chitchat(folder: Path) -> Iterator[list[Turn]]:
    for one in json.loads(next(folder.rglob("dataset.json")).read_text(encoding="utf-8")).values():
        turns = _joined((said["sender"], said["text"]) for part in one["messages"] for said in part)
        if len({turn.speaker for turn in turns}) == 2:
            yield turns


def _topical(folder: Path) -> Iterator[list[Turn]]:
    for file in sorted(folder.glob("*.json")):
        for one in json.loads(file.read_text(encoding="utf-8")).values():
            yield _joined((said["agent"], said["message"]) for said in one["content"])


def _changelog(folder: Path) -> Iterator[list[Turn]]:
    for file in sorted(folder.rglob("*.md")):
        found = (_SPOKEN.match(line) for line in file.read_text(encoding="utf-8").splitlines())
        turns = _joined((said[1], _MARKS.sub(r"\1", _STAMP.sub("", said[2]))) for said in found if said)
        if len({turn.speaker for turn in turns}) > 1:
            yield [turn for turn in turns if turn.speaker != "Break"]


def _qmsum(folder: Path) -> Iterator[list[Turn]]:
    for file in sorted(folder.rglob("*.json")):
        meeting = json.loads(file.read_text(encoding="utf-8"))
        said = (
            (one["speaker"], re.sub(r"\{[^}]*\}|<[^>]*>", "", one["content"]))
            for one in meeting["meeting_transcripts"]
        )
        turns = _joined(said)
        for at in range(0, len(turns), _MOST_TURNS):
            part = turns[at : at + _MOST_TURNS]
            if len(part) >= _LEAST_TURNS and len({turn.speaker for turn in part}) <= 12:
                yield part


_READERS = {"chitchat": _chitchat, "topical": _topical, "changelog": _changelog, "qmsum": _qmsum}


def _abstracts(folder: Path) -> Iterator[Pair]:
    """A title asks for its abstract; others of the same volume do not answer."""
    for file in sorted(folder.glob("*.xml")):
        papers = []
        for paper in ET.parse(file).getroot().iter("paper"):  # noqa: S314 a file that we name
            title, abstract = (
                "".join(part.itertext()) if part is not None else ""
                for part in (paper.find("title"), paper.find("abstract"))
            )
            if len(title) > 20 and len(abstract) > 300:
                papers.append((" ".join(title.split()), " ".join(abstract.split())[:900]))
        for at, (title, abstract) in enumerate(papers):
            others = [papers[(at + step) % len(papers)][1] for step in (1, 7)] if len(papers) > 10 else []
            yield Pair(title, abstract, "en", "acl", tuple(others))


def _studies(folder: Path) -> Iterator[Pair]:
    for one in json.loads((folder / "ori_pqal.json").read_text(encoding="utf-8")).values():
        yield Pair(one["QUESTION"], " ".join(one["CONTEXTS"])[:900], "en", "pubmedqa")
