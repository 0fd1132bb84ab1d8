"""What our engine finds for questions that we wrote: passages as a reranker is given them.

Documents that could be one memory are put into one workspace, some at a time, and every question is asked there.
"""

from __future__ import annotations

import itertools
import random
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from plainmind.base.model import SearchHit
from plainmind.memory.memory import Memory
from plainmind.search.second_look import windows_of
from training.inputs import Pair
from training.written import Asked, Document

OTHERS = 12
_FIRST = 6  # of the others, those that the engine put before the rest
_TOGETHER = 24  # documents of a workspace
_ALONE = 8  # where people speak of themselves: more of them would answer for each other
_SPOKEN_OF = ("written_friends", "written_messages", "written_chat", "written_tongues", "written_words")
_ASKED_FOR = 20
_SNIPPET = 700
_TALK = re.compile(r"[^\s:][^:]{0,30}: ")


def found_pairs(documents: Iterable[Document], seed: int) -> Iterator[Pair]:
    """Questions in any language, with up to two passages that answer and some that do not."""
    kinds = sorted(documents, key=_kind)
    for (source, language), some in itertools.groupby(kinds, key=_kind):
        chance = random.Random(f"{seed} {source} {language}")
        ones = list(some)
        size = _TOGETHER if source in _SPOKEN_OF else _ALONE
        for at in range(0, len(ones), size):
            yield from _ask(ones[at : at + size], chance)


def _kind(document: Document) -> tuple[str, str]:
    return document.source, document.language


def _ask(documents: Sequence[Document], chance: random.Random) -> Iterator[Pair]:
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        places = [write_note(workspace, number, one) for number, one in enumerate(documents)]
        settings = {"provider": "builtin", "sync.onSearch": False}
        home = str(Path(folder, "home"))
        with Memory.from_environment(
            {}, workspace=str(workspace), home=home, config=settings, cwd=folder
        ) as memory:
            memory.sync()
            for document, (path, first) in zip(documents, places, strict=True):
                for asked in document.questions:
                    if asked.answers:
                        hits = memory.search(
                            asked.text, max_results=_ASKED_FOR, min_score=0.0, snippet_chars=_SNIPPET
                        ).hits
                        lines = [first + at for at in asked.answers]
                        yield from _pairs(document.source, asked, hits, path, lines, chance)


def _pairs(
    source: str, asked: Asked, hits: Sequence[SearchHit], path: str, lines: Sequence[int], chance: random.Random
) -> Iterator[Pair]:  # fmt: skip
    answering: list[str] = []
    others: list[str] = []
    for hit in hits:
        texts = hit.snippet.split("\n")
        there = [line for line in lines if hit.path == path and hit.start_line <= line <= hit.end_line]
        kept = [texts[line - hit.start_line] for line in there]
        for window in windows_of(hit):
            if window:
                (answering if any(one in window for one in kept) else others).append(window)
    first, rest = others[:_FIRST], others[_FIRST:]
    beside = (*first, *chance.sample(rest, min(OTHERS - len(first), len(rest))))
    for passage in answering[:2]:
        yield Pair(asked.text, passage, asked.language, source, beside)


def write_note(workspace: Path, number: int, document: Document) -> tuple[str, int]:
    """A document as a note: its path, and the number of the line that its first line has there."""
    headings = [part.strip() for part in document.title.split("›")]
    text = "".join(f"{'#' * (level + 1)} {one}\n" for level, one in enumerate(headings) if one)
    is_talk = sum(bool(_TALK.match(line)) for line in document.lines) * 2 > len(document.lines)
    lines = document.lines if is_talk else [f"- {line}" for line in document.lines]
    name = re.sub(r"[^\w-]+", "-", headings[0].removesuffix(".md")).strip("-")[:60] or "note"
    path = f"memory/{name}-{number}.md"
    file = workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    return path, text.count("\n") + 1
