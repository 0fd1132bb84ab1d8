"""One consistent view of an index: the questions that a search asks, answered the same way for every driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plainmind.base.model import (
    EVERY_SCOPE,
    Chunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    Source,
    TermStatistics,
    Vector,
)
from plainmind.index import bm25
from plainmind.index.arithmetic import PER_POSTING, choose_arithmetic
from plainmind.index.arithmetic.parts import WordPart
from plainmind.index.kernels import choose_dots, cosine_score, packed, unpacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from plainmind.index.driver import Overview, Part, View
    from plainmind.index.postings import Postings
    from plainmind.index.protocol import IndexCounts

    Ranked: TypeAlias = Sequence[tuple[int, float]]


class _Sight:
    """What words are weighed by, for those who see the same, and what has been worked out for them."""

    __slots__ = ("average_length", "chunk_count", "counted", "parts", "scored")

    def __init__(self, parts: Sequence[Part[Any, Any]], chunk_count: int, average_length: float) -> None:
        self.parts = parts
        self.chunk_count = chunk_count
        self.average_length = average_length
        self.counted: dict[str, int] = {}  # by term: in how many chunks it stands
        self.scored: dict[tuple[str, ...], dict[int, float]] = {}  # by a query's terms: scores by id


class Reader:
    """Reads one view, which its driver has opened and will close."""

    def __init__(self, view: View[Any, Any]) -> None:
        self._view = view
        self._cache = view.cache
        self._now: Overview = view.overview
        self._sights: dict[SearchFilter | None, _Sight] = {}
        self._postings: dict[
            tuple[int, str], Postings | None
        ] = {}  # by the number of a segment, and the term
        self._compared: dict[bytes, dict[int, float]] = {}  # by a query's vector: cosines by id
        self._scopes: dict[
            int, frozenset[str]
        ] = {}  # of proposed chunks: those of the filter that let them through

    def fingerprint(self) -> IndexFingerprint | None:
        """How this index was made; None asks for a rebuild."""
        return self._now.fingerprint

    def revision(self) -> tuple[int, int]:
        """Which state of which generation this is."""
        return self._now.generation, self._now.revision

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""
        return self._cache.files(self._view)

    def counts(self) -> IndexCounts:
        """Files and chunks by source."""
        return self._now.counts

    def term_statistics(self, terms: Sequence[str], *, where: SearchFilter) -> TermStatistics:
        """In how many chunks each term stands."""
        stored = {term: bm25.storable_term(term) for term in terms}
        sight = self._sight(where)
        self._count(list(stored.values()), sight)
        counted = {term: sight.counted[own] for term, own in stored.items()}
        return TermStatistics(chunk_count=sight.chunk_count, chunks_with=counted)

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the best chunks by BM25."""
        sight = self._sight(where)
        weights = self._weights(terms, sight)
        if not weights or limit <= 0:
            return []
        # Who sees everything may still ask for one source; for others, what is in sight is what is admitted.
        admitted = self._view.admitted(where) if where.scopes == EVERY_SCOPE else sight.parts
        arithmetic = choose_arithmetic(PER_POSTING * sum(sight.counted[term] for term in weights))
        places = arithmetic.best_by_words(
            self._word_parts(admitted, weights), list(weights.values()), sight.average_length, limit
        )
        ids = self._view.ids_at([place for place, _ in places])
        sight.scored.setdefault(tuple(weights), {}).update(
            zip(ids, [score for _, score in places], strict=True)
        )
        return self._proposed(ids, where)

    def expect_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> None:
        """Let the driver begin with what `by_vector` will be asked for."""
        if self._now.fingerprint is not None and limit > 0 and (parts := self._view.admitted(where)):
            self._view.expect(packed(vector, self._now.dims), parts, where, limit)

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the chunks nearest to a vector."""
        if self._now.fingerprint is None:
            return []
        query = packed(vector, self._now.dims)
        if limit <= 0 or not (parts := self._view.admitted(where)):
            return []
        near = self._view.near(
            query,
            parts,
            where,
            limit,
            besides=[id_ for id_, scopes in self._scopes.items() if scopes == where.scopes],
            compare=lambda ids: self._cosines(query, ids),
        )
        return self._proposed([id_ for id_, _ in bm25.best(near, limit)], where)

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:
        """The chunks of ids that were proposed."""
        found: dict[int, Chunk] = {}
        for scopes in {self._scopes[id_] for id_ in ids}:
            own = [id_ for id_ in ids if self._scopes[id_] == scopes]
            found |= self._cache.chunks(self._view, own, scopes)
        return [found[id_] for id_ in ids]

    def term_counts(self, terms: Sequence[str], ids: Sequence[int]) -> list[bytes]:
        """For each of some ids a byte a term: how often it stands in the chunk."""
        stored = [bm25.storable_term(term) for term in terms]
        arithmetic = choose_arithmetic(PER_POSTING * len(ids) * len(terms))
        found: dict[int, bytes] = {}
        located = list(self._view.locate(ids))
        self._fetch([segment for segment, _, _ in located], stored)
        for segment, own, positions in located:
            postings = [self._postings[segment.number, term] for term in stored]
            found.update(zip(own, arithmetic.term_counts(postings, positions), strict=True))
        return [found[id_] for id_ in ids]

    def keyword_scores(self, terms: Sequence[str], ids: Sequence[int], *, where: SearchFilter) -> list[float]:
        """The keyword score of given candidates."""
        sight = self._sight(where)
        weights = self._weights(terms, sight)
        scored = sight.scored.setdefault(tuple(weights), {})
        missing = [id_ for id_ in ids if id_ not in scored]
        if missing:
            arithmetic = choose_arithmetic(PER_POSTING * len(missing) * len(weights))
            for segment, own, positions in self._view.locate(missing):
                (part,) = self._word_parts([(segment, None)], weights, with_empty=True)
                scores = arithmetic.word_scores(part, list(weights.values()), sight.average_length, positions)
                scored.update(zip(own, scores, strict=True))
        return [scored[id_] for id_ in ids]

    def similarities(self, vector: Vector, ids: Sequence[int]) -> list[float]:
        """The cosine of given candidates."""
        if self._now.fingerprint is None:
            return [0.0] * len(ids)
        cosines = self._cosines(packed(vector, self._now.dims), ids)
        return [
            cosine if 0.0 <= cosine <= 1.0 else cosine_score(cosine)
            for cosine in [cosines.get(id_, 0.0) for id_ in ids]
        ]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""
        return self._view.chunks_between(source, path, first_line, last_line)

    def vectors_of(self, source: Source, path: str) -> list[Vector | None]:
        """The vectors of the chunks of one file, in their order."""
        return [None if each is None else unpacked(each) for each in self._view.vectors_of(source, path)]

    def _proposed(self, ids: Sequence[int], where: SearchFilter) -> list[int]:
        if where.scopes != EVERY_SCOPE:
            self._view.confirm(ids, where)
        self._scopes.update(dict.fromkeys(ids, where.scopes))
        return list(ids)

    def _sight(self, where: SearchFilter) -> _Sight:
        """What words are weighed by: all there is, for who may see all of it; else what they may see."""
        key = None if where.scopes == EVERY_SCOPE else where
        found = self._sights.get(key)
        if found is None:
            if key is None:
                everything = [(segment, None) for segment in self._now.segments]
                found = _Sight(everything, self._now.chunk_count, self._now.average_length)
            else:
                admitted = self._view.admitted(where)
                count, words = self._cache.words(self._view, admitted)
                found = _Sight(admitted, count, words / (count or 1))
            self._sights[key] = found
        return found

    def _weights(self, terms: Sequence[str], sight: _Sight) -> Mapping[str, float]:
        """The weight of each distinct term, the heaviest first."""
        asked = bm25.distinct_terms(terms)
        if not asked:
            return {}
        self._count(asked, sight)
        return bm25.term_weights(sight.chunk_count, {term: sight.counted[term] for term in asked})

    def _count(self, terms: Sequence[str], sight: _Sight) -> None:
        """Count in how many living chunks that are in sight each term stands."""
        new = [term for term in terms if term not in sight.counted]
        if not new:
            return
        self._fetch([segment for segment, _ in sight.parts], new)
        for term in new:
            count = 0
            for part in sight.parts:
                postings = self._postings[part[0].number, term]
                if postings is not None:
                    count += self._cache.chunks_with(self._view, part, term, postings)
            sight.counted[term] = count

    def _fetch(self, segments: Iterable[Any], terms: Sequence[str]) -> None:
        """Have the postings of terms in segments at hand."""
        lacking: dict[tuple[str, ...], list[Any]] = {}
        for segment in segments:
            new = tuple([term for term in terms if (segment.number, term) not in self._postings])
            if new:
                lacking.setdefault(new, []).append(segment)
        for new, own in lacking.items():
            self._postings.update(self._cache.postings(self._view, own, new))

    def _word_parts(
        self, parts: Sequence[Part[Any, Any]], weights: Mapping[str, float], *, with_empty: bool = False
    ) -> list[WordPart]:
        """Parts for the arithmetic; those without any of the terms are left out, unless they are asked for."""
        terms = list(weights)
        self._fetch([segment for segment, _ in parts], terms)
        found = [
            (part, postings)
            for part in parts
            if any(postings := [self._postings[part[0].number, term] for term in terms]) or with_empty
        ]
        lengths = self._cache.lengths(self._view, [part for part, _ in found])
        return [
            WordPart(part[0].first_place, own, postings)
            for (part, postings), own in zip(found, lengths, strict=True)
        ]

    def _cosines(self, query: bytes, ids: Sequence[int]) -> dict[int, float]:
        """The cosines of chunks, but for those without a vector."""
        compared = self._compared.setdefault(query, {})
        missing = [id_ for id_ in ids if id_ not in compared]
        if missing:
            at_hand, block = self._view.block(missing)
            compared.update(self._compare(query, at_hand, block))
            if len(at_hand) < len(missing):
                lacking = [id_ for id_ in missing if id_ not in compared]
                vectors = self._cache.vectors(self._view, lacking)
                compared.update(self._compare(query, list(vectors), b"".join(vectors.values())))
        return {id_: compared[id_] for id_ in ids if id_ in compared}

    def _compare(self, query: bytes, ids: Sequence[int], vectors: bytes) -> Iterable[tuple[int, float]]:
        if not ids:
            return ()
        _, dots = choose_dots()
        return zip(ids, dots(query, vectors, self._now.dims), strict=True)
