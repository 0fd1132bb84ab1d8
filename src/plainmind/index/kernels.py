"""Cosines over packed float16 vectors: all the arithmetic on vectors that a store needs, without numpy."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Sequence

from plainmind.base.errors import BadVector
from plainmind.base.model import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BYTES_PER_NUMBER = 2  # float16: half the size of float32, cosines differ by less than 0.0002

Dots = Callable[[bytes, "bytes | memoryview", int], list[float]]


def packed(vector: Vector, dims: int) -> bytes:
    """The float16 bytes of a unit vector of `dims` numbers; anything else must not come near an index."""
    if len(vector) != dims:
        raise BadVector(
            f"a vector of {len(vector)} numbers does not belong into an index of {dims}",
            hint="the embedding model has changed: run `plainmind sync --force`",
        )
    length = math.hypot(*vector)
    if not 0.99 < length < 1.01:  # also catches NaN, which is in no range
        raise BadVector(f"a vector of length {length:.3g} instead of 1 must not be stored or searched for")
    return struct.pack(f"={dims}e", *vector)


def unpacked(packed_vector: bytes) -> Vector:
    """The numbers of a packed vector; packing them again gives the same bytes."""
    count = len(packed_vector) // BYTES_PER_NUMBER
    return array("f", struct.unpack(f"={count}e", packed_vector))


def _dots_by_simsimd(simsimd: Any) -> Dots:
    def dots(query: bytes, block: bytes | memoryview, dims: int) -> list[float]:
        # memoryview cannot be cast to "e"; the view says uint16 and `dtype` says what the bits mean.
        rows = len(block) // (dims * BYTES_PER_NUMBER)
        left = memoryview(query).cast("B").cast("H", (1, dims))
        right = memoryview(block).cast("B").cast("H", (rows, dims))
        cosines = simsimd.cdist(left, right, "dot", dtype="float16")
        found: list[float] = array("d", memoryview(cosines).cast("B").tobytes()).tolist()
        return found

    return dots


def _dots_by_numpy() -> Dots:
    import numpy as np

    def dots(query: bytes, block: bytes | memoryview, dims: int) -> list[float]:
        left = np.frombuffer(query, dtype=np.float16).astype(np.float32)
        right = np.frombuffer(block, dtype=np.float16).reshape(-1, dims).astype(np.float32)
        found: list[float] = (right @ left).astype(np.float64).tolist()
        return found

    return dots


def sign_distances(queries: Sequence[bytes], signs: bytes) -> list[memoryview]:
    """In how many bits each row of `signs` differs from each query; a row of uint16 for each query."""
    width = len(queries[0])
    rows = len(signs) // width
    try:
        import simsimd
    except ImportError:
        return _sign_distances_by_numpy(queries, signs, width)
    left = memoryview(b"".join(queries)).cast("B", (len(queries), width))
    right = memoryview(signs).cast("B", (rows, width))
    compare: Any = simsimd.cdist  # its stub does not know of whole numbers as a result
    found = memoryview(compare(left, right, "hamming", dtype="bin8", out_dtype="uint16")).cast("B")
    return [found[2 * rows * at : 2 * rows * (at + 1)].cast("H") for at in range(len(queries))]


def _sign_distances_by_numpy(queries: Sequence[bytes], signs: bytes, width: int) -> list[memoryview]:
    import numpy as np

    rows = np.frombuffer(signs, dtype=np.uint8).reshape(-1, width)
    found = []
    for query in queries:
        differing = np.bitwise_count(rows ^ np.frombuffer(query, dtype=np.uint8))
        found.append(memoryview(differing.sum(axis=1, dtype=np.uint16)))
    return found


def choose_dots() -> tuple[str, Dots]:
    """The fastest implementation that this machine has, and its name; both are exact."""
    try:
        import simsimd
    except ImportError:
        return "numpy", _dots_by_numpy()
    return "simsimd", _dots_by_simsimd(simsimd)


def cosine_score(dot: float) -> float:
    """The score of a cosine: 0..1, rounding and negatives cut off."""
    return dot if 0.0 <= dot <= 1.0 else min(1.0, max(0.0, dot))
