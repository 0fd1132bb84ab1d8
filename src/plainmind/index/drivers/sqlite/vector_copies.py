"""Copies of all vectors in the memory of a process that stays: as float16 where they are few, else a byte a number.

Signs are a small fraction of the vectors and all that a cold search has to read, but they point only roughly: a
thousand vectors and more are then read row by row. A process that has read as many rows as there are vectors could
have had all of them. From then on it has some thousand of them side by side, and compares all of them exactly, in a
tenth of a millisecond. More of them are copied earlier, for what signs have chosen: in their order they are read four
times as fast. From then on it compares every vector as it is kept, at one byte a number, with the question rounded
alike, and the few best exactly. Only those that are kept as float16 are read once more for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from plainmind.base.lazy import Lock
from plainmind.index.vectors import BYTES_PER_NUMBER, STEPS, Absences, cosines_of, foremost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np

    from plainmind.index.drivers.sqlite.view import Segment

    Array: TypeAlias = np.ndarray[Any, Any]
    # The ids, from the first to before the second, that have a vector, and their vectors.
    ReadVectors: TypeAlias = Callable[[int, int], Sequence[tuple[int, bytes]]]

MOST_BYTES = 40_000_000  # 150,000 vectors of 256 numbers; an index with more is searched by its signs

MOST_BLOCK_BYTES = 6_000_000  # 11,700 vectors of 256 numbers; of more there are copies at one byte a number
_LEAST_ROOM = 256  # vectors that may come before a block is made anew

_ROWS_AT_ONCE = 4_096
_STEP = 5  # bytes beside the numbers of a vector
_BYTES = 256


class _Block:
    """The vectors of one segment. Positions are never used again, so what was copied stays right."""

    __slots__ = ("_numbers", "copied", "gaps")

    def __init__(self) -> None:
        self.copied = 0  # positions below are there
        self.gaps: frozenset[int] = frozenset()  # those of them that had no vector
        self._numbers = bytearray()

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return len(self._numbers)

    def rows(self, count: int, width: int) -> memoryview:
        """The first vectors, one after the other, zeros where there is none."""
        return memoryview(self._numbers)[: count * width]

    def copy(self, read: ReadVectors, segment: Segment, width: int) -> None:
        """Copy what has come since."""
        first, used = segment.first_id, segment.used
        if used * width > len(self._numbers):
            # Others may be reading the one before: it is never made longer.
            room = (used + max(_LEAST_ROOM, used // 8)) * width
            numbers = bytearray(room)
            numbers[: len(self._numbers)] = self._numbers
            self._numbers = numbers
        absent = set(range(self.copied, used))
        for id_, vector in read(first + self.copied, first + used):
            at = id_ - first
            self._numbers[at * width : (at + 1) * width] = vector
            absent.discard(at)
        self.gaps |= absent
        self.copied = used


class VectorBlocks:
    """The blocks of one generation, segment by segment. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks: dict[int, _Block] = {}

    def fit(self, segments: Sequence[Segment], dims: int) -> bool:
        """Whether there is room for these segments beside those that there are."""
        own = {segment.first_id: segment.used for segment in segments}
        with self._lock:
            others = sum([block.size for first, block in self._blocks.items() if first not in own])
        return sum(own.values()) * dims * BYTES_PER_NUMBER + others <= MOST_BLOCK_BYTES

    @property
    def size(self) -> int:
        """How many bytes all blocks take."""
        with self._lock:
            return sum([block.size for block in self._blocks.values()])

    def keep(self, living: Iterable[int]) -> None:
        """Let go of segments that are no more; `living` are the first ids of those that are."""
        with self._lock:
            for first_id in self._blocks.keys() - set(living):
                del self._blocks[first_id]

    def compare(
        self, read: ReadVectors, query: bytes, segments: Sequence[tuple[Segment, Absences]], wanted: int
    ) -> Compared:
        """Compare a packed vector with all vectors of some segments."""
        found = Compared()
        for segment, absences in segments:
            block = self._block_of(read, segment, len(query))
            cosines = cosines_of(query, block.rows(segment.used, len(query)))
            found.cosines[segment.first_id] = cosines, block.gaps
            first = segment.first_id
            # Gone before it was copied: a view that still has it has to compare it, and zeros stand in its place.
            gone = [at for at in block.gaps if at < segment.used and not absences.flags[at]]
            found.unread += [first + at for at in gone]
            found.nearest += [first + at for at in foremost(cosines, absences.flags, wanted + len(gone))]
        return found

    def _block_of(self, read: ReadVectors, segment: Segment, width: int) -> _Block:
        with self._lock:
            block = self._blocks.get(segment.first_id)
            if block is None:
                block = self._blocks[segment.first_id] = _Block()
            if block.copied < segment.used:
                block.copy(read, segment, width)
            return block


