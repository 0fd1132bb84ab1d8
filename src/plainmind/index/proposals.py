"""What a search asks of a view before it reads any text: which chunks come into question, by their ids alone.

A store that has each chunk in a row of its own is asked for twice as many as are ever read. It may offer `proposals()`
and `term_counts()` beside what every reader promises; for one that does not, they are made of what it promises. One
that computes elsewhere may offer `expect_vector()`.
"""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.base.model import Candidate, Chunk, SearchFilter, Vector
from plainmind.index.protocol import IndexReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol
else:
    Protocol = object


class Proposals(Protocol):
    """Chunks that words or a vector propose, fetched when they are asked for."""

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of `keyword_candidates`."""

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of `vector_candidates`."""

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:
        """The chunks of ids that were proposed."""


def proposals_of(reader: IndexReader) -> Proposals:
    """The reader's own proposals, or its candidates."""
    own: Any = getattr(reader, "proposals", None)
    found: Proposals = _Candidates(reader) if own is None else own()
    return found


def expect_vector(proposals: Proposals, vector: Vector, *, where: SearchFilter, limit: int) -> None:
    """Say which vector will be asked for, to a store that can begin with it while something else is done."""
    own: Any = getattr(proposals, "expect_vector", None)
    if own is not None:
        own(vector, where=where, limit=limit)


def known_term_counts(
    reader: IndexReader, terms: Sequence[str], ids: Sequence[int]
) -> Sequence[bytes | None]:
    """For each id a byte a term: how often it stands in the chunk, 255 for as often or more.

    None for all where the reader has no `term_counts(terms, ids)`: whoever wants to know has to look at the texts.
    """
    own: Any = getattr(reader, "term_counts", None)
    found: Sequence[bytes | None] = [None] * len(ids) if own is None else own(terms, ids)
    return found


class _Candidates:
    """The proposals of a reader that gives chunks at once."""

    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader
        self._chunks: dict[int, Chunk] = {}

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:
        return self._noted(self._reader.keyword_candidates(terms, where=where, limit=limit))

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:
        return self._noted(self._reader.vector_candidates(vector, where=where, limit=limit))

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:
        return [self._chunks[id_] for id_ in ids]

    def _noted(self, candidates: Sequence[Candidate]) -> list[int]:
        self._chunks |= {candidate.id: candidate.chunk for candidate in candidates}
        return [candidate.id for candidate in candidates]
