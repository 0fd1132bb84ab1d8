"""Engines that do one half of a search and nothing else: what is possible when nothing must be kept consistent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from plainmind.guests.evaluation.speed.corpus import Corpus, Question
from plainmind.guests.evaluation.speed.searching import NEAREST
from plainmind.guests.evaluation.speed.vectors import Matrix

# Opened on a corpus; what it yields answers a question with the numbers of chunks.
Answering: TypeAlias = Callable[[Question], Iterable[int]]

_FLAT_BYTES = 2 * 1024**3  # in memory at once, for an engine that keeps all vectors there
_MOST_IN_GRAPH = 100_000  # a graph of a million takes a quarter of an hour to build
_HEAP = 128 * 1024**2
_LINKS, _BREADTH = 16, 256


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
    yield _asking_faiss(index)


@contextmanager
def faiss_hnsw(corpus: Corpus, folder: str) -> Iterator[Answering]:  # noqa: ARG001
    """Walk through a graph of neighbours."""
    faiss: Any = import_module("faiss")
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index = faiss.IndexHNSWFlat(corpus.dims, _LINKS, faiss.METRIC_INNER_PRODUCT)
    index.add(_all_vectors(corpus))
    index.hnsw.efSearch = _BREADTH
    yield _asking_faiss(index)


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


def _asking_faiss(index: Any) -> Answering:
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
