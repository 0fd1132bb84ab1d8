"""Others at the same questions and in the same run: the widespread recipe, and single engines as limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from plainmind.base.errors import PlainmindError
from plainmind.base.model import Progress, ProgressCallback
from plainmind.guests.evaluation.speed.corpus import Corpus, Question
from plainmind.guests.evaluation.speed.machine import is_installed
from plainmind.guests.evaluation.speed.reference import Reference
from plainmind.guests.evaluation.speed.searching import WARM_UP
from plainmind.guests.evaluation.speed.timing import Times, measure

SEED = "seed"
ALL_WORDS, ANY_WORD = "hybrid, all words", "hybrid, any word"
# By name the module that must be there.
MODULES: Mapping[str, str] = {
    SEED: "sqlite_vec",
    "tantivy": "tantivy",
    "usearch": "usearch",
    "faiss": "faiss",
}
NAMES = tuple(MODULES)
MOST_OF_REFERENCE = 100_000  # a search of it takes a second there, and grows with the chunks
_ENGINES = "plainmind.guests.evaluation.speed.engines"


@dataclass(frozen=True, slots=True)
class Contestant:
    """What somebody else needed for the same questions; `does` says which part of a search that is."""

    name: str
    does: str
    chunks: int
    build_seconds: float
    times: Times
    recall: float | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """What everybody is given: the same text and vectors, the same questions, and as many seconds for them."""

    corpus: Corpus
    questions: Sequence[Question]
    folder: str
    budget_s: float


def missing(names: Sequence[str]) -> list[str]:
    """Which of the contestants are not installed."""
    return [name for name in names if not is_installed(MODULES[name])]


def compete(
    names: Sequence[str], course: Course, *, progress: ProgressCallback | None = None
) -> Iterator[Contestant]:
    """Measure those that are installed."""
    absent = missing(names)
    for name in names:
        if name in absent:
            continue
        if progress is not None:
            progress(Progress(0, 1, name))
        yield from _recipe(course, progress) if name == SEED else _in_its_own_process(name, course)


def _recipe(course: Course, progress: ProgressCallback | None) -> Iterator[Contestant]:
    """The recipe at a size that it can bear: with all words of a question, as it asks, and with any."""
    corpus = replace(course.corpus, chunks=min(course.corpus.chunks, MOST_OF_REFERENCE))
    reference = Reference(os.path.join(course.folder, "reference.sqlite"), corpus.dims)
    try:
        seconds = reference.fill(corpus, progress=progress)
        for does, any_word in ((ALL_WORDS, False), (ANY_WORD, True)):
            ask = partial(reference.search, any_word=any_word)
            measure(ask, course.questions[:2], budget_s=0, least=2)
            times = measure(ask, course.questions[WARM_UP:], budget_s=course.budget_s)
            yield Contestant(SEED, does, corpus.chunks, seconds, times, 1.0, reference.size())
    finally:
        reference.close()


def _in_its_own_process(name: str, course: Course) -> Iterator[Contestant]:
    """Start an engine apart: those for vectors bring kernels of the same names as ours, and ours stop working."""
    task = {
        "name": name,
        "corpus": asdict(course.corpus),
        "questions": len(course.questions),
        "folder": course.folder,
        "budget_s": course.budget_s,
    }
    finished = subprocess.run(  # noqa: S603 (our own module)
        [sys.executable, "-m", _ENGINES], input=json.dumps(task), capture_output=True, text=True, check=False
    )
    if finished.returncode:
        raise PlainmindError(
            f"{name} could not be measured: {finished.stderr.strip()[-400:]}",
            hint=f"leave it out: --against {','.join(other for other in NAMES if other != name)}",
        )
    for row in json.loads(finished.stdout):
        facts: dict[str, Any] = {**row, "times": Times(**row["times"])}
        yield Contestant(**facts)
