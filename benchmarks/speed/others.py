"""Other engines at the same questions and in the same run, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from plainmind.base.errors import PlainmindError
from plainmind.base.model import Progress, ProgressCallback
from plainmind.base.value import asdict, replace, value
from speed.corpus import Corpus, Matrix, Question
from speed.recipe import Reference
from speed.timing import BENCHMARKS, Stopwatch, Times, is_installed, measure
from speed.workload import NEAREST, WARM_UP, exact_neighbours

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
QUESTIONS_WITH_RECALL = 40
_FLAT_BYTES = 2 * 1024**3  # in memory at once, for an engine that keeps all vectors there
_MOST_IN_GRAPH = 100_000  # a graph of a million takes a quarter of an hour to build
_HEAP = 128 * 1024**2
_LINKS, _BREADTH = 16, 256
# Opened on a corpus; what it yields answers a question with the numbers of chunks.
Answering: TypeAlias = Callable[[Question], Iterable[int]]


@value
class Contestant:
    """What somebody else needed for the same questions; `does` says which part of a search that is."""

    name: str
    does: str
    chunks: int
    build_seconds: float
    times: Times
    recall: float | None = None
    bytes: int | None = None


@value
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
    finished = subprocess.run(
        [sys.executable, "-m", "speed.others"],
        cwd=BENCHMARKS,
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise PlainmindError(
            f"{name} could not be measured: {finished.stderr.strip()[-400:]}",
            hint=f"leave it out: --against {','.join(other for other in NAMES if other != name)}",
        )
    for row in json.loads(finished.stdout):
        facts: dict[str, Any] = {**row, "times": Times(**row["times"])}
        yield Contestant(**facts)


@contextmanager
def tantivy(corpus: Corpus, folder: str) -> Iterator[Answering]:
    """Find any of the words with a full-text engine written in Rust."""
    engine: Any = import_module("tantivy")
    schema = engine.SchemaBuilder()
    schema.add_text_field("text", stored=False, tokenizer_name="en_stem")
    schema.add_unsigned_field("number", stored=True)
    place = os.path.join(folder, "tantivy")
    os.makedirs(place)
    index = engine.Index(schema.build(), path=place)
    writer = index.writer(_HEAP, 2)
    for number in range(corpus.files):
        for ordinal, chunk in enumerate(corpus.file(number).chunks, number * corpus.chunks_per_file):
            writer.add_document(engine.Document(text=chunk.text, number=ordinal))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()

    def answer(question: Question) -> list[int]:
        searcher = index.searcher()
        query = index.parse_query(" ".join(question.words), ["text"])
        found = searcher.search(query, NEAREST).hits
        return [searcher.doc(address)["number"][0] for _, address in found]

    yield answer


@contextmanager
def faiss_flat(corpus: Corpus, folder: str) -> Iterator[Answering]:  # noqa: ARG001
    """Compare with every vector, in memory, on one core."""
    faiss: Any = import_module("faiss")
    index = faiss.IndexFlatIP(corpus.dims)
    for _, block in corpus.blocks():
        index.add(block)
    yield _faiss_answer(index)


@contextmanager
def faiss_hnsw(corpus: Corpus, folder: str) -> Iterator[Answering]:  # noqa: ARG001
    """Walk through a graph of neighbours."""
    faiss: Any = import_module("faiss")
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index = faiss.IndexHNSWFlat(corpus.dims, _LINKS, faiss.METRIC_INNER_PRODUCT)
    index.add(_all_vectors(corpus))
    index.hnsw.efSearch = _BREADTH
    yield _faiss_answer(index)


@contextmanager
def usearch_hnsw(corpus: Corpus, folder: str) -> Iterator[Answering]:  # noqa: ARG001
    """Walk through a graph of another make."""
    usearch: Any = import_module("usearch.index")
    index = usearch.Index(
        ndim=corpus.dims, metric="ip", dtype="f32", connectivity=_LINKS, expansion_search=_BREADTH
    )
    vectors = _all_vectors(corpus)
    index.add(np.arange(len(vectors)), vectors)

    def answer(question: Question) -> list[int]:
        return [int(number) for number in index.search(question.vector, NEAREST).keys]

    yield answer


def _faiss_answer(index: Any) -> Answering:
    faiss: Any = import_module("faiss")
    faiss.omp_set_num_threads(1)

    def answer(question: Question) -> Sequence[int]:
        _, numbers = index.search(question.vector[None, :], NEAREST)
        nearest: list[int] = numbers[0].tolist()
        return nearest

    return answer


def _all_vectors(corpus: Corpus) -> Matrix:
    return np.concatenate([block for _, block in corpus.blocks()])


def fits_in_memory(corpus: Corpus) -> bool:
    """Whether all vectors may be held at once."""
    return corpus.chunks * corpus.dims * 4 <= _FLAT_BYTES


def fits_in_graph(corpus: Corpus) -> bool:
    """Whether a graph is built in a time that anybody waits for."""
    return corpus.chunks <= _MOST_IN_GRAPH and fits_in_memory(corpus)


@value
class Engine:
    """One way in which an engine answers."""

    does: str
    opened: Callable[[Corpus, str], AbstractContextManager[Answering]]
    fits: Callable[[Corpus], bool]
    finds_nearest: bool = True  # by vector, so that its recall can be told


ENGINES: Mapping[str, Sequence[Engine]] = {
    "tantivy": (Engine("any word", tantivy, lambda _: True, finds_nearest=False),),
    "usearch": (Engine("HNSW", usearch_hnsw, fits_in_graph),),
    "faiss": (
        Engine("flat", faiss_flat, fits_in_memory),
        Engine("HNSW", faiss_hnsw, fits_in_graph),
    ),
}


def main() -> int:
    """Read the task from stdin, do it, print the contestants as JSON."""
    task = json.load(sys.stdin)
    corpus = Corpus(**task["corpus"])
    course = Course(corpus, corpus.questions(task["questions"]), task["folder"], task["budget_s"])
    print(json.dumps([asdict(one) for one in measured(task["name"], course)]))
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


def _recall(answer: Answering, course: Course) -> float:
    judged = course.questions[:QUESTIONS_WITH_RECALL]
    nearest = exact_neighbours(course.corpus, judged)
    shares = [
        len(set(wanted).intersection(answer(question))) / len(wanted)
        for question, wanted in zip(judged, nearest, strict=True)
    ]
    return sum(shares) / len(shares)


if __name__ == "__main__":
    sys.exit(main())
