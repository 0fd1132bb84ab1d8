"""A process of its own that builds one engine, asks it everything, and prints what it took."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass

from plainmind.guests.evaluation.speed import limits
from plainmind.guests.evaluation.speed.contestants import Contestant, Course
from plainmind.guests.evaluation.speed.corpus import Corpus
from plainmind.guests.evaluation.speed.searching import WARM_UP, exact_neighbours
from plainmind.guests.evaluation.speed.timing import Stopwatch, measure

QUESTIONS_WITH_RECALL = 40


@dataclass(frozen=True, slots=True)
class Engine:
    """One way in which an engine answers."""

    does: str
    opened: Callable[[Corpus, str], AbstractContextManager[limits.Answering]]
    fits: Callable[[Corpus], bool]
    finds_nearest: bool = True  # by vector, so that its recall can be told


ENGINES: Mapping[str, Sequence[Engine]] = {
    "tantivy": (Engine("any word", limits.tantivy, lambda _: True, finds_nearest=False),),
    "usearch": (Engine("HNSW", limits.usearch_hnsw, limits.fits_in_graph),),
    "faiss": (
        Engine("flat", limits.faiss_flat, limits.fits_in_memory),
        Engine("HNSW", limits.faiss_hnsw, limits.fits_in_graph),
    ),
}


def main() -> int:
    """Read the task from stdin, do it, print the contestants as JSON."""
    task = json.load(sys.stdin)
    corpus = Corpus(**task["corpus"])
    course = Course(corpus, corpus.questions(task["questions"]), task["folder"], task["budget_s"])
    print(json.dumps([asdict(one) for one in measured(task["name"], course)]))  # noqa: T201 (its parent reads it)
    return 0


def measured(name: str, course: Course) -> Iterator[Contestant]:
    """Build, warm up, ask; each way that bears this size."""
    for engine in ENGINES[name]:
        if not engine.fits(course.corpus):
            continue
        building = Stopwatch()
        with ExitStack() as stack:
            with building:
                answer = stack.enter_context(engine.opened(course.corpus, course.folder))
            for question in course.questions[:WARM_UP]:
                answer(question)
            times = measure(answer, course.questions[WARM_UP:], budget_s=course.budget_s)
            recall = _recall(answer, course) if engine.finds_nearest else None
        yield Contestant(name, engine.does, course.corpus.chunks, building.seconds, times, recall)


def _recall(answer: limits.Answering, course: Course) -> float:
    judged = course.questions[:QUESTIONS_WITH_RECALL]
    nearest = exact_neighbours(course.corpus, judged)
    shares = [
        len(set(wanted).intersection(answer(question))) / len(wanted)
        for question, wanted in zip(judged, nearest, strict=True)
    ]
    return sum(shares) / len(shares)


if __name__ == "__main__":
    sys.exit(main())
