"""Ask every question of a dataset, each workspace indexed in a home that is thrown away afterwards."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from typing import Any, Protocol, TypeAlias

from plainmind.base.model import CERTAIN, SOURCES, Progress, ProgressCallback
from plainmind.base.value import field, value
from plainmind.guests.evaluation.dataset import AskedWorkspace
from plainmind.guests.evaluation.scoring import Answer, Shown, means, scores_of
from plainmind.memory.memory import Memory
from plainmind.sessions.transcripts import Transcripts

SESSIONS = "sessions"


@value
class Asking:
    """How questions are asked; None is whatever the settings say, as for an agent that does not say either."""

    max_results: int = 10
    snippet_chars: int | None = None
    min_score: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    deep: bool = False


class Searcher(Protocol):
    """Answers questions about one workspace."""

    @property
    def notes(self) -> Sequence[str]:
        """What could not be read or consulted."""

    def ask(self, text: str, *, today: date) -> list[Shown]:
        """The results, best first."""


Opener: TypeAlias = Callable[[str, Asking], AbstractContextManager[Searcher]]


@value
class Evaluation:
    """All answers of a run, in the order of the dataset."""

    answers: tuple[Answer, ...]
    indexing_seconds: float
    notes: tuple[str, ...] = ()


@value
class Summary:
    """A run in figures. `silent` is the share of questions without an answer for which nothing was shown as certain."""

    count: int
    overall: Mapping[str, float]
    by_category: Mapping[str, tuple[int, Mapping[str, float]]]
    absent_count: int
    silent: float | None
    mean_ms: float
    p95_ms: float


def evaluate(
    workspaces: Sequence[AskedWorkspace],
    opened: Opener,
    asking: Asking,
    *,
    progress: ProgressCallback | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Evaluation:
    """Index each workspace and ask its questions; only the asking is timed as such."""
    answers: list[Answer] = []
    notes: dict[str, None] = {}
    indexing = 0.0
    total = sum(len(workspace.questions) for workspace in workspaces)
    for workspace in workspaces:
        begun = clock()
        with opened(workspace.folder, asking) as searcher:
            indexing += clock() - begun
            for question in workspace.questions:
                asked = clock()
                shown = searcher.ask(question.text, today=question.today)
                answers.append(Answer(workspace.name, question, tuple(shown), (clock() - asked) * 1000))
                if progress is not None:
                    progress(Progress(len(answers), total, workspace.name))
            notes |= dict.fromkeys(f"{workspace.name}: {note}" for note in searcher.notes)
    return Evaluation(tuple(answers), indexing, tuple(notes))


def summarise(answers: Sequence[Answer]) -> Summary:
    """Score all answers. Questions without evidence are counted apart: for them, showing nothing is right."""
    scored = [
        (one.question.category, scores_of(one.question, one.shown))
        for one in answers
        if one.question.evidence
    ]
    absent = [one for one in answers if not one.question.evidence]
    rows: dict[str, list[Mapping[str, float]]] = {}
    for category, row in scored:
        rows.setdefault(category, []).append(row)
    times = sorted(one.milliseconds for one in answers)
    return Summary(
        count=len(scored),
        overall=means([row for _, row in scored]) if scored else {},
        by_category={name: (len(rows[name]), means(rows[name])) for name in sorted(rows)},
        absent_count=len(absent),
        silent=sum(not _is_certain(one) for one in absent) / len(absent) if absent else None,
        mean_ms=sum(times) / len(times) if times else 0.0,
        p95_ms=times[min(len(times) - 1, int(len(times) * 0.95))] if times else 0.0,
    )


def _is_certain(answer: Answer) -> bool:
    return any(shown.score >= CERTAIN for shown in answer.shown)


class MemorySearcher:
    """The memory itself, asked as an agent asks it."""

    def __init__(self, memory: Memory, asking: Asking) -> None:
        self._memory = memory
        self._asking = asking
        self._notes: dict[str, None] = {}
        report = memory.sync()
        left_out = (*report.skipped, *report.failed)
        self._notes |= dict.fromkeys(f"not indexed: {one.path}: {one.reason}" for one in left_out)
        self._notes |= dict.fromkeys(report.degraded)

    @property
    def notes(self) -> Sequence[str]:
        """What was not indexed or not consulted."""
        return tuple(self._notes)

    def ask(self, text: str, *, today: date) -> list[Shown]:
        """Search; the lines of a hit are those of its snippet."""
        result = self._memory.search(
            text,
            max_results=self._asking.max_results,
            min_score=self._asking.min_score,
            snippet_chars=self._asking.snippet_chars,
            sources=SOURCES,
            today=today,
            deep=self._asking.deep,
        )
        self._notes |= dict.fromkeys(result.degraded)
        return [
            Shown(hit.path, hit.start_line, hit.end_line, len(hit.snippet), hit.score) for hit in result.hits
        ]


@contextmanager
def opened_memory(folder: str, asking: Asking) -> Iterator[MemorySearcher]:
    """Index a workspace, and its transcripts if there are any, with the defaults rather than the user's settings.

    Nothing is written beneath `folder`. It does not change meanwhile, so questions do not look for changes.
    """
    sessions = os.path.join(folder, SESSIONS)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PLAINMIND_")}
    with tempfile.TemporaryDirectory(prefix="plainmind-eval-") as home:
        memory = Memory.from_environment(
            environ,
            workspace=folder,
            home=home,
            # A key in the environment must neither change what is measured nor send it away.
            config={"provider": "builtin", **asking.settings, "sync.onSearch": False},
            cwd=home,
            more_sources=[Transcripts(sessions)] if os.path.isdir(sessions) else [],
        )
        with memory:
            yield MemorySearcher(memory, asking)
