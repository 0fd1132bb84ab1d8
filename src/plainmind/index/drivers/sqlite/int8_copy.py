"""Copies of all vectors, a byte for each number, in the memory of a process that stays.

Signs are a small fraction of the vectors and all that a cold search has to read, but they point only roughly: a
thousand vectors and more are then read row by row. A process that has read as many rows as there are vectors could
have had all of them. From then on it compares every vector, at one byte a number, and reads the few best exactly:
from memory too, where there is room for both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from plainmind.index.vectors import BYTES_PER_NUMBER, Absences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np

    from plainmind.index.drivers.sqlite.view import Segment

    Array: TypeAlias = np.ndarray[Any, Any]
    # The ids, from the first to before the second, that have a vector, and their packed vectors.
    ReadVectors: TypeAlias = Callable[[int, int], Sequence[tuple[int, bytes]]]

MOST_BYTES = 40_000_000  # 150,000 vectors of 256 numbers; an index with more is searched by its signs

_ROWS_AT_ONCE = 4_096
_SCALE = 4  # bytes beside the numbers of a vector
_LEAST = -1e9  # below any cosine, however rough
_COLUMNS = 8  # times the wanted ones: so many that two of the wanted are seldom in the same one


class _Copy:
    """The vectors of one segment. Positions are never used again, so what was copied stays right."""

    def __init__(self, capacity: int, dims: int, *, with_exact: bool) -> None:
        import numpy as np

        self.copied = 0  # positions below are there
        self.numbers = np.zeros((capacity, dims), dtype=np.int8)
        self.scales = np.zeros(capacity, dtype=np.float32)  # what a unit of `numbers` is worth; 0: no vector
        self.gaps = np.empty(0, dtype=np.int64)  # the positions that were copied and had no vector
        # The vectors as they are stored, where there is room for them too.
        self.exact = np.zeros((capacity, dims), dtype=np.float16) if with_exact else None

    def copy(self, read: ReadVectors, segment: Segment) -> None:
        """Copy what has come since."""
        import numpy as np

        dims = self.numbers.shape[1]
        for start in range(self.copied, segment.used, _ROWS_AT_ONCE):
            end = min(start + _ROWS_AT_ONCE, segment.used)
            found = read(segment.first_id + start, segment.first_id + end)
            if not found:
                continue
            positions = np.array([id_ for id_, _ in found]) - segment.first_id
            vectors = np.frombuffer(b"".join(vector for _, vector in found), dtype=np.float16)
            stored = vectors.reshape(-1, dims)
            if self.exact is not None:
                self.exact[positions] = stored
            numbers = stored.astype(np.float32)
            units = np.abs(numbers).max(axis=1) / 127
            self.numbers[positions] = np.rint(numbers / units[:, None])
            self.scales[positions] = units
        self.gaps = np.flatnonzero(self.scales[: segment.used] == 0)
        self.copied = segment.used


class Int8Copies:
    """Copies of the vectors of one generation, segment by segment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copies: dict[int, _Copy] = {}

    def fit(self, segments: Sequence[Segment], dims: int) -> bool:
        """Whether there is room for copies of these segments beside those that there are."""
        return self._rows_with(segments) * (dims + _SCALE) <= MOST_BYTES

    def bytes_with(self, segments: Sequence[Segment], dims: int) -> int:
        """How much memory all copies take once these segments are among them."""
        count = self._rows_with(segments)
        return count * (_exact_row(dims) if _has_room_for_exact(count, dims) else dims + _SCALE)

    def keep(self, living: Iterable[int]) -> None:
        """Let go of segments that are no more; `living` are the first ids of those that are."""
        with self._lock:
            for first_id in self._copies.keys() - set(living):
                del self._copies[first_id]

    def nearest(
        self,
        read: ReadVectors,
        query: bytes,
        segments: Sequence[tuple[Segment, Absences]],
        wanted: int,
    ) -> list[int]:
        """The ids of about the `wanted` nearest vectors, or some more."""
        import numpy as np

        from plainmind.index.arithmetic_numpy import products

        numbers = np.frombuffer(query, dtype=np.float16).astype(np.float32)
        asked = np.rint(numbers / (np.abs(numbers).max() / 127)).astype(np.int8)
        count = self._rows_with([segment for segment, _ in segments])
        with_exact = _has_room_for_exact(count, len(numbers))
        cosines = []
        for segment, absences in segments:
            copy = self._copy_of(read, segment, len(numbers), with_exact=with_exact)
            near = products(asked, copy.numbers[: segment.used]) * copy.scales[: segment.used]
            if len(copy.gaps):
                # Gone before it was copied: a view that still has it has to compare it.
                near[copy.gaps[copy.gaps < segment.used]] = np.inf
            if absences.count:
                near[np.frombuffer(absences.positions, dtype=np.int64)] = -np.inf
            if len(copy.gaps):
                wanted += int(np.count_nonzero(near == np.inf))
            cosines.append(near)
        floor = _reached(cosines[0] if len(cosines) == 1 else np.concatenate(cosines), wanted)
        found: list[int] = []
        for (segment, _), near in zip(segments, cosines, strict=True):
            found += (np.flatnonzero(near >= floor) + segment.first_id).tolist()
        return found

    def exact(self, segment: Segment, ids: Sequence[int]) -> tuple[list[int], bytes]:
        """Those of some ids of a segment whose vectors are here as they are stored, and these vectors."""
        copy = self._copies.get(segment.first_id)
        vectors = copy.exact if copy is not None else None
        if copy is None or vectors is None:
            return [], b""
        import numpy as np

        positions = np.array(ids) - segment.first_id
        here = copy.scales[positions] != 0.0
        if here.all():
            return list(ids), vectors[positions].tobytes()
        return [id_ for id_, one in zip(ids, here.tolist(), strict=True) if one], vectors[
            positions[here]
        ].tobytes()

    def _rows_with(self, segments: Sequence[Segment]) -> int:
        """For how many vectors the copies have room once these segments are among them."""
        own = {segment.first_id: max(segment.capacity, segment.used) for segment in segments}
        with self._lock:
            others = sum(len(copy.scales) for first_id, copy in self._copies.items() if first_id not in own)
        return sum(own.values()) + others

    def _copy_of(self, read: ReadVectors, segment: Segment, dims: int, *, with_exact: bool) -> _Copy:
        with self._lock:
            copy = self._copies.get(segment.first_id)
            if copy is None:
                capacity = max(segment.capacity, segment.used)
                copy = self._copies[segment.first_id] = _Copy(capacity, dims, with_exact=with_exact)
            if not with_exact:
                copy.exact = None
            if copy.copied < segment.used:
                copy.copy(read, segment)
            return copy


def _exact_row(dims: int) -> int:
    """How many bytes a vector takes that is kept both ways."""
    return dims + _SCALE + BYTES_PER_NUMBER * dims


def _has_room_for_exact(count: int, dims: int) -> bool:
    return count * _exact_row(dims) <= MOST_BYTES


def _reached(cosines: Array, wanted: int) -> float:
    """A number that `wanted` cosines reach, and hardly more; anything that is one, when there are not so many."""
    import numpy as np

    if len(cosines) <= wanted:
        return _LEAST
    # The best of each column are different ones, so the worst of the `wanted` best of them is reached by as many.
    columns = _COLUMNS * wanted
    height = len(cosines) // columns
    if height > 1:
        cosines = cosines[: height * columns].reshape(height, columns).max(axis=0)
    return max(_LEAST, float(np.partition(cosines, -wanted)[-wanted]))
