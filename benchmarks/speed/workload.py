"""What is timed: an index is filled, searched and synced, a note is edited until the edit is found."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence

import numpy as np

from plainmind.base.errors import PlainmindError
from plainmind.base.model import (
    EVERY_SCOPE,
    EmbeddedChunk,
    EmbedderIdentity,
    FileState,
    IndexFingerprint,
    Progress,
    ProgressCallback,
    SearchFilter,
    Vector,
    sha256_text,
)
from plainmind.base.value import value
from plainmind.embed.protocol import Embedder
from plainmind.index.chunks import terms_of
from plainmind.index.protocol import IndexStore, keyword_candidates, vector_candidates
from plainmind.memory.memory import Memory
from plainmind.search.engine import SearchEngine, SearchSettings
from plainmind.text.terms import query_terms
from speed.corpus import LAST_DAY, Corpus, Matrix, Question, SyntheticFile
from speed.resident import opened
from speed.timing import Bulk, Stopwatch, Times, measure

_LONG_AGO_NS = 1_700_000_000_000_000_000
NEAREST = 24  # as many as the widespread recipe asks of each side for six results
EVERYTHING = SearchFilter(frozenset({"memory"}), EVERY_SCOPE)
WARM_UP = 10
# A log of today that is written to while it is searched: as long as one of a busy day.
EDITED = "memory/being-written.md"
_LINES_BEFORE_EDITS = 80
_EDITS = 30


@value
class Filled:
    """What was put in, and how long the store took for it; inventing the text and finding its terms is apart."""

    text_bytes: int
    store: Bulk
    making_seconds: float


def write_files(corpus: Corpus, workspace: str, *, progress: ProgressCallback | None = None) -> int:
    """Write a corpus as a workspace; how many bytes that were."""
    return sum(
        _written(workspace, _reported(corpus, number, progress)).size for number in range(corpus.files)
    )


def fill(
    corpus: Corpus,
    store: IndexStore,
    fingerprint: IndexFingerprint,
    *,
    workspace: str | None = None,
    progress: ProgressCallback | None = None,
) -> Filled:
    """Make an index of the corpus with its own vectors; with a workspace, write the files there too."""
    text_bytes = 0
    whole, making = Stopwatch(), Stopwatch()
    with whole, store.rebuild(fingerprint, reason="a corpus to measure") as building:
        for number in range(corpus.files):
            with making:
                file = _reported(corpus, number, progress)
                state = _state(file, None) if workspace is None else _written(workspace, file)
                chunks = _embedded(file, corpus.vectors(number))
            text_bytes += state.size
            building.replace_file(state, chunks)
    return Filled(
        text_bytes,
        Bulk(corpus.chunks, whole.seconds - making.seconds, whole.cpu_seconds - making.cpu_seconds),
        making.seconds,
    )


def _reported(corpus: Corpus, number: int, progress: ProgressCallback | None) -> SyntheticFile:
    if progress is not None:
        progress(Progress(number * corpus.chunks_per_file, corpus.chunks))
    return corpus.file(number)


def _embedded(file: SyntheticFile, vectors: Matrix) -> Sequence[EmbeddedChunk]:
    return [
        EmbeddedChunk(chunk, array("f", vector.tobytes()), terms_of(chunk))
        for chunk, vector in zip(file.chunks, vectors, strict=True)
    ]


def _written(workspace: str, file: SyntheticFile) -> FileState:
    """Write a file as if long ago: one that is only seconds old would be read again at the next sync."""
    path = os.path.join(workspace, file.path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as opened:
        opened.write(file.text.encode())
    os.utime(path, ns=(_LONG_AGO_NS, _LONG_AGO_NS))
    return _state(file, os.stat(path))


def _state(file: SyntheticFile, status: os.stat_result | None) -> FileState:
    return FileState(
        path=file.path,
        source="memory",
        hash=sha256_text(file.text),
        size=len(file.text.encode()),
        mtime_ns=status.st_mtime_ns if status else _LONG_AGO_NS,
        inode=status.st_ino if status else 0,
    )


class KnownVectors(Embedder):
    """Knows the vectors of some questions: dimensions are free to choose, and embedding takes no time."""

    def __init__(self, questions: Sequence[Question], identity: EmbedderIdentity) -> None:
        self._vectors = {question.text: as_vector(question.vector) for question in questions}
        self._identity = identity  # that of the index: an engine compares no other vectors with it

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors the index is told to hold."""
        return self._identity

    @property
    def sends_text_to(self) -> None:
        """Nobody."""
        return

    def embed_query(self, text: str) -> Vector:
        """Look it up."""
        return self._vectors[text]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Refuse: documents come with their vectors."""
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing."""


