"""One consistent view of a generation: the questions that a search asks, in few round trips."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

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
from plainmind.guests.postgres.cache import GenerationCache, Positions, chunk_of_row
from plainmind.guests.postgres.nearest import Look
from plainmind.guests.postgres.segments import MOST, Segment, position_of
from plainmind.guests.postgres.session import Published
from plainmind.guests.postgres.writer import name_of
from plainmind.index import bm25
from plainmind.index.arithmetic import PER_POSTING, WordPart, choose_arithmetic
from plainmind.index.protocol import IndexCounts
from plainmind.index.vectors import choose_dots, cosine_score, packed, unpacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.postgres.connections import Connection

_CHUNKS_BETWEEN = """SELECT f.path, f.source, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
                       FROM {files} f JOIN {chunks} c ON c.file = f.id
                      WHERE f.name = %(name)s AND c.end_line >= %(first)s
                        AND c.start_line BETWEEN %(first)s - f.tallest AND %(last)s
                      ORDER BY c.ordinal"""
_VECTORS_OF = """SELECT v.vector
                   FROM {files} f JOIN {chunks} c ON c.file = f.id LEFT JOIN {vectors} v ON v.id = c.id
                  WHERE f.name = %s ORDER BY c.ordinal"""


class _Sight:
    """What words are weighed by, for those who see the same, and what has been worked out for them."""

    def __init__(self, segments: Sequence[Segment], chunk_count: int, average_length: float) -> None:
        self.segments = segments
        self.chunk_count = chunk_count
        self.average_length = average_length
        self.counted: dict[str, int] = {}  # by term: in how many chunks it stands
        self.scored: dict[tuple[str, ...], dict[int, float]] = {}  # by a query's terms: scores by id


class PostgresReader:
    """Reads inside one transaction, which the store has begun and will end."""

    def __init__(self, db: Connection, cache: GenerationCache, now: Published) -> None:
        self._db = db
        self._cache = cache
        self._now = cache.overview(db, now)
        self._sights: dict[SearchFilter | None, _Sight] = {}
        self._positions: dict[int, Positions] = {}  # of segments, by their places: asked for a hundred times
        self._places: dict[int, tuple[int, int]] = {}  # of chunks: which of the segments, and where in it
        self._shown_to: dict[
            int, frozenset[str]
        ] = {}  # of chunks: the scopes of the filter that let them through
        self._compared: dict[bytes, dict[int, float]] = {}  # by a query's vector: cosines by id
        self._looking: tuple[tuple[bytes, SearchFilter, int], Look] | None = None

    def close(self) -> None:
        """End what was begun ahead."""
        if self._looking is not None:
            (_, look), self._looking = self._looking, None
            look.close()

    def fingerprint(self) -> IndexFingerprint | None:
        """How this index was made."""
        return self._now.fingerprint

    def revision(self) -> tuple[int, int]:
        """Which state of which generation this is."""
        return self._now.generation, self._now.revision

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""
        return self._cache.files(self._db, self._now)

    def counts(self) -> IndexCounts:
        """Files and chunks by source."""
        return self._now.counts

    def term_statistics(self, terms: Sequence[str], *, where: SearchFilter) -> TermStatistics:
        """In how many chunks each term stands."""
        stored = {term: bm25.storable_term(term) for term in terms}
        sight = self._sight(where, stored.values())
        counted = {term: self._chunks_with(own, sight) for term, own in stored.items()}
        return TermStatistics(chunk_count=sight.chunk_count, chunks_with=counted)

    def proposals(self) -> PostgresReader:
        """Chunks by their ids, to be fetched when they are worth reading."""
        return self

    def keyword_candidates(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks with any of `terms`, by BM25, best first."""
        return self._candidates(self._ranked_by_words(terms, where, limit), where)

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the same."""
        return self._proposed(self._ranked_by_words(terms, where, limit), where)

    def vector_candidates(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks nearest to `vector`, best first."""
        return self._candidates(self._ranked_by_vector(vector, where, limit), where)

    def expect_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> None:
        """Let the server begin with a look that will be asked for, while words are weighed here.

        Only for who may see everything: what others ask between would be narrowed too.
        """
        self.close()
        if where.scopes == EVERY_SCOPE:
            query = packed(vector, self._now.dims)
            if look := self._look(query, self._admitted(where), where, limit):
                self._looking = (query, where, limit), look

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the same."""
        return self._proposed(self._ranked_by_vector(vector, where, limit), where)

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:
        """The chunks of ids that were proposed; the server itself makes sure that they are of admitted scopes."""
        found: dict[int, Chunk] = {}
        for scopes in {self._shown_to[id_] for id_ in ids}:
            own = [id_ for id_ in ids if self._shown_to[id_] == scopes]
            found |= self._cache.chunks(self._db, own, scopes)
        return [found[id_] for id_ in ids]

    def term_counts(self, terms: Sequence[str], ids: Sequence[int]) -> list[bytes]:
        """For each of some ids a byte a term: how often it stands in the chunk."""
        stored = [bm25.storable_term(term) for term in terms]
        arithmetic = choose_arithmetic(PER_POSTING * len(ids) * len(terms))
        found: dict[int, bytes] = {}
        for at, own in self._by_place(ids).items():
            postings = [self._cache.postings(self._db, self._now.segments[at], term) for term in stored]
            positions = [self._places[id_][1] for id_ in own]
            found.update(zip(own, arithmetic.term_counts(postings, positions), strict=True))
        return [found[id_] for id_ in ids]

    def keyword_scores(self, terms: Sequence[str], ids: Sequence[int], *, where: SearchFilter) -> list[float]:
        """The keyword score of given candidates."""
        sight, weights = self._weights(terms, where)
        scored = sight.scored.setdefault(tuple(weights), {})
        for at, own in self._by_place([id_ for id_ in ids if id_ not in scored]).items():
            arithmetic = choose_arithmetic(PER_POSTING * len(own) * len(weights))
            positions = [self._places[id_][1] for id_ in own]
            scores = arithmetic.word_scores(
                self._word_part(at, weights), list(weights.values()), sight.average_length, positions
            )
            scored.update(zip(own, scores, strict=True))
        return [scored[id_] for id_ in ids]

    def similarities(self, vector: Vector, ids: Sequence[int]) -> list[float]:
        """The cosine of given candidates."""
        cosines = self._cosines(packed(vector, self._now.dims), ids)
        return [cosine_score(cosines.get(id_, 0.0)) for id_ in ids]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""
        asked = {"name": name_of(source, path), "first": first_line, "last": last_line}
        return [chunk_of_row(*row) for row in self._db.execute(self._cache.tables(_CHUNKS_BETWEEN), asked)]

    def vectors_of(self, source: Source, path: str) -> list[Vector | None]:
        """The vectors of the chunks of one file, in their order."""
        statement = self._cache.tables(_VECTORS_OF)
        rows = self._db.execute(statement, (name_of(source, path),), binary=True)
        return [None if vector is None else unpacked(vector) for (vector,) in rows]

    def _ranked_by_words(
        self, terms: Sequence[str], where: SearchFilter, limit: int
    ) -> Sequence[tuple[int, float]]:
        sight, weights = self._weights(terms, where)
        if not weights or limit <= 0:
            return []
        parts = [self._word_part(at, weights) for at in self._admitted(where)]
        arithmetic = choose_arithmetic(PER_POSTING * sum(sight.counted[term] for term in weights))
        ranked = arithmetic.best_by_words(
            [part for part in parts if any(part.postings)],
            list(weights.values()),
            sight.average_length,
            limit,
        )
        found = [(self._id_at(place), score) for place, score in ranked]
        sight.scored.setdefault(tuple(weights), {}).update(found)
        return found

    def _ranked_by_vector(
        self, vector: Vector, where: SearchFilter, limit: int
    ) -> Sequence[tuple[int, float]]:
        """The nearest vectors and their cosines; what words have proposed is fetched too, it will be asked for next."""
        query = packed(vector, self._now.dims)
        look = None
        if self._looking is not None:
            (asked, begun), self._looking = self._looking, None
            if asked == (query, where, limit):
                look = begun
            else:
                begun.close()
        look = look or self._look(query, self._admitted(where), where, limit)
        if look is None:
            return []
        # What was shown to others is hidden here, and would be taken for chunks without a vector.
        found = look.found([id_ for id_, scopes in self._shown_to.items() if scopes == where.scopes])
        near = bm25.best(self._cosines(query, list(found)), limit)
        for id_, _ in near:
            if id_ not in self._places:
                self._places[id_] = self._find_place(id_, *found[id_])
        return near

    def _look(self, query: bytes, admitted: Sequence[int], where: SearchFilter, limit: int) -> Look | None:
        if limit <= 0 or not admitted:
            return None
        return Look(
            self._db,
            self._cache,
            query,
            [self._now.segments[at] for at in admitted],
            where,
            limit=limit,
            vectors=self._now.chunk_count,
            by_graph=self._now.graph,
            is_all=len(admitted) == len(self._now.segments),
        )

    def _by_place(self, ids: Sequence[int]) -> Mapping[int, list[int]]:
        """The ids of candidates by which of the segments they are in."""
        found: dict[int, list[int]] = {}
        for id_ in ids:
            found.setdefault(self._places[id_][0], []).append(id_)
        return found

    def _admitted(self, where: SearchFilter) -> list[int]:
        """The places of the segments that a filter lets through."""
        return [at for at, each in enumerate(self._now.segments) if where.admits(each.source, each.scope)]

    def _sight(self, where: SearchFilter, terms: Iterable[str]) -> _Sight:
        """What words are weighed by: all there is, for who may see all of it; else what they may see.

        What is to be known of `terms` in it has been fetched.
        """
        key = None if where.scopes == EVERY_SCOPE else where
        found = self._sights.get(key)
        segments = found.segments if found else [self._now.segments[at] for at in self._admitted(where)]
        if key is None:
            segments = self._now.segments
        if new := [term for term in terms if found is None or term not in found.counted]:
            self._cache.fetch(self._db, segments, new)
        if found is None:
            count, average = self._now.chunk_count, self._now.average_length
            if key is not None:
                words = [self._cache.words(self._db, each) for each in segments]
                count = sum(chunks for chunks, _ in words)
                average = sum(total for _, total in words) / (count or 1)
            found = self._sights[key] = _Sight(segments, count, average)
        return found

    def _weights(self, terms: Sequence[str], where: SearchFilter) -> tuple[_Sight, Mapping[str, float]]:
        """The weight of each distinct term, the heaviest first, and what it was weighed by."""
        asked = bm25.distinct_terms(terms)
        sight = self._sight(where, asked)
        if not asked:
            return sight, {}
        counted = {term: self._chunks_with(term, sight) for term in asked}
        return sight, bm25.term_weights(sight.chunk_count, counted)

    def _chunks_with(self, term: str, sight: _Sight) -> int:
        """In how many living chunks that are in sight a term stands."""
        found = sight.counted.get(term)
        if found is None:
            found = sight.counted[term] = sum(self._chunks_of_segment(each, term) for each in sight.segments)
        return found

    def _chunks_of_segment(self, segment: Segment, term: str) -> int:
        postings = self._cache.postings(self._db, segment, term)
        if postings is None:
            return 0
        if segment.living == segment.used:
            return len(postings.counts)
        lengths = self._cache.positions(self._db, segment).lengths
        return choose_arithmetic(PER_POSTING * len(lengths) // 4).count_living(postings, lengths)

    def _word_part(self, at: int, terms: Mapping[str, float]) -> WordPart:
        """A segment with places instead of ids: which of the segments, and where in it."""
        segment = self._now.segments[at]
        return WordPart(
            at * MOST,
            self._positions_at(at).lengths,
            [self._cache.postings(self._db, segment, term) for term in terms],
        )

    def _positions_at(self, at: int) -> Positions:
        found = self._positions.get(at)
        if found is None:
            found = self._positions[at] = self._cache.positions(self._db, self._now.segments[at])
        return found

    def _id_at(self, place: int) -> int:
        at, position = divmod(place, MOST)
        id_ = self._positions_at(at).ids[position]
        self._places[id_] = at, position
        return id_

    def _find_place(self, id_: int, source: Source, scope: str) -> tuple[int, int]:
        firsts, places = self._now.neighbours.get((source, scope), ((), ()))
        found = bisect_right(firsts, id_)
        if found:
            at = places[found - 1]
            position = position_of(self._positions_at(at).ids, id_)
            if position is not None:
                return at, position
        raise IndexCorrupt("a chunk of the index belongs to no segment", hint="run `plainmind sync --force`")

    def _cosines(self, query: bytes, ids: Sequence[int]) -> dict[int, float]:
        """The cosines of chunks, but for those without a vector."""
        compared = self._compared.setdefault(query, {})
        vectors = self._cache.vectors(self._db, [id_ for id_ in ids if id_ not in compared])
        new = {id_: vector for id_, vector in vectors.items() if vector is not None}
        if new:
            _, dots = choose_dots()
            cosines = dots(query, b"".join(new.values()), self._now.dims)
            compared.update(zip(new, cosines, strict=True))
        return {id_: compared[id_] for id_ in ids if id_ in compared}

    def _proposed(self, ranked: Sequence[tuple[int, float]], where: SearchFilter) -> list[int]:
        ids = [id_ for id_, _ in ranked]
        self._shown_to.update(dict.fromkeys(ids, where.scopes))
        return ids

    def _candidates(self, ranked: Sequence[tuple[int, float]], where: SearchFilter) -> list[Candidate]:
        chunks = self.chunks(self._proposed(ranked, where))
        return [
            Candidate(id_, chunk, cosine_score(score))
            for (id_, score), chunk in zip(ranked, chunks, strict=True)
        ]