class Compared:
    """The cosines of one query with all vectors of some segments."""

    __slots__ = ("cosines", "nearest", "unread")

    def __init__(self) -> None:
        # By the first id of a segment: the cosine at each position, and the positions that had no vector.
        self.cosines: dict[int, tuple[memoryview[float], frozenset[int]]] = {}
        self.nearest: list[int] = []  # ids: those that are wanted, and others that are about as near
        self.unread: list[int] = []  # ids whose vectors have to be read

    def of(self, segment: Segment, ids: Iterable[int]) -> dict[int, float]:
        """The cosines of those ids of a segment that were compared."""
        found = self.cosines.get(segment.first_id)
        if found is None:
            return {}
        (cosines, gaps), first = found, segment.first_id
        count = len(cosines)
        if not gaps:
            return {id_: cosines[id_ - first] for id_ in ids if id_ - first < count}
        return {id_: cosines[id_ - first] for id_ in ids if id_ - first < count and id_ - first not in gaps}


class _Copy:
    """The vectors of one segment. Positions are never used again, so what was copied stays right."""

    def __init__(self, capacity: int, dims: int) -> None:
        import numpy as np

        self.copied = 0  # positions below are there
        self.numbers = np.zeros((capacity, dims), dtype=np.int8)
        self.steps = np.zeros(capacity, dtype=np.float32)  # what a unit of `numbers` is worth; 0: no vector
        self._codes = np.zeros(capacity, dtype=np.uint8)  # which of the steps that is
        self.gaps = np.empty(0, dtype=np.int64)  # the positions that were copied and had no vector
        self.rough: set[int] = set()  # those whose vectors are kept as float16 and are only about these

    def copy(self, read: ReadVectors, segment: Segment) -> None:
        """Copy what has come since."""
        import numpy as np

        dims = self.numbers.shape[1]
        for start in range(self.copied, segment.used, _ROWS_AT_ONCE):
            end = min(start + _ROWS_AT_ONCE, segment.used)
            found = read(segment.first_id + start, segment.first_id + end)
            rows = b"".join([kept for _, kept in found])
            if len(found) == end - start and len(rows) == len(found) * (dims + 1):
                # Nearly always: none is absent, and each, for none is shorter, is kept at a byte a number.
                self._take(slice(start, end), rows)
                continue
            short = {id_ - segment.first_id: kept for id_, kept in found if len(kept) == dims + 1}
            if short:
                self._take(list(short), b"".join(short.values()))
            if len(short) < len(found):
                self._round({id_ - segment.first_id: kept for id_, kept in found if len(kept) != dims + 1})
        self.gaps = np.flatnonzero(self.steps[: segment.used] == 0)
        self.copied = segment.used

    def exact(self, positions: Array) -> bytes:
        """The packed vectors of some positions, none of which is a gap or rough."""
        import numpy as np

        codes = self._codes.take(positions).astype(np.intp)
        numbers = self.numbers.take(positions, axis=0).view(np.uint8)
        return _float16_of_steps().take(_BYTES * codes[:, None] + numbers).tobytes()

    def _take(self, positions: slice | list[int], short: bytes) -> None:
        """Copy vectors that are kept at a byte a number, one after the other."""
        import numpy as np

        dims = self.numbers.shape[1]
        rows = np.frombuffer(short, dtype=np.uint8).reshape(-1, dims + 1)
        self.numbers[positions] = rows[:, :dims].view(np.int8)
        self._codes[positions] = rows[:, dims]
        self.steps[positions] = np.array(STEPS, dtype=np.float32)[rows[:, dims]]

    def _round(self, packed: Mapping[int, bytes]) -> None:
        """Copy vectors that are kept as float16, by their positions."""
        import numpy as np

        positions = list(packed)
        stored = np.frombuffer(b"".join(packed.values()), dtype=np.float16)
        numbers = stored.reshape(len(positions), -1).astype(np.float32)
        units = np.abs(numbers).max(axis=1) / 127
        self.numbers[positions] = np.rint(numbers / units[:, None])
        self.steps[positions] = units
        self.rough.update(positions)


