"""Searches of an index with known vectors: how long each kind takes, and whether the nearest are really found."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plainmind.base.model import EVERY_SCOPE, EmbedderIdentity, SearchFilter, Vector
from plainmind.embed.protocol import Embedder
from plainmind.guests.evaluation.speed.corpus import Corpus, Question
from plainmind.guests.evaluation.speed.timing import Times, measure
from plainmind.guests.evaluation.speed.vectors import Matrix
from plainmind.guests.evaluation.speed.vocabulary import LAST_DAY
from plainmind.index.protocol import IndexStore
from plainmind.search.engine import SearchEngine
from plainmind.search.settings import SearchSettings
from plainmind.text.terms import query_terms

NEAREST = 24  # as many as the widespread recipe asks of each side for six results
EVERYTHING = SearchFilter(frozenset({"memory"}), EVERY_SCOPE)
WARM_UP = 10


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


@dataclass(frozen=True, slots=True)
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
            reader.keyword_candidates(query_terms(question.text).terms, where=EVERYTHING, limit=NEAREST)

    def look_up_vector(question: Question) -> None:
        found_by_vector(store, question)

    times["keywordLookup"] = measure(look_up_words, asked, budget_s=budget_s)
    times["vectorLookup"] = measure(look_up_vector, asked, budget_s=budget_s)
    return Searches(times, recall(corpus, store, asked))


def found_by_vector(store: IndexStore, question: Question) -> set[tuple[str, int]]:
    """The places of the chunks that the store takes for the nearest."""
    with store.reading() as reader:
        found = reader.vector_candidates(as_vector(question.vector), where=EVERYTHING, limit=NEAREST)
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
