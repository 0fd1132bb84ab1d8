"""One consistent view of a generation: the questions that a search asks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import apsw

from commonplace.errors import IndexCorrupt
from commonplace.model import (
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
from commonplace.store import bm25
from commonplace.store.arithmetic import PER_POSTING, PER_VECTOR, choose_arithmetic
from commonplace.store.arithmetic.parts import Absences, SignPart, WordPart
from commonplace.store.kernels import choose_dots, cosine_score, packed
from commonplace.store.protocol import IndexCounts
from commonplace.store.signs import EXACT_UP_TO, LEAST_LIMIT, effort_for, query_signs
from commonplace.store.sqlite.admission import scope_numbers
from commonplace.store.sqlite.cache import GenerationCache, Scopes
from commonplace.store.sqlite.segments import Segment
from commonplace.store.sqlite.texts import unsqueezed

# A byte a number moves a cosine by less than 0.002: so many times the wanted ones are compared exactly.
ROUGH_EFFORT = 2

_CHUNKS_BETWEEN = """SELECT c.id
                       FROM files f JOIN chunks c ON c.file_id = f.id
                      WHERE f.source = :source AND f.path = :path
                        AND c.start_line BETWEEN :first - f.tallest AND :last AND c.end_line >= :first
                      ORDER BY c.ordinal"""
_SCOPES_OF = """SELECT DISTINCT f.source, s.name
                  FROM chunks c JOIN files f ON f.id = c.file_id LEFT JOIN scopes s ON s.id = f.scope
                 WHERE c.id IN (SELECT value FROM json_each(?))"""


class SqliteReader:
    """Reads inside one transaction, which the generation has begun and will end."""

    def __init__(self, db: apsw.Connection, cache: GenerationCache, generation: int = 0) -> None:
        self._db = db
        self._generation = generation
        self._cache = cache
        self._now = cache.overview(db)
        self._counted: dict[str, int] = {}
        self._scored: dict[tuple[str, ...], dict[int, float]] = {}  # by a query's terms: scores by id
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

    def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
        """In how many chunks each term stands."""
        counted = {term: self._chunks_with(bm25.storable_term(term)) for term in terms}
        return TermStatistics(chunk_count=self._now.chunk_count, chunks_with=counted)

    def keyword_candidates(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks with any of `terms`, by BM25, best first."""
        weights = self._weights(terms)
        if not weights or limit <= 0:
            return []
        parts = [self._word_part(segment, weights, scopes) for segment, scopes in self._admitted(where)]
        arithmetic = choose_arithmetic(PER_POSTING * sum(self._counted[term] for term in weights))
        ranked = arithmetic.best_by_words(
            [part for part in parts if any(part.postings)],
            list(weights.values()),
            self._now.average_length,
            limit,
        )
        self._scored.setdefault(tuple(weights), {}).update(ranked)
        return self._candidates(ranked, where)

    def vector_candidates(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks nearest to `vector`, best first."""
        if self._now.fingerprint is None or limit <= 0:
            return []
        query = packed(vector, self._now.dims)
        near = self._near(query, self._admitted(where), limit)
        return self._candidates(bm25.best(near, limit), where)

    def keyword_scores(self, terms: Sequence[str], ids: Sequence[int]) -> list[float]:
        """The keyword score of given candidates."""
        weights = self._weights(terms)
        scored = self._scored.setdefault(tuple(weights), {})
        missing = [id_ for id_ in ids if id_ not in scored]
        if missing:
            arithmetic = choose_arithmetic(PER_POSTING * len(missing) * len(weights))
            for segment, own in self._now.by_segment(missing):
                positions = [id_ - segment.first_id for id_ in own]
                scores = arithmetic.word_scores(
                    self._word_part(segment, weights),
                    list(weights.values()),
                    self._now.average_length,
                    positions,
                )
                scored.update(zip(own, scores, strict=True))
        return [scored[id_] for id_ in ids]

    def similarities(self, vector: Vector, ids: Sequence[int]) -> list[float]:
        """The cosine of given candidates."""
        if self._now.fingerprint is None:
            return [0.0] * len(ids)
        cosines = self._cosines(packed(vector, self._now.dims), ids)
        return [cosine_score(cosines.get(id_, 0.0)) for id_ in ids]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""
        asked = {"source": source, "path": path, "first": first_line, "last": last_line}
        ids = [id_ for (id_,) in self._db.execute(_CHUNKS_BETWEEN, asked)]
        chunks = self._cache.chunks(self._db, ids)
        return [chunks[id_] for id_ in ids]

    def _admitted(self, where: SearchFilter) -> list[tuple[Segment, Scopes | None]]:
        """The segments that a filter lets through, each with the scopes by which some of it is hidden."""
        segments = self._now.of(where.sources)
        if where.scopes == EVERY_SCOPE:
            return [(segment, None) for segment in segments]
        scopes = scope_numbers(self._db, where.scopes)
        hidden = [(segment, self._cache.hidden(self._db, segment, scopes)) for segment in segments]
        return [(segment, scopes if own else None) for segment, own in hidden if own is not None]

    def _weights(self, terms: Sequence[str]) -> Mapping[str, float]:
        """The weight of each distinct term, the heaviest first."""
        asked = bm25.distinct_terms(terms)
        if not asked:
            return {}
        return bm25.term_weights(self._now.chunk_count, {term: self._chunks_with(term) for term in asked})

    def _chunks_with(self, term: str) -> int:
        """In how many living chunks, of all sources and scopes, a term stands."""
        found = self._counted.get(term)
        if found is None:
            found = self._counted[term] = sum(
                self._chunks_of_segment(segment, term) for segment in self._now.segments if segment.used
            )
        return found

    def _chunks_of_segment(self, segment: Segment, term: str) -> int:
        postings = self._cache.postings(self._db, segment, term)
        if postings is None:
            return 0
        if not segment.stale:
            return len(postings.counts)

        def counted() -> int:
            lengths = self._cache.lengths(self._db, segment)
            return choose_arithmetic(PER_POSTING * len(lengths) // 4).count_living(postings, lengths)

        return self._cache.count(segment, term, counted)

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
        vectors = self._cache.vectors(self._db, [id_ for id_ in ids if id_ not in compared])
        if vectors:
            _, dots = choose_dots()
            cosines = dots(query, b"".join(vectors.values()), self._now.dims)
            compared.update(zip(vectors, cosines, strict=True))
        return {id_: compared[id_] for id_ in ids if id_ in compared}

    def _candidates(self, ranked: Sequence[tuple[int, float]], where: SearchFilter) -> list[Candidate]:
        ids = [id_ for id_, _ in ranked]
        if where.scopes != EVERY_SCOPE:
            self._check_scopes(ids, where)
        chunks = self._cache.chunks(self._db, ids)
        return [Candidate(id_, chunks[id_], cosine_score(score)) for id_, score in ranked]

    def _check_scopes(self, ids: Sequence[int], where: SearchFilter) -> None:
        """Ask the files of candidates again: a damaged segment must not show anybody what is not theirs."""
        for source, name in self._db.execute(_SCOPES_OF, (json.dumps(ids),)):
            if name is None or not where.admits(source, unsqueezed(name)):
                raise IndexCorrupt(
                    "the index contradicts itself: a segment shows what its files do not",
                    hint="run `commonplace sync`: it is rebuilt from your notes",
                )
