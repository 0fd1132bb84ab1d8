"""One consistent view of a generation: the questions that a search asks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import apsw

from plainmind.base.errors import IndexCorrupt
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
from plainmind.index import bm25
from plainmind.index.arithmetic import PER_POSTING, PER_VECTOR, choose_arithmetic
from plainmind.index.arithmetic.parts import Absences, SignPart, WordPart
from plainmind.index.drivers.sqlite.admission import scope_numbers
from plainmind.index.drivers.sqlite.cache import GenerationCache, Scopes
from plainmind.index.drivers.sqlite.segments import Segment
from plainmind.index.drivers.sqlite.texts import unsqueezed
from plainmind.index.kernels import choose_dots, cosine_score, packed, unpacked
from plainmind.index.protocol import IndexCounts
from plainmind.index.signs import EXACT_UP_TO, LEAST_LIMIT, effort_for, query_signs

# A byte a number moves a cosine by less than 0.002: so many times the wanted ones are compared exactly.
ROUGH_EFFORT = 2

_CHUNKS_BETWEEN = """SELECT c.id
                       FROM files f JOIN chunks c ON c.file_id = f.id
                      WHERE f.source = :source AND f.path = :path
                        AND c.start_line BETWEEN :first - f.tallest AND :last AND c.end_line >= :first
                      ORDER BY c.ordinal"""
_VECTORS_OF = """SELECT v.vector
                   FROM files f JOIN chunks c ON c.file_id = f.id LEFT JOIN vectors v ON v.id = c.id
                  WHERE f.source = ? AND f.path = ? ORDER BY c.ordinal"""
_SCOPES_OF = """SELECT DISTINCT f.source, s.name
                  FROM chunks c JOIN files f ON f.id = c.file_id LEFT JOIN scopes s ON s.id = f.scope
                 WHERE c.id IN (SELECT value FROM json_each(?))"""


class _Sight:
    """What words are weighed by, for those who see the same, and what has been worked out for them."""

    def __init__(
        self, segments: Sequence[tuple[Segment, Scopes | None]], chunk_count: int, average_length: float
    ) -> None:
        self.segments = segments  # each with the scopes by which some of it is hidden
        self.chunk_count = chunk_count
        self.average_length = average_length
        self.counted: dict[str, int] = {}  # by term: in how many chunks it stands
        self.scored: dict[tuple[str, ...], dict[int, float]] = {}  # by a query's terms: scores by id


class SqliteReader:
    """Reads inside one transaction, which the generation has begun and will end."""

    def __init__(self, db: apsw.Connection, cache: GenerationCache, generation: int = 0) -> None:
        self._db = db
        self._generation = generation
        self._cache = cache
        self._now = cache.overview(db)
        self._sights: dict[SearchFilter | None, _Sight] = {}
        self._compared: dict[bytes, dict[int, float]] = {}  # by a query's vector: cosines by id

    def fingerprint(self) -> IndexFingerprint | None:
        """How this index was made; None asks for a rebuild."""
        return self._now.fingerprint

    def revision(self) -> tuple[int, int]:
        """Which state of which generation this is."""
        return self._generation, self._now.revision

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""
        return self._cache.files(self._db, self._now.revision)

    def counts(self) -> IndexCounts:
        """Files and chunks by source."""
        return self._now.counts

    def term_statistics(self, terms: Sequence[str], *, where: SearchFilter) -> TermStatistics:
        """In how many chunks each term stands."""
        sight = self._sight(where)
        counted = {term: self._chunks_with(bm25.storable_term(term), sight) for term in terms}
        return TermStatistics(chunk_count=sight.chunk_count, chunks_with=counted)

    def proposals(self) -> SqliteReader:
        """Chunks by their ids, to be fetched when they are worth reading."""
        return self

    def keyword_candidates(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks with any of `terms`, by BM25, best first."""
        return self._candidates(self._ranked_by_words(terms, where, limit))

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the same."""
        return [id_ for id_, _ in self._ranked_by_words(terms, where, limit)]

    def vector_candidates(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks nearest to `vector`, best first."""
        return self._candidates(self._ranked_by_vector(vector, where, limit))

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the same."""
        return [id_ for id_, _ in self._ranked_by_vector(vector, where, limit)]

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:
        """The chunks of some ids."""
        found = self._cache.chunks(self._db, ids)
        return [found[id_] for id_ in ids]

    def term_counts(self, terms: Sequence[str], ids: Sequence[int]) -> list[bytes]:
        """For each of some ids a byte a term: how often it stands in the chunk."""
        stored = [bm25.storable_term(term) for term in terms]
        arithmetic = choose_arithmetic(PER_POSTING * len(ids) * len(terms))
        found: dict[int, bytes] = {}
        for segment, own in self._now.by_segment(ids):
            postings = [self._cache.postings(self._db, segment, term) for term in stored]
            positions = [id_ - segment.first_id for id_ in own]
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
            for segment, own in self._now.by_segment(missing):
                positions = [id_ - segment.first_id for id_ in own]
                scores = arithmetic.word_scores(
                    self._word_part(segment, weights),
                    list(weights.values()),
                    sight.average_length,
                    positions,
                )
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
        asked = {"source": source, "path": path, "first": first_line, "last": last_line}
        return self.chunks([id_ for (id_,) in self._db.execute(_CHUNKS_BETWEEN, asked)])

    def vectors_of(self, source: Source, path: str) -> list[Vector | None]:
        """The vectors of the chunks of one file, in their order."""
        rows = self._db.execute(_VECTORS_OF, (source, path))
        return [None if vector is None else unpacked(vector) for (vector,) in rows]

    def _ranked_by_words(
        self, terms: Sequence[str], where: SearchFilter, limit: int
    ) -> Sequence[tuple[int, float]]:
        sight = self._sight(where)
        weights = self._weights(terms, sight)
        if not weights or limit <= 0:
            return []
        # Who sees everything may still ask for one source; for others, what is in sight is what is admitted.
        admitted = self._admitted(where) if where.scopes == EVERY_SCOPE else sight.segments
        parts = [self._word_part(segment, weights, scopes) for segment, scopes in admitted]
        arithmetic = choose_arithmetic(PER_POSTING * sum(sight.counted[term] for term in weights))
        ranked = arithmetic.best_by_words(
            [part for part in parts if any(part.postings)],
            list(weights.values()),
            sight.average_length,
            limit,
        )
        sight.scored.setdefault(tuple(weights), {}).update(ranked)
        self._check_scopes([id_ for id_, _ in ranked], where)
        return ranked

    def _ranked_by_vector(
        self, vector: Vector, where: SearchFilter, limit: int
    ) -> Sequence[tuple[int, float]]:
        if self._now.fingerprint is None or limit <= 0:
            return []
        query = packed(vector, self._now.dims)
        ranked = bm25.best(self._near(query, self._admitted(where), limit), limit)
        self._check_scopes([id_ for id_, _ in ranked], where)
        return ranked

    def _admitted(self, where: SearchFilter) -> list[tuple[Segment, Scopes | None]]:
        """The segments that a filter lets through, each with the scopes by which some of it is hidden."""
        segments = self._now.of(where.sources)
        if where.scopes == EVERY_SCOPE:
            return [(segment, None) for segment in segments]
        scopes = scope_numbers(self._db, where.scopes)
        hidden = [(segment, self._cache.hidden(self._db, segment, scopes)) for segment in segments]
        return [(segment, scopes if own else None) for segment, own in hidden if own is not None]

    def _sight(self, where: SearchFilter) -> _Sight:
        """What words are weighed by: all there is, for who may see all of it; else what they may see."""
        key = None if where.scopes == EVERY_SCOPE else where
        found = self._sights.get(key)
        if found is None:
            if key is None:
                everything = [(segment, None) for segment in self._now.segments if segment.used]
                found = _Sight(everything, self._now.chunk_count, self._now.average_length)
            else:
                admitted = self._admitted(where)
                words = [self._cache.words(self._db, segment, scopes) for segment, scopes in admitted]
                count = sum(chunks for chunks, _ in words)
                found = _Sight(admitted, count, sum(total for _, total in words) / (count or 1))
            self._sights[key] = found
        return found

    def _weights(self, terms: Sequence[str], sight: _Sight) -> Mapping[str, float]:
        """The weight of each distinct term, the heaviest first."""
        asked = bm25.distinct_terms(terms)
        if not asked:
            return {}
        return bm25.term_weights(sight.chunk_count, {term: self._chunks_with(term, sight) for term in asked})

    def _chunks_with(self, term: str, sight: _Sight) -> int:
        """In how many living chunks that are in sight a term stands."""
        found = sight.counted.get(term)
        if found is None:
            found = sight.counted[term] = sum(
                self._chunks_of_segment(segment, term, scopes) for segment, scopes in sight.segments
            )
        return found

    def _chunks_of_segment(self, segment: Segment, term: str, scopes: Scopes | None) -> int:
        postings = self._cache.postings(self._db, segment, term)
        if postings is None:
            return 0
        if not segment.stale and scopes is None:
            return len(postings.counts)

        def counted() -> int:
            lengths = self._cache.lengths(self._db, segment, scopes)
            return choose_arithmetic(PER_POSTING * len(lengths) // 4).count_living(postings, lengths)

        return self._cache.count(segment, term, scopes, counted)

    def _word_part(
        self, segment: Segment, terms: Mapping[str, float], scopes: Scopes | None = None
    ) -> WordPart:
        return WordPart(
            segment.first_id,
            self._cache.lengths(self._db, segment, scopes),
            [self._cache.postings(self._db, segment, term) for term in terms],
        )

    def _near(
        self, query: bytes, admitted: Sequence[tuple[Segment, Scopes | None]], limit: int
    ) -> dict[int, float]:
        """The cosines of vectors that are near: of all, where there are few."""
        parts = [(segment, self._cache.absences(self._db, segment, scopes)) for segment, scopes in admitted]
        count = sum(len(absences.flags) - absences.count for _, absences in parts)
        if count <= EXACT_UP_TO:
            return self._cosines(
                query, [id_ for segment, absences in parts for id_ in absences.present(segment.first_id)]
            )
        rough = self._cache.rough_vectors([segment for segment, _ in parts], self._now.dims)
        if rough is not None:
            return self._cosines(query, rough.nearest(self._db, query, parts, ROUGH_EFFORT * limit))
        return self._nearest_by_signs(query, parts, count, limit)

    def _nearest_by_signs(
        self, query: bytes, segments: Sequence[tuple[Segment, Absences]], count: int, limit: int
    ) -> dict[int, float]:
        effort = effort_for(count, limit)
        parts = [
            SignPart(segment.first_id, self._cache.signs(self._db, segment, self._now.dims), absences)
            for segment, absences in segments
        ]
        arithmetic = choose_arithmetic(PER_VECTOR * count)
        ids = arithmetic.nearest_by_signs(query_signs(query), parts, effort.most, effort.pool)
        found = self._nearest(query, ids, max(limit, LEAST_LIMIT), effort.batch)
        self._cache.compared(len(found))
        return found

    def _nearest(self, query: bytes, ids: Sequence[int], limit: int, batch: int) -> dict[int, float]:
        """The cosines of ids, nearest by their signs first, until a whole batch is no better than what there is."""
        found: dict[int, float] = {}
        for start in range(0, len(ids), batch):
            floor = sorted(found.values())[-limit] if len(found) >= limit else -2.0
            cosines = self._cosines(query, ids[start : start + batch])
            found |= cosines
            if max(cosines.values(), default=-2.0) <= floor:
                break
        return found

    def _cosines(self, query: bytes, ids: Sequence[int]) -> dict[int, float]:
        compared = self._compared.setdefault(query, {})
        missing = [id_ for id_ in ids if id_ not in compared]
        if missing:
            for segment, own in self._now.by_segment(missing):
                compared.update(self._compare(query, *self._cache.exact_vectors(segment, own)))
            vectors = self._cache.vectors(self._db, [id_ for id_ in missing if id_ not in compared])
            compared.update(self._compare(query, list(vectors), b"".join(vectors.values())))
        return {id_: compared[id_] for id_ in ids if id_ in compared}

    def _compare(self, query: bytes, ids: Sequence[int], vectors: bytes) -> Iterable[tuple[int, float]]:
        if not ids:
            return ()
        _, dots = choose_dots()
        return zip(ids, dots(query, vectors, self._now.dims), strict=True)

    def _candidates(self, ranked: Sequence[tuple[int, float]]) -> list[Candidate]:
        chunks = self._cache.chunks(self._db, [id_ for id_, _ in ranked])
        return [Candidate(id_, chunks[id_], cosine_score(score)) for id_, score in ranked]

    def _check_scopes(self, ids: Sequence[int], where: SearchFilter) -> None:
        """Ask the files of candidates again: a damaged segment must not show anybody what is not theirs."""
        if where.scopes == EVERY_SCOPE:
            return
        for source, name in self._db.execute(_SCOPES_OF, (json.dumps(ids),)):
            if name is None or not where.admits(source, unsqueezed(name)):
                raise IndexCorrupt(
                    "the index contradicts itself: a segment shows what its files do not",
                    hint="run `plainmind sync`: it is rebuilt from your notes",
                )
