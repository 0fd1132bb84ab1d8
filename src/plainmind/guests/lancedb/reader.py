"""One consistent view of an index: the questions that a search asks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from plainmind.base.model import (
    EVERY_SCOPE,
    Candidate,
    Chunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    Source,
    TermStatistics,
    Vector,
)
from plainmind.guests.lancedb.library import telling_faults
from plainmind.guests.lancedb.rows import CHUNK, among, vectors_of
from plainmind.guests.lancedb.vectors import probes_for
from plainmind.guests.lancedb.view import Overview, Segment, View
from plainmind.index import bm25
from plainmind.index.bm25 import Postings, WordPart, word_arithmetic
from plainmind.index.reader import IndexCounts
from plainmind.index.vectors import choose_dots, cosine_score, packed, unpacked

EXACT_UP_TO = 1_024  # so few are all compared here, also in a large index
# LanceDB compares in its own precision, and all others roughly: so many more are compared again here, exactly.
_MARGIN = 16
_ROUGHLY_KEPT = 12  # times the wanted number, compared again by LanceDB with the vectors themselves


class _Sight:
    """What words are weighed by, for those who see the same."""

    def __init__(self, audiences: frozenset[int] | None, chunk_count: int, average_length: float) -> None:
        self.audiences = audiences  # None: all
        self.chunk_count = chunk_count
        self.average_length = average_length
        self.counted: dict[str, int] = {}  # by term: in how many chunks it stands


class LanceReader:
    """Reads one version of one table."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._postings: dict[tuple[int, str], Postings] = {}
        self._fetched: set[str] = set()
        self._sights: dict[SearchFilter | None, _Sight] = {}

    @property
    def _now(self) -> Overview:
        """What the version holds: read by the first who asks for more than its number."""
        return self._view.overview

    def fingerprint(self) -> IndexFingerprint | None:
        """How this index was made."""
        return self._view.pointer.fingerprint

    def revision(self) -> tuple[int, int]:
        """Which state of which generation this is."""
        return self._view.pointer.generation, self._view.pointer.revision

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""
        return self._now.files

    def counts(self) -> IndexCounts:
        """Files and chunks by source."""
        return self._now.counts()

    def term_statistics(self, terms: Sequence[str], *, where: SearchFilter) -> TermStatistics:
        """In how many chunks each term stands."""
        stored = {term: bm25.storable_term(term) for term in terms}
        sight = self._sight(where)
        self._count(list(stored.values()), sight)
        counted = {term: sight.counted[own] for term, own in stored.items()}
        return TermStatistics(chunk_count=sight.chunk_count, chunks_with=counted)

    def proposals(self) -> LanceReader:
        """What a search asks before it reads any text: this view, asked for ids."""
        return self

    def keyword_candidates(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks with any of `terms`, by BM25, best first."""
        return self._candidates(self._ranked_by_words(terms, where, limit))

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the same."""
        return [id_ for id_, _ in self._ranked_by_words(terms, where, limit)]

    def expect_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> None:
        """Do nothing: all of it is computed here."""

    def vector_candidates(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks nearest to `vector`, best first."""
        return self._candidates(self._ranked_by_vector(vector, where, limit))

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the same."""
        return [id_ for id_, _ in self._ranked_by_vector(vector, where, limit)]

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:
        """The chunks of ids that were proposed; those beside them come along, for what is shown may reach into them."""
        found = self._view.chunks([*ids, *self._now.beside(ids)])
        return [found[id_] for id_ in ids]

    def term_counts(self, terms: Sequence[str], ids: Sequence[int]) -> list[bytes]:
        """For each id a byte a term: how often it stands in the chunk."""
        stored = [bm25.storable_term(term) for term in terms]
        self._fetch(stored)
        counted: dict[int, bytes] = {}
        for segment, own in self._by_segment(ids):
            postings = [self._postings.get((segment.number, term)) for term in stored]
            positions = segment.ids.searchsorted(own).tolist()
            arithmetic = word_arithmetic(len(own) * len(stored))
            counted.update(zip(own, arithmetic.term_counts(postings, positions), strict=True))
        return [counted[id_] for id_ in ids]

    def _ranked_by_words(
        self, terms: Sequence[str], where: SearchFilter, limit: int
    ) -> list[tuple[int, float]]:
        sight = self._sight(where)
        weights = self._weights(terms, sight)
        if not weights or limit <= 0:
            return []
        audiences = self._now.admitted(where)
        parts = [
            WordPart(segment.first_place, self._now.lengths_for(segment, audiences), postings)
            for segment in self._now.segments
            if any(postings := [self._postings.get((segment.number, term)) for term in weights])
        ]
        arithmetic = word_arithmetic(sum(sight.counted[term] for term in weights))
        ranked = arithmetic.best_by_words(parts, list(weights.values()), sight.average_length, limit)
        return [(self._id_at(place), score) for place, score in ranked]

    def _ranked_by_vector(
        self, vector: Vector, where: SearchFilter, limit: int
    ) -> Sequence[tuple[int, float]]:
        if self._view.pointer.fingerprint is None:
            return []
        query = packed(vector, self._view.pointer.dims)
        audiences = self._now.admitted(where)
        admitted = self._now.admitted_indexes(audiences)
        if limit <= 0 or not len(admitted):
            return []
        block = self._view.block()
        if block is not None and len(admitted) > EXACT_UP_TO:
            admitted = block.near(query, admitted, 2 * limit + _MARGIN)
        if block is not None or len(admitted) <= EXACT_UP_TO:
            near = self._cosines(query, self._now.ids[admitted].tolist())
        else:
            near = self._nearest(query, audiences, min(limit + _MARGIN, len(admitted)))
        return bm25.best(near, limit)

    def keyword_scores(self, terms: Sequence[str], ids: Sequence[int], *, where: SearchFilter) -> list[float]:
        """The keyword score of given candidates."""
        sight = self._sight(where)
        weights = self._weights(terms, sight)
        if not weights:
            return [0.0] * len(ids)
        scored: dict[int, float] = {}
        arithmetic = word_arithmetic(len(ids) * len(weights))
        for segment, own in self._by_segment(ids):
            postings = [self._postings.get((segment.number, term)) for term in weights]
            part = WordPart(segment.first_place, memoryview(segment.lengths), postings)
            positions = segment.ids.searchsorted(own).tolist()
            scores = arithmetic.word_scores(part, list(weights.values()), sight.average_length, positions)
            scored.update(zip(own, scores, strict=True))
        return [scored[id_] for id_ in ids]

    def similarities(self, vector: Vector, ids: Sequence[int]) -> list[float]:
        """The cosine of given candidates."""
        if self._view.pointer.fingerprint is None:
            return [0.0] * len(ids)
        near = self._cosines(packed(vector, self._view.pointer.dims), ids)
        return [cosine_score(near.get(id_, 0.0)) for id_ in ids]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""
        now = self._now
        found = (now.owners == now.owner_of(source, path)) & (now.firsts <= last_line)
        chunks = self._view.chunks(now.ids[found & (now.lasts >= first_line)].tolist())
        return sorted(chunks.values(), key=lambda chunk: chunk.ordinal)

    def vectors_of(self, source: Source, path: str) -> list[Vector | None]:
        """The vectors of the chunks of one file, in their order."""
        now = self._now
        found = now.owners == now.owner_of(source, path)
        ordinals = dict(zip(now.ids[found].tolist(), now.ordinals[found].tolist(), strict=True))
        vectors = self._view.vectors(list(ordinals))
        in_order = sorted(ordinals, key=lambda id_: ordinals[id_])
        return [unpacked(vectors[id_]) if id_ in vectors else None for id_ in in_order]

    def _sight(self, where: SearchFilter) -> _Sight:
        """What words are weighed by: all there is, for who may see all of it; else what they may see."""
        key = None if where.scopes == EVERY_SCOPE else where
        found = self._sights.get(key)
        if found is None:
            now = self._now
            if key is None:
                found = _Sight(None, now.chunk_count, now.average_length)
            else:
                audiences = now.admitted(where)
                lengths = now.lengths[now.admitted_indexes(audiences)]
                count = int((lengths > 0).sum())
                found = _Sight(audiences, count, int(lengths.sum(dtype="int64")) / (count or 1))
            self._sights[key] = found
        return found

    def _fetch(self, terms: Sequence[str]) -> None:
        """Read the postings of terms."""
        new = [term for term in dict.fromkeys(terms) if term and term not in self._fetched]
        if new:
            self._postings.update(self._view.postings(new))
            self._fetched.update(new)

    def _count(self, terms: Sequence[str], sight: _Sight) -> None:
        """Count in how many of the chunks that may be seen each term stands."""
        self._fetch(terms)
        new = [term for term in dict.fromkeys(terms) if term not in sight.counted]
        if not new:
            return
        found = [(segment, self._postings.get((segment.number, term)), term)
                 for segment in self._now.segments for term in new]  # fmt: skip
        arithmetic = word_arithmetic(sum(len(each.counts) for _, each, _ in found if each))
        sight.counted.update(dict.fromkeys(new, 0))
        for segment, postings, term in found:
            if postings is not None:
                lengths = self._now.lengths_for(segment, sight.audiences)
                sight.counted[term] += arithmetic.count_living(postings, lengths)

    def _weights(self, terms: Sequence[str], sight: _Sight) -> Mapping[str, float]:
        """The weight of each distinct term, the heaviest first."""
        asked = bm25.distinct_terms(terms)
        if not asked or not sight.chunk_count:
            return {}
        self._count(asked, sight)
        return bm25.term_weights(sight.chunk_count, {term: sight.counted[term] for term in asked})

    def _nearest(self, query: bytes, audiences: frozenset[int] | None, limit: int) -> dict[int, float]:
        """What LanceDB finds nearest, with exact cosines."""
        near = self._asked(query, audiences, limit, exactly=False)
        if len(near) < limit:
            # An index looks into a part of the rows, where a narrow filter may leave too few.
            near = self._asked(query, audiences, limit, exactly=True)
        return near

    @telling_faults
    def _asked(
        self, query: bytes, audiences: frozenset[int] | None, limit: int, *, exactly: bool
    ) -> dict[int, float]:
        import numpy as np

        numbers = np.frombuffer(query, dtype=np.float16).astype(np.float32)
        conditions = [f"kind = {CHUNK}"] if audiences is None else [among("audience", sorted(audiences))]
        asked = self._view.table.search(numbers, vector_column_name="vector").distance_type("dot")
        asked = asked.where(" AND ".join([*conditions, f"kind = {CHUNK}"]), prefilter=True).limit(limit)
        if exactly:
            asked = asked.bypass_vector_index()
        else:
            asked = asked.nprobes(probes_for(self._now.chunk_count)).refine_factor(_ROUGHLY_KEPT)
        answer = asked.select(["id", "vector", "_distance"]).to_arrow()
        vectors = dict(zip(answer["id"].to_pylist(), vectors_of(answer["vector"]), strict=True))
        return _dots(query, {id_: vector for id_, vector in vectors.items() if vector is not None})

    def _cosines(self, query: bytes, ids: Sequence[int]) -> dict[int, float]:
        return _dots(query, self._view.vectors(ids))

    def _by_segment(self, ids: Sequence[int]) -> list[tuple[Segment, list[int]]]:
        """Some chunks by the segment that each is in: they do not overlap."""
        segments = self._now.segments
        found: dict[int, list[int]] = {}
        for id_ in ids:
            at = bisect_right(segments, id_, key=lambda each: int(each.ids[0])) - 1
            found.setdefault(at, []).append(id_)
        return [(segments[at], own) for at, own in found.items()]

    def _id_at(self, place: int) -> int:
        segments = self._now.segments
        segment = segments[bisect_right(segments, place, key=lambda each: each.first_place) - 1]
        return int(segment.ids[place - segment.first_place])

    def _candidates(self, found: Sequence[tuple[int, float]]) -> list[Candidate]:
        chunks = self._view.chunks([id_ for id_, _ in found])
        return [Candidate(id=id_, chunk=chunks[id_], score=cosine_score(score)) for id_, score in found]


def _dots(query: bytes, vectors: Mapping[int, bytes]) -> dict[int, float]:
    if not vectors:
        return {}
    _, dots = choose_dots()
    cosines = dots(query, b"".join(vectors.values()), len(query) // 2)
    return dict(zip(vectors, cosines, strict=True))