@value
class Searches:
    """Times by kind of search, and the share of the nearest chunks that were found."""

    times: Mapping[str, Times]
    recall: float


def search(corpus: Corpus, store: IndexStore, questions: Sequence[Question], *, budget_s: float) -> Searches:
    """Time whole searches and single lookups; every question is asked once by each kind, after a warm-up."""
    warm_up, asked = questions[:WARM_UP], questions[WARM_UP:]
    with store.reading() as reader:
        made = reader.fingerprint()
    assert made is not None, "an index that was never built cannot be searched"
    embedder = KnownVectors(questions, made.embedder)
    kinds = {
        "hybrid": SearchSettings(),
        "keyword": SearchSettings(use_vectors=False),
        "vector": SearchSettings(use_keywords=False),
    }
    times: dict[str, Times] = {}
    for kind, chosen in kinds.items():
        engine = SearchEngine(store, embedder, chosen)

        def ask(question: Question, engine: SearchEngine = engine) -> None:
            engine.search(question.text, where=EVERYTHING, today=LAST_DAY)

        measure(ask, warm_up, budget_s=budget_s)
        times[kind] = measure(ask, asked, budget_s=budget_s)

    def look_up_words(question: Question) -> None:
        with store.reading() as reader:
            keyword_candidates(reader, query_terms(question.text).terms, where=EVERYTHING, limit=NEAREST)

    def look_up_vector(question: Question) -> None:
        found_by_vector(store, question)

    times["keywordLookup"] = measure(look_up_words, asked, budget_s=budget_s)
    times["vectorLookup"] = measure(look_up_vector, asked, budget_s=budget_s)
    return Searches(times, recall(corpus, store, asked))


def found_by_vector(store: IndexStore, question: Question) -> set[tuple[str, int]]:
    """The places of the chunks that the store takes for the nearest."""
    with store.reading() as reader:
        found = vector_candidates(reader, as_vector(question.vector), where=EVERYTHING, limit=NEAREST)
    return {(candidate.chunk.path, candidate.chunk.ordinal) for candidate in found}


def recall(corpus: Corpus, store: IndexStore, questions: Sequence[Question]) -> float:
    """The share of the truly nearest chunks that the store finds."""
    wanted = exact_neighbours(corpus, questions)
    shares = [
        len({corpus.place(int(chunk)) for chunk in nearest} & found_by_vector(store, question)) / len(nearest)
        for question, nearest in zip(questions, wanted, strict=True)
    ]
    return sum(shares) / len(shares)


def exact_neighbours(
    corpus: Corpus, questions: Sequence[Question], *, count: int = NEAREST
) -> list[list[int]]:
    """The numbers of the nearest chunks, by comparing each question with every vector, in blocks."""
    asked = np.stack([question.vector for question in questions])
    cosines = np.empty((len(questions), 0), dtype=np.float32)
    numbers = np.empty((len(questions), 0), dtype=np.int64)
    for first, block in corpus.blocks():
        own = np.broadcast_to(np.arange(first, first + len(block)), (len(questions), len(block)))
        cosines = np.concatenate([cosines, asked @ block.T], axis=1)
        numbers = np.concatenate([numbers, own], axis=1)
        if cosines.shape[1] > count:
            best = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
            cosines = np.take_along_axis(cosines, best, axis=1)
            numbers = np.take_along_axis(numbers, best, axis=1)
    in_order = np.take_along_axis(numbers, np.argsort(-cosines, axis=1), axis=1)
    return [[int(chunk) for chunk in row] for row in in_order]


def as_vector(row: Matrix) -> Vector:
    """A row in the form in which vectors travel."""
    return array("f", row.astype(np.float32).tobytes())


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
