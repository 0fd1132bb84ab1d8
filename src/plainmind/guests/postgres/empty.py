"""A view of an index that was never built: there is nothing in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plainmind.base.model import (
    Chunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    Source,
    TermStatistics,
    Vector,
)
from plainmind.index.protocol import IndexCounts


class EmptyReader:
    """A view of an index that was never built."""

    def fingerprint(self) -> IndexFingerprint | None:
        """Nobody has made it."""
        return None

    def revision(self) -> tuple[int, int]:
        """Before the first."""
        return 0, 0

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """None."""
        return {}

    def counts(self) -> IndexCounts:
        """Nothing of any source."""
        return IndexCounts(files={}, chunks={})

    def term_statistics(self, terms: Sequence[str], *, where: SearchFilter) -> TermStatistics:  # noqa: ARG002
        """No term stands anywhere."""
        return TermStatistics(chunk_count=0, chunks_with=dict.fromkeys(terms, 0))

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:  # noqa: ARG002
        """None."""
        return []

    def expect_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> None:
        """Nothing will be found."""

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:  # noqa: ARG002
        """None."""
        return []

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:  # noqa: ARG002
        """None."""
        return []

    def term_counts(self, terms: Sequence[str], ids: Sequence[int]) -> list[bytes]:
        """No term stands anywhere."""
        return [bytes(len(terms)) for _ in ids]

    def keyword_scores(
        self,
        terms: Sequence[str],  # noqa: ARG002
        ids: Sequence[int],
        *,
        where: SearchFilter,  # noqa: ARG002
    ) -> list[float]:
        """Nothing scores."""
        return [0.0] * len(ids)

    def similarities(self, vector: Vector, ids: Sequence[int]) -> list[float]:  # noqa: ARG002
        """Nothing is near."""
        return [0.0] * len(ids)

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:  # noqa: ARG002
        """None."""
        return []

    def vectors_of(self, source: Source, path: str) -> list[Vector | None]:  # noqa: ARG002
        """None."""
        return []
