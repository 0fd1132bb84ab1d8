"""A memory in use: the first sync of real Markdown, one with nothing to do, an edit until it is found, questions."""

from __future__ import annotations

import os
from collections.abc import Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.model import ProgressCallback
from plainmind.guests.evaluation.speed.corpus import Corpus, Question
from plainmind.guests.evaluation.speed.filling import write_files
from plainmind.guests.evaluation.speed.opening import opened
from plainmind.guests.evaluation.speed.timing import Bulk, Stopwatch, Times, measure
from plainmind.guests.evaluation.speed.vocabulary import LAST_DAY
from plainmind.memory.facade import Memory

# A log of today that is written to while it is searched: as long as one of a busy day.
EDITED = "memory/being-written.md"
_LINES_BEFORE_EDITS = 80
_EDITS = 30


def index_markdown(
    corpus: Corpus, folder: str, *, budget_s: float, progress: ProgressCallback | None = None
) -> tuple[Bulk, Times, int]:
    """Sync a workspace for the first time, then again with nothing to do; both, and the number of files."""
    workspace = os.path.join(folder, "workspace")
    write_files(corpus, workspace)
    with opened(workspace, os.path.join(folder, "home")) as memory:
        with Stopwatch() as first:
            report = memory.sync(progress=progress)
        if len(report.indexed) != corpus.files:
            raise PlainmindError(f"{len(report.indexed)} of {corpus.files} files were indexed")

        def again(_: int) -> None:
            if memory.sync().unchanged != corpus.files:
                raise PlainmindError("a sync with nothing to do has done something")

        nothing = measure(again, range(50), budget_s=budget_s)
    return Bulk(report.chunks, first.seconds, first.cpu_seconds), nothing, corpus.files


def use(memory: Memory, questions: Sequence[Question], *, budget_s: float) -> dict[str, Times]:
    """Ask, with the look for changed files before each answer; then write a line and ask until it is found."""
    asked = [question.text for question in questions]

    def ask(text: str) -> None:
        memory.search(text, today=LAST_DAY)

    measure(ask, asked[:10], budget_s=budget_s)
    warm = measure(ask, asked[10:], budget_s=budget_s)
    path = os.path.join(memory.workspace, EDITED)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"- {asked[at % len(asked)]} ({at})\n" for at in range(_LINES_BEFORE_EDITS))
    memory.sync()
    return {
        "search": warm,
        "edit": measure(lambda at: _edit(memory, path, at), range(_EDITS), budget_s=budget_s),
    }


def _edit(memory: Memory, path: str, number: int) -> None:
    """Add a line with a word that stands nowhere else, and find it."""
    word = f"zyx{number:04}wvu"
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"- The new word is {word}.\n")
    found = memory.search(word, today=LAST_DAY).hits
    if not found or word not in found[0].snippet:
        raise PlainmindError(f"an edit of `{EDITED}` was not found by the search after it")
