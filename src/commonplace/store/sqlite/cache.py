"""What a process has read of one generation, kept between searches and bounded.

Ids are never used again, so what belongs to an id stays right as long as the generation lives. What depends on all
chunks is kept together with the revision that it was read at.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import apsw

from commonplace.model import Chunk, Source
from commonplace.store import bm25
from commonplace.store.sqlite.vectors import SegmentCache, read_vectors

T = TypeVar("T")

_MOST_CHUNKS = 4096  # about 8 MB of text
_MOST_POSTINGS = 400_000  # about 40 MB
_CHUNKS = """SELECT c.id, c.term_count, c.slot,
                    f.path, f.source, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
               FROM chunks c JOIN files f ON f.id = c.file_id
              WHERE c.id IN (SELECT value FROM json_each(?))"""
_OCCURRENCES = "SELECT doc FROM chunks_occurrences WHERE term = ?"
_PENALTIES = """SELECT c.id, :fixed + :per_term * c.term_count
                  FROM files f JOIN chunks c ON c.file_id = f.id
                 WHERE f.source IN (SELECT value FROM json_each(:sources))"""


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk, how many terms it has, and where its vector is."""

    term_count: int
    slot: int | None
    chunk: Chunk


class GenerationCache:
    """Shared by the readers of one generation."""

    def __init__(self) -> None:
        self.segments = SegmentCache()
        self._lock = threading.Lock()
        self._chunks: dict[int, StoredChunk] = {}
        self._vectors: dict[int, bytes] = {}
        self._penalties: dict[frozenset[Source], tuple[int, Mapping[int, float]]] = {}
        self._postings: dict[str, Mapping[int, int]] = {}
        self._postings_revision = -1
        self._postings_size = 0

    def chunks(self, db: apsw.Connection, ids: Sequence[int]) -> Mapping[int, StoredChunk]:
        """Chunks by id."""

        def fetch(missing: Sequence[int]) -> dict[int, StoredChunk]:
            return {
                id_: StoredChunk(term_count, slot, Chunk(*row))
                for id_, term_count, slot, *row in db.execute(_CHUNKS, (json.dumps(missing),))
            }

        return self._kept(self._chunks, ids, fetch)

    def vectors(self, db: apsw.Connection, ids: Sequence[int], *, dims: int) -> Mapping[int, bytes]:
        """Packed vectors by id; chunks without one are left out."""
        stored = self.chunks(db, ids)

        def fetch(missing: Sequence[int]) -> dict[int, bytes]:
            slots = {id_: slot for id_ in missing if (slot := stored[id_].slot) is not None}
            return dict(zip(slots, read_vectors(db, list(slots.values()), dims=dims), strict=True))

        return self._kept(self._vectors, ids, fetch)

    def postings(self, db: apsw.Connection, revision: int, term: str) -> Mapping[int, int]:
        """How often a term stands in each chunk that has it."""
        with self._lock:
            if revision != self._postings_revision or self._postings_size > _MOST_POSTINGS:
                self._postings = {}
                self._postings_revision, self._postings_size = revision, 0
            known = self._postings.get(term)
        if known is None:
            known = Counter(chain.from_iterable(db.execute(_OCCURRENCES, (term,))))
            with self._lock:
                if revision == self._postings_revision:
                    self._postings[term] = known
                    self._postings_size += len(known) + 1
        return known

    def penalties(
        self, db: apsw.Connection, revision: int, sources: frozenset[Source], average: float
    ) -> Mapping[int, float]:
        """BM25's length penalty of every chunk of some sources."""
        with self._lock:
            known = self._penalties.get(sources)
        if known is None or known[0] != revision:
            fixed = bm25.length_penalty(0, average)
            asked = {
                "fixed": fixed,
                "per_term": bm25.length_penalty(1, average) - fixed,
                "sources": json.dumps(sorted(sources)),
            }
            known = (revision, dict(db.execute(_PENALTIES, asked)))
            with self._lock:
                self._penalties[sources] = known
        return known[1]

    def _kept(
        self, known: dict[int, T], ids: Sequence[int], fetch: Callable[[Sequence[int]], dict[int, T]]
    ) -> dict[int, T]:
        """What is known of some ids, with what is missing fetched and kept."""
        with self._lock:
            found = {id_: known[id_] for id_ in ids if id_ in known}
        missing = [id_ for id_ in ids if id_ not in found]
        if missing:
            fetched = fetch(missing)
            with self._lock:
                if len(known) + len(fetched) > _MOST_CHUNKS:
                    known.clear()
                known.update(fetched)
            found |= fetched
        return found
