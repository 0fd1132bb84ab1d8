"""The vectors of an index in the memory of a process, a byte for each number: compared all at once, then a few exactly.

LanceDB takes milliseconds to be asked at all, and an index of its own looks into a part of the rows. All vectors of
100,000 chunks are compared here in two. The vectors themselves are kept too while there is room for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from plainmind.index.vectors import BYTES_PER_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    # Where vectors are among all chunks, and their numbers as float16, a row each.
    Vectors: TypeAlias = tuple[Any, Any]


MOST_BYTES = 40_000_000  # 150,000 vectors of 256 numbers
_SCALE = 4  # bytes beside the numbers of a vector
_ONE_IN = 4  # so few of all are sooner put together than all compared


class VectorBlock:
    """A row for each chunk of one state, by ascending id."""

    def __init__(self, ids: Any, dims: int) -> None:
        import numpy as np

        self.ids = ids
        self.numbers = np.zeros((len(ids), dims), dtype=np.int8)
        self.scales = np.zeros(len(ids), dtype=np.float32)  # what a unit of `numbers` is worth; 0: no vector
        self.exact = (
            np.zeros((len(ids), dims), dtype=np.float16) if _has_room_for_both(len(ids), dims) else None
        )

    def put(self, indexes: Any, vectors: Any) -> None:
        """Take in vectors."""
        import numpy as np

        numbers = vectors.astype(np.float32)
        units = np.abs(numbers).max(axis=1, initial=0) / 127
        self.numbers[indexes] = np.rint(numbers / units[:, None])
        self.scales[indexes] = units
        if self.exact is not None:
            self.exact[indexes] = vectors

    def near(self, query: bytes, indexes: Any, wanted: int) -> Any:
        """Which of some chunks are the `wanted` nearest, as far as bytes can tell; those without a vector are none."""
        import numpy as np

        from plainmind.index.arithmetic_numpy import products

        if not len(indexes):
            return indexes
        numbers = np.frombuffer(query, dtype=np.float16).astype(np.float32)
        asked = np.rint(numbers / (np.abs(numbers).max() / 127)).astype(np.int8)
        if len(indexes) * _ONE_IN < len(self.ids):
            cosines = products(asked, self.numbers[indexes]) * self.scales[indexes]
        else:
            cosines = (products(asked, self.numbers) * self.scales)[indexes]
        there = self.scales[indexes] != 0
        cosines[~there] = -np.inf
        found = min(wanted, int(np.count_nonzero(there)))
        if found == len(indexes):
            return indexes
        return indexes[np.argpartition(-cosines, found)[:found]]

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes] | None:
        """Packed vectors by id, of those that have one; None where they are not kept as they are."""
        if self.exact is None:
            return None
        indexes = self.ids.searchsorted(ids).tolist() if len(ids) else []
        return {
            id_: self.exact[index].tobytes()
            for id_, index in zip(ids, indexes, strict=True)
            if self.scales[index]
        }


def fits(count: int, dims: int) -> bool:
    """Whether so many vectors are kept."""
    return count * (dims + _SCALE) <= MOST_BYTES


def read_block(
    ids: Any, dims: int, read: Callable[[Any], Iterable[Vectors]], before: VectorBlock | None
) -> VectorBlock:
    """Make the block of a state; `read` gives the vectors of those that the block before it did not have."""
    import numpy as np

    block = VectorBlock(ids, dims)
    missing = np.ones(len(ids), dtype=bool)
    if (
        before is not None
        and len(before.ids)
        and len(ids)
        and (before.exact is not None) >= (block.exact is not None)
    ):
        at = np.minimum(np.searchsorted(before.ids, ids), len(before.ids) - 1)
        kept = before.ids[at] == ids
        block.numbers[kept], block.scales[kept] = before.numbers[at[kept]], before.scales[at[kept]]
        if block.exact is not None and before.exact is not None:
            block.exact[kept] = before.exact[at[kept]]
        missing = ~kept
    for indexes, vectors in read(np.flatnonzero(missing)):
        block.put(indexes, vectors)
    return block


def _has_room_for_both(count: int, dims: int) -> bool:
    return count * (dims + _SCALE + BYTES_PER_NUMBER * dims) <= MOST_BYTES


# A table with fewer vectors is sooner compared as a whole than by an index, which also takes long to make.
INDEX_FROM = 100_000
# Of the partitions, one in so many is looked into: on clustered vectors .998 of the nearest 48 are found.
_PROBED_ONE_IN = 4
_LEAST_PROBES = 24


def partitions_for(chunk_count: int) -> int:
    """Into how many partitions so many vectors are divided."""
    return max(2, int(chunk_count**0.5 / 2))


def probes_for(chunk_count: int) -> int:
    """Into how many of them a search looks."""
    return max(_LEAST_PROBES, partitions_for(chunk_count) // _PROBED_ONE_IN)
