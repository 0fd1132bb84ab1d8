"""Rough copies of all vectors, a byte for each number, in the memory of a process that stays.

Signs are a small fraction of the vectors and all that a cold search has to read, but they point only roughly: a
thousand vectors and more are then read row by row. A process that has read as many rows as there are vectors could
have had all of them. From then on it compares every vector, at one byte a number, and reads the few best exactly.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence

import apsw

from commonplace.store.arithmetic.parts import Absences
from commonplace.store.sqlite.connection import rows
from commonplace.store.sqlite.segments import Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

MOST_BYTES = 40_000_000  # 150,000 vectors of 256 numbers; an index with more is searched by its signs

_ROWS = "SELECT id, vector FROM vectors WHERE id >= ? AND id < ? ORDER BY id"
_ROWS_AT_ONCE = 4_096


class _Copy:
    """The vectors of one segment. Positions are never used again, so what was copied stays right."""

    def __init__(self, capacity: int, dims: int) -> None:
        import numpy as np

        self.copied = 0  # positions below are there
        self.numbers = np.zeros((capacity, dims), dtype=np.int8)
        self.scales = np.zeros(capacity, dtype=np.float32)  # what a unit of `numbers` is worth; 0: no vector

    def copy(self, db: apsw.Connection, segment: Segment) -> None:
        """Copy what has come since."""
        import numpy as np

        dims = self.numbers.shape[1]
        for start in range(self.copied, segment.used, _ROWS_AT_ONCE):
            end = min(start + _ROWS_AT_ONCE, segment.used)
            found = rows(db, _ROWS, (segment.first_id + start, segment.first_id + end))
            if not found:
                continue
            positions = np.array([id_ for id_, _ in found]) - segment.first_id
            vectors = np.frombuffer(b"".join(vector for _, vector in found), dtype=np.float16)
            exact = vectors.reshape(-1, dims).astype(np.float32)
            units = np.abs(exact).max(axis=1) / 127
            self.numbers[positions] = np.rint(exact / units[:, None])
            self.scales[positions] = units
        self.copied = segment.used


class RoughVectors:
    """Copies of the vectors of one generation, made once they are worth it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copies: dict[int, _Copy] = {}
        self._compared = 0  # how many vectors were read one by one so far

    def compared(self, count: int) -> None:
        """Note that vectors had to be read one by one."""
        self._compared += count

    def are_worth_it(self, segments: Sequence[Segment], dims: int) -> bool:
        """Whether to use them, and to make them if need be."""
        if "numpy" not in sys.modules:
            return False  # a process that has had no need of it yet may be about to end
        count = sum(segment.used for segment in segments)
        return 0 < count <= self._compared and self.bytes_with(segments, dims) <= MOST_BYTES

    def bytes_with(self, segments: Sequence[Segment], dims: int) -> int:
        """How much memory all copies take once these segments are among them."""
        rows = {segment.first_id: max(segment.capacity, segment.used) for segment in segments}
        with self._lock:
            others = sum(len(copy.scales) for first_id, copy in self._copies.items() if first_id not in rows)
        return (sum(rows.values()) + others) * (dims + 4)

    def keep(self, living: Iterable[int]) -> None:
        """Let go of segments that are no more; `living` are the first ids of those that are."""
        with self._lock:
            for first_id in self._copies.keys() - set(living):
                del self._copies[first_id]

    def nearest(
        self,
        db: apsw.Connection,
        query: bytes,
        segments: Sequence[tuple[Segment, Absences]],
        wanted: int,
    ) -> list[int]:
        """The ids of about the `wanted` nearest vectors."""
        import numpy as np

        exact = np.frombuffer(query, dtype=np.float16).astype(np.float32)
        asked = np.rint(exact / (np.abs(exact).max() / 127)).astype(np.int8)
        ids, cosines = [], []
        for segment, absences in segments:
            copy = self._copy_of(db, segment, len(exact))
            scales = copy.scales[: segment.used]
            near = _dots(asked, copy.numbers[: segment.used]) * scales
            near[scales == 0] = (
                np.inf
            )  # gone before it was copied: a view that still has it has to compare it
            if absences.count:
                near[np.frombuffer(absences.positions, dtype=np.int64)] = -np.inf
            ids.append(np.arange(segment.first_id, segment.first_id + segment.used))
            cosines.append(near)
        all_ids, all_cosines = np.concatenate(ids), np.concatenate(cosines)
        wanted += int(np.count_nonzero(all_cosines == np.inf))
        if len(all_ids) > wanted:
            chosen = np.argpartition(all_cosines, -wanted)[-wanted:]
            all_ids, all_cosines = all_ids[chosen], all_cosines[chosen]
        found: list[int] = all_ids[all_cosines > -np.inf].tolist()
        return found

    def _copy_of(self, db: apsw.Connection, segment: Segment, dims: int) -> _Copy:
        with self._lock:
            copy = self._copies.get(segment.first_id)
            if copy is None:
                copy = self._copies[segment.first_id] = _Copy(max(segment.capacity, segment.used), dims)
            if copy.copied < segment.used:
                copy.copy(db, segment)
            return copy


def _dots(query: Array, block: Array) -> Array:
    """The products of a row of bytes with many."""
    import numpy as np

    try:
        import simsimd
    except ImportError:
        return block.astype(np.float32) @ query.astype(np.float32)
    found: Array = np.asarray(simsimd.cdist(query[None], block, "dot"))[0]
    return found