class Int8Copies:
    """Copies of the vectors of one generation, segment by segment."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._copies: dict[int, _Copy] = {}

    def fit(self, segments: Sequence[Segment], dims: int) -> bool:
        """Whether there is room for copies of these segments beside those that there are."""
        return self.bytes_with(segments, dims) <= MOST_BYTES

    def bytes_with(self, segments: Sequence[Segment], dims: int) -> int:
        """How much memory all copies take once these segments are among them."""
        own = {segment.first_id: max(segment.capacity, segment.used) for segment in segments}
        with self._lock:
            others = sum(len(copy.steps) for first_id, copy in self._copies.items() if first_id not in own)
        return (sum(own.values()) + others) * (dims + _STEP)

    def keep(self, living: Iterable[int]) -> None:
        """Let go of segments that are no more; `living` are the first ids of those that are."""
        with self._lock:
            for first_id in self._copies.keys() - set(living):
                del self._copies[first_id]

    def copy(self, read: ReadVectors, segments: Iterable[Segment], dims: int) -> None:
        """Copy what has come since to some segments."""
        for segment in segments:
            self._copy_of(read, segment, dims)

    def nearest(
        self,
        read: ReadVectors,
        query: bytes,
        segments: Sequence[tuple[Segment, Absences]],
        wanted: int,
    ) -> list[int]:
        """The ids of about the `wanted` nearest vectors, or some more."""
        import numpy as np

        from plainmind.index.arithmetic_numpy import products, reached

        numbers = np.frombuffer(query, dtype=np.float16).astype(np.float32)
        asked = np.rint(numbers / (np.abs(numbers).max() / 127)).astype(np.int8)
        cosines = []
        for segment, absences in segments:
            copy = self._copy_of(read, segment, len(numbers))
            near = products(asked, copy.numbers[: segment.used]) * copy.steps[: segment.used]
            if len(copy.gaps):
                # Gone before it was copied: a view that still has it has to compare it.
                near[copy.gaps[copy.gaps < segment.used]] = np.inf
            if absences.count:
                near[np.frombuffer(absences.positions, dtype=np.int64)] = -np.inf
            if len(copy.gaps):
                wanted += int(np.count_nonzero(near == np.inf))
            cosines.append(near)
        floor = reached(cosines[0] if len(cosines) == 1 else np.concatenate(cosines), wanted)
        found: list[int] = []
        for (segment, _), near in zip(segments, cosines, strict=True):
            found += (np.flatnonzero(near >= floor) + segment.first_id).tolist()
        return found

    def exact(self, segment: Segment, ids: Sequence[int]) -> tuple[list[int], bytes]:
        """Those of some ids of a segment whose vectors are here as they are stored, and these vectors, packed."""
        copy = self._copies.get(segment.first_id)
        if copy is None:
            return [], b""
        import numpy as np

        first, rough, here = segment.first_id, copy.rough, list(ids)
        positions = np.array(here, dtype=np.int64) - first
        steps = copy.steps.take(positions)
        if rough or not steps.all():
            known = zip(ids, steps.tolist(), strict=True)
            here = [id_ for id_, step in known if step and id_ - first not in rough]
            positions = np.array(here, dtype=np.int64) - first
        return here, copy.exact(positions)

    def _copy_of(self, read: ReadVectors, segment: Segment, dims: int) -> _Copy:
        with self._lock:
            copy = self._copies.get(segment.first_id)
            if copy is None:
                capacity = max(segment.capacity, segment.used)
                copy = self._copies[segment.first_id] = _Copy(capacity, dims)
            if copy.copied < segment.used:
                copy.copy(read, segment)
            return copy


@lru_cache(maxsize=1)
def _float16_of_steps() -> Array:
    """For each step so many of it as a byte says, as float16; numpy takes twice as long to make one of a float32."""
    import numpy as np

    numbers = np.arange(_BYTES, dtype=np.uint8).view(np.int8)
    return (numbers * np.array(STEPS, dtype=np.float32)[:, None]).astype(np.float16).ravel()
