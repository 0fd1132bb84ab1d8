"""The vectors of a small index, side by side in memory: compared all at once, sooner than LanceDB could be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commonplace.store.kernels import BYTES_PER_NUMBER, choose_dots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 16_000_000  # of vectors that a process keeps so


class VectorBlock:
    """A row for each chunk of one state, by ascending id."""

    def __init__(self, ids: Any, rows: Any, is_there: Any) -> None:
        self.ids = ids
        self.rows = rows  # bytes of float16; zeros where a chunk has no vector
        self.is_there = is_there

    def nearest(self, query: bytes, indexes: Any, limit: int) -> list[tuple[int, float]]:
        """The ids and cosines of the nearest among some chunks, best first; among equals the smaller id."""
        import numpy as np

        indexes = indexes[self.is_there[indexes]]
        if not len(indexes):
            return []
        rows = self.rows if len(indexes) == len(self.ids) else self.rows[indexes]
        _, dots = choose_dots()
        cosines = np.array(dots(query, rows.tobytes(), len(query) // BYTES_PER_NUMBER))
        ids = self.ids[indexes]
        best = np.lexsort((ids, -cosines))[:limit]
        return list(zip(ids[best].tolist(), cosines[best].tolist(), strict=True))

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Packed vectors by id, of those that have one."""
        indexes = self.ids.searchsorted(ids).tolist() if len(ids) else []
        return {
            id_: self.rows[index].tobytes()
            for id_, index in zip(ids, indexes, strict=True)
            if self.is_there[index]
        }


def read_block(
    ids: Any, dims: int, read: Callable[[Sequence[int]], Sequence[bytes | None]], before: VectorBlock | None
) -> VectorBlock:
    """Make the block of a state; `read` gives vectors by index, of those that the block before it did not have."""
    import numpy as np

    width = dims * BYTES_PER_NUMBER
    rows = np.zeros((len(ids), width), dtype=np.uint8)
    is_there = np.zeros(len(ids), dtype=bool)
    missing = np.ones(len(ids), dtype=bool)
    if before is not None and len(before.ids) and len(ids):
        at = np.minimum(np.searchsorted(before.ids, ids), len(before.ids) - 1)
        kept = before.ids[at] == ids
        rows[kept], is_there[kept] = before.rows[at[kept]], before.is_there[at[kept]]
        missing = ~kept
    wanted = np.flatnonzero(missing).tolist()
    for index, vector in zip(wanted, read(wanted), strict=True):
        if vector is not None:
            rows[index], is_there[index] = np.frombuffer(vector, dtype=np.uint8), True
    return VectorBlock(ids, rows, is_there)
