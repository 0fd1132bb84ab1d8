"""One consistent view of a generation: the questions that a search asks."""

from __future__ import annotations

from collections.abc import KeysView, Mapping, Sequence

import apsw

from commonplace.model import (
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
from commonplace.store.kernels import choose_dots, cosine_score, packed
from commonplace.store.protocol import IndexCounts
from commonplace.store.sqlite.cache import GenerationCache
from commonplace.store.sqlite.connection import one_row, rows
from commonplace.store.sqlite.writer import read_fingerprint, unsigned_64

_REVISION = "SELECT value FROM revision"
_TOTALS = "SELECT source, files, chunks, terms FROM totals WHERE files > 0"
_FILES = "SELECT path, source, hash, size, mtime_ns, inode FROM files"
_CHUNKS_WITH = "SELECT doc FROM chunks_terms WHERE term = ?"
_CHUNKS_BETWEEN = """SELECT f.path, f.source, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
                       FROM chunks c JOIN files f ON f.id = c.file_id
                      WHERE f.source = :source AND f.path = :path AND c.start_line <= :last AND c.end_line >= :first
                      ORDER BY c.ordinal"""


class SqliteReader:
    """Reads inside one transaction, which the generation has begun and will end."""

    def __init__(self, db: apsw.Connection, cache: GenerationCache) -> None:
        self._db = db
        self._cache = cache
        (self._revision,) = one_row(db, _REVISION)  # the first read fixes what the view sees
        self._fingerprint = read_fingerprint(db)
        self._postings: dict[str, Mapping[int, int]] = {}
        # By a query's terms: what they gave, and which chunks were looked at for it.
        self._found: dict[tuple[str, ...], tuple[Mapping[int, float], KeysView[int]]] = {}
        totals = rows(db, _TOTALS)
        self._counts = IndexCounts(
            files={source: files for source, files, _, _ in totals},
            chunks={source: chunks for source, _, chunks, _ in totals},
        )
        self._chunk_count = sum(chunks for _, _, chunks, _ in totals)
        self._average_length = sum(terms for *_, terms in totals) / (self._chunk_count or 1)

    def fingerprint(self) -> IndexFingerprint | None:
        """How this index was made; None asks for a rebuild."""
        return self._fingerprint

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""
        found = {}
        for path, source, hash_, size, mtime_ns, inode in self._db.execute(_FILES):
            found[source, path] = FileState(path, source, hash_, size, mtime_ns, unsigned_64(inode))
        return found

    def counts(self) -> IndexCounts:
        """Files and chunks by source."""
        return self._counts

    def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
        """In how many chunks each term stands."""
        counted = {}
        for term in terms:
            row = self._db.execute(_CHUNKS_WITH, (bm25.storable_term(term),)).fetchone()
            counted[term] = row[0] if row else 0
        return TermStatistics(chunk_count=self._chunk_count, chunks_with=counted)

    def keyword_candidates(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks with any of `terms`, by BM25, best first."""
        weights = self._weights(terms)
        if not weights or limit <= 0:
            return []
        penalties = self._cache.penalties(self._db, self._revision, where.sources, self._average_length)
        found = bm25.scores(weights, self._postings, penalties)
        self._found[tuple(weights)] = (found, penalties.keys())
        return self._candidates(bm25.best(found, limit))

    def vector_candidates(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[Candidate]:
        """The chunks nearest to `vector`, best first."""
        if self._fingerprint is None or limit <= 0:
            return []
        dims = self._fingerprint.embedder.dims
        near = self._cache.segments.nearest(
            self._db, packed(vector, dims), where.sources, dims=dims, limit=limit
        )
        return self._candidates(bm25.best(near, limit))

    def keyword_scores(self, terms: Sequence[str], ids: Sequence[int]) -> list[float]:
        """The keyword score of given candidates."""
        weights = self._weights(terms)
        if tuple(weights) in self._found:
            found, weighed = self._found[tuple(weights)]
            if all(id_ in weighed for id_ in ids):
                return [found.get(id_, 0.0) for id_ in ids]
        stored = self._cache.chunks(self._db, ids)
        penalties = {id_: bm25.length_penalty(stored[id_].term_count, self._average_length) for id_ in ids}
        occurrences = {id_: {term: self._postings[term].get(id_, 0) for term in weights} for id_ in ids}
        return [bm25.score(weights, occurrences[id_], penalties[id_]) for id_ in ids]

    def similarities(self, vector: Vector, ids: Sequence[int]) -> list[float]:
        """The cosine of given candidates."""
        if self._fingerprint is None:
            return [0.0] * len(ids)
        dims = self._fingerprint.embedder.dims
        vectors = self._cache.vectors(self._db, ids, dims=dims)
        if not vectors:
            return [0.0] * len(ids)
        _, dots = choose_dots()
        cosines = dict(
            zip(vectors, dots(packed(vector, dims), b"".join(vectors.values()), dims), strict=True)
        )
        return [cosine_score(cosines.get(id_, 0.0)) for id_ in ids]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""
        asked = {"source": source, "path": path, "first": first_line, "last": last_line}
        return [Chunk(*row) for row in self._db.execute(_CHUNKS_BETWEEN, asked)]

    def _weights(self, terms: Sequence[str]) -> Mapping[str, float]:
        """The weight of each distinct term, with its postings read."""
        asked = bm25.distinct_terms(terms)
        for term in asked:
            if term not in self._postings:
                self._postings[term] = self._cache.postings(self._db, self._revision, term)
        if not asked:
            return {}
        return bm25.term_weights(self._chunk_count, {term: len(self._postings[term]) for term in asked})

    def _candidates(self, ranked: Sequence[tuple[int, float]]) -> list[Candidate]:
        chunks = self._cache.chunks(self._db, [id_ for id_, _ in ranked])
        return [Candidate(id_, chunks[id_].chunk, cosine_score(score)) for id_, score in ranked]
