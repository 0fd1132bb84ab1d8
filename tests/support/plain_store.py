"""An index that compares and counts everything, without the engine: what other stores are measured against."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType

from plainmind.base.model import (
    EVERY_SCOPE,
    Chunk,
    EmbeddedChunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    Source,
    TermStatistics,
    Vector,
)
from plainmind.base.value import field, replace, value
from plainmind.index import bm25, vectors
from plainmind.index.digest import TermSum, file_digest, index_digest, term_hash
from plainmind.index.protocol import IndexStore
from plainmind.index.reader import IndexCounts
from plainmind.index.store import ANY_CONTENT, leave_as_is
from plainmind.index.writer import check_agreement, check_following, check_same_scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_64_BITS = 2**64 - 1


def score(weights: Mapping[str, float], counted: Mapping[str, int], penalty: float) -> float:
    """The score of one chunk, 0..1: `counted` says how often the terms of the query stand in it.

    Added one by one, in the order of `weights` (`sum` is more exact since Python 3.12, and so not the same
    everywhere): every store does the same operations in the same order, so that scores are equal to the last bit.
    """
    total = 0.0
    for term, weight in weights.items():
        count = counted.get(term, 0)
        if count:
            total += weight * count / (count + penalty)
    return total


def term_sum(counted: Mapping[str, int]) -> TermSum:
    """A sum that tells which terms a chunk has and how often each; the order makes no difference."""
    first = second = 0
    for term, count in counted.items():
        low, high = term_hash(term, count)
        first, second = first + low, second + high
    return first & _64_BITS, second & _64_BITS


@value
class _StoredChunk:
    id: int
    chunk: Chunk
    counted: Mapping[str, int]  # how often each term stands in it
    length: int
    vector: bytes | None  # float16, as on disk, so that every store gives the same scores


@value
class _Index:
    """Never changed, only replaced as a whole: whoever reads one sees nothing of later writes."""

    fingerprint: IndexFingerprint | None = None
    states: Mapping[tuple[Source, str], FileState] = field(default_factory=dict)
    chunks: Mapping[tuple[Source, str], tuple[_StoredChunk, ...]] = field(default_factory=dict)
    next_id: int = 1
    generation: int = 1
    changes: int = 0

    def with_file(self, state: FileState, chunks: Sequence[EmbeddedChunk], keeping: int) -> _Index:
        dims = self.fingerprint.embedder.dims if self.fingerprint else 0
        stored = []
        for id_, each in enumerate(chunks, self.next_id):
            counted = bm25.occurrences(each.terms)
            vector = None if each.vector is None else vectors.round_vector(each.vector, dims)
            stored.append(_StoredChunk(id_, each.chunk, counted, bm25.length_of(counted), vector))
        key = (state.source, state.path)
        kept = self.chunks[key][:keeping] if keeping else ()
        return replace(
            self,
            states={**self.states, key: state},
            chunks={**self.chunks, key: (*kept, *stored)},
            next_id=self.next_id + len(stored),
            changes=self.changes + 1,
        )

    def with_state(self, state: FileState) -> _Index:
        key = (state.source, state.path)
        known = self.states.get(key)
        is_same = known is not None and (known.hash, known.scope) == (state.hash, state.scope)
        return replace(
            self,
            states={**self.states, key: state} if is_same else self.states,
            changes=self.changes + 1,
        )

    def without_file(self, source: Source, path: str) -> _Index:
        kept = [key for key in self.states if key != (source, path)]
        return replace(
            self,
            states={key: self.states[key] for key in kept},
            chunks={key: self.chunks[key] for key in kept},
            changes=self.changes + 1,
        )


class _PlainReader:
    """One version of the index."""

    def __init__(self, index: _Index) -> None:
        self._index = index
        self._all = {each.id: each for chunks in index.chunks.values() for each in chunks}

    def fingerprint(self) -> IndexFingerprint | None:
        return self._index.fingerprint

    def revision(self) -> tuple[int, int]:
        return self._index.generation, self._index.changes

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        return MappingProxyType(self._index.states)

    def counts(self) -> IndexCounts:
        files = Counter(source for source, _ in self._index.states)
        chunks = Counter(dict.fromkeys(files, 0))
        chunks.update(each.chunk.source for each in self._all.values())
        return IndexCounts(files=files, chunks=chunks)

    def term_statistics(self, terms: Sequence[str], *, where: SearchFilter) -> TermStatistics:
        among = self._weighed_by(where)
        counted = {term: _chunks_with(bm25.storable_term(term), among) for term in terms}
        return TermStatistics(chunk_count=len(among), chunks_with=counted)

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:
        ids = self._admitted(where)
        scores = self.keyword_scores(terms, ids, where=where)
        return _best({id_: score for id_, score in zip(ids, scores, strict=True) if score}, limit)

    def expect_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> None:
        """Do nothing: there is nothing to begin with."""

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:
        near = self._cosines(vector)
        return _best({id_: near[id_] for id_ in self._admitted(where) if id_ in near}, limit)

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:
        return [self._all[id_].chunk for id_ in ids]

    def keyword_scores(self, terms: Sequence[str], ids: Sequence[int], *, where: SearchFilter) -> list[float]:
        asked, among = bm25.distinct_terms(terms), self._weighed_by(where)
        if not asked or not among:
            return [0.0] * len(ids)
        weights = bm25.term_weights(len(among), {term: _chunks_with(term, among) for term in asked})
        average = sum(each.length for each in among) / len(among)
        stored = [self._all[id_] for id_ in ids]
        return [score(weights, each.counted, bm25.length_penalty(each.length, average)) for each in stored]

    def term_counts(self, terms: Sequence[str], ids: Sequence[int]) -> list[bytes]:
        """For each of some ids a byte a term: how often it stands in the chunk."""
        stored = [bm25.storable_term(term) for term in terms]
        return [bytes([self._all[id_].counted.get(term, 0) for term in stored]) for id_ in ids]

    def similarities(self, vector: Vector, ids: Sequence[int]) -> list[float]:
        near = self._cosines(vector)
        return [vectors.cosine_score(near.get(id_, 0.0)) for id_ in ids]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        chunks = (each.chunk for each in self._index.chunks.get((source, path), ()))
        return [each for each in chunks if each.start_line <= last_line and each.end_line >= first_line]

    def vectors_of(self, source: Source, path: str) -> list[Vector | None]:
        stored = self._index.chunks.get((source, path), ())
        return [None if each.vector is None else vectors.unpack_vector(each.vector) for each in stored]

    def _admitted(self, where: SearchFilter) -> list[int]:
        """The ids of the chunks that a filter lets through."""
        index = self._index
        admitted = [key for key, file in index.states.items() if where.admits(file.source, file.scope)]
        return [each.id for key in admitted for each in index.chunks[key]]

    def _weighed_by(self, where: SearchFilter) -> list[_StoredChunk]:
        """What tells how rare a word is: all there is, for who may see all of it; else what they may see."""
        if where.scopes == EVERY_SCOPE:
            return list(self._all.values())
        admitted = (self._all[id_] for id_ in self._admitted(where))
        return [each for each in admitted if each.length]

    def _cosines(self, vector: Vector) -> dict[int, float]:
        fingerprint = self._index.fingerprint
        if fingerprint is None:
            return {}
        query = vectors.pack_vector(vector, fingerprint.embedder.dims)
        _, dots = vectors.choose_dots()
        with_vector = [each for each in self._all.values() if each.vector is not None]
        block = b"".join(each.vector or b"" for each in with_vector)
        cosines = dots(query, block, len(vector)) if block else []
        return {each.id: cosine for each, cosine in zip(with_vector, cosines, strict=True)}


def _best(found: Mapping[int, float], limit: int) -> list[int]:
    return [id_ for id_, _ in bm25.best(found, limit)]


def _chunks_with(term: str, among: Sequence[_StoredChunk]) -> int:
    return sum(term in each.counted for each in among)


class PlainStore:
    """Keeps the index in this process; gone when it ends."""

    neighbours = None

    def __init__(self, fingerprint: IndexFingerprint | None = None) -> None:
        self._index = _Index(fingerprint=fingerprint)
        self._writing = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[_PlainReader]:
        """Look at the index as it is now."""
        yield _PlainReader(self._index)

    def replace_file(
        self,
        file: FileState,
        chunks: Sequence[EmbeddedChunk],
        *,
        expecting: IndexFingerprint | None = None,
        replacing: str | None = ANY_CONTENT,
        keeping: int = 0,
    ) -> bool:
        """Swap in the chunks of `file`, all or nothing."""
        check_following(chunks, keeping)
        with self._writing:
            check_agreement(self._index.fingerprint, expecting)
            key = (file.source, file.path)
            known = self._index.states.get(key)
            if replacing not in {ANY_CONTENT, known.hash if known else None}:
                return False
            if keeping > len(self._index.chunks.get(key, ())):
                return False
            if keeping and known:
                check_same_scope(file, known.scope)
            self._index = self._index.with_file(file, chunks, keeping)
            return True

    def touch_file(self, file: FileState) -> None:
        """Record a new size, mtime or inode of a file whose text did not change."""
        with self._writing:
            self._index = self._index.with_state(file)

    def remove_file(self, source: Source, path: str) -> None:
        """Drop a file and all its chunks."""
        with self._writing:
            self._index = self._index.without_file(source, path)

    def erase(self, source: Source, *paths: str) -> None:
        """Drop files; there are no bytes on a disk to scrub."""
        for path in paths:
            self.remove_file(source, path)

    def joined(self) -> AbstractContextManager[None]:
        """Make each change at once: there is nothing to gain."""
        return nullcontext()

    @contextmanager
    def rebuild(
        self,
        fingerprint: IndexFingerprint,
        *,
        reason: str,
        catch_up: Callable[[IndexStore], None] = leave_as_is,
    ) -> Iterator[PlainStore]:
        """Fill a second store, then take its index."""
        beside = PlainStore(fingerprint)
        yield beside
        with self._writing:
            catch_up(beside)
            self._index = replace(beside._index, generation=self._index.generation + 1)

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        return {"driver": "memory", "path": None}

    def sizes(self) -> Mapping[str, int]:
        """Bytes by part."""
        chunks = [each for of_file in self._index.chunks.values() for each in of_file]
        return {
            "chunks": len(chunks),
            "texts": sum(len(each.chunk.text.encode("utf-8", "surrogatepass")) for each in chunks),
            "vectors": sum(len(each.vector or b"") for each in chunks),
        }

    def digest(self) -> str:
        """Hash the whole index."""
        index = self._index
        return index_digest(
            index.fingerprint,
            (
                file_digest(
                    state, ((each.chunk, term_sum(each.counted), each.vector) for each in index.chunks[key])
                )
                for key, state in index.states.items()
            ),
        )

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
