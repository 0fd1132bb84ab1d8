"""Vectors of an index: packed as float16, compared exactly, and their signs.

Signs take two bits a number: enough to tell which few of many vectors are worth comparing exactly.
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache

from plainmind.base.errors import BadVector
from plainmind.base.model import Vector
from plainmind.base.value import value

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


# Signs choose which vectors are compared exactly: first by the number of signs that differ, then, among the nearest by
# that, by the same with the query's numbers weighed. Those are compared nearest first, batch by batch, until a whole
# batch brings nothing better. Chosen on the builtin embedder's vectors of real notes and on clustered random ones, for
# 99 % of the nearest 24 at every size.
EXACT_UP_TO = 1_024  # so few are all compared
LEAST_LIMIT = 48  # fewer wanted are looked for as if it were so many: the last of them tells when to stop
_SMALL = 10_000
# For 10,000 vectors, and the power of their number by which each grows.
_BATCH, _GROWTH_OF_BATCH = 128, 0.3
_MOST, _GROWTH_OF_MOST = 768, 0.45
_POOL, _GROWTH_OF_POOL = 4_096, 0.4

# For numbers that spread like a bell curve, in their deviations; that of a unit vector's numbers is 1 / √dims.
_SLIGHT = 0.6  # a number of a stored vector below this counts for nothing, above it for one
_STEP = 0.586  # a query's numbers are weighed in four levels: the even steps that lose least
LEVELS = 4
_LONG, _LEVELS_OF_LONG = 4_096, 2  # more numbers than this, and four levels make distances of 2^16 and more

_HIGH_BYTE = 1 if sys.byteorder == "little" else 0


def signs_width(dims: int) -> int:
    """How many bytes the signs of a vector take."""
    return 2 * _half(dims)


def signs_of(packed: bytes) -> bytes:
    """The signs of one packed float16 vector, and once more with those of its slight numbers turned.

    A 1 for each number below zero, the last byte of each half filled with zeros. Another sign differs from exactly one
    of the two halves where a number is slight, whatever it is: so slight numbers add the same to every distance.
    """
    high = packed[_HIGH_BYTE::BYTES_PER_NUMBER]
    plain, turned = _digits(len(high))
    return _bits(high.translate(plain)) + _bits(high.translate(turned))


def query_signs(packed: bytes) -> list[bytes]:
    """The signs of a query, and those with the signs of its small numbers turned, its smaller ones, its smallest.

    The number of bits in which other signs differ is a distance. Four times the distance to the first plus the
    distances to the others weighs each number of the query by its size, in four levels, 1 : 3 : 5 : 7; the constant
    that the turned signs add is the same for every vector. Each is there twice, for both halves of other signs.
    """
    dims = len(packed) // BYTES_PER_NUMBER
    half = _half(dims)
    sizes = [abs(number) for number in struct.unpack(f"={dims}e", packed)]
    signs = int.from_bytes(signs_of(packed)[:half], "big")
    found = [signs]
    for level in range(1, LEVELS if dims <= _LONG else _LEVELS_OF_LONG):
        small = level * _STEP / dims**0.5
        turned = _bits(bytes([ord("1") if size < small else ord("0") for size in sizes]))
        found.append(signs ^ int.from_bytes(turned, "big"))
    return [2 * each.to_bytes(half, "big") for each in found]


@value
class Effort:
    """How much a search among vectors looks at."""

    pool: int  # are compared by weighed signs
    most: int  # of these are compared exactly, at most
    batch: int  # of these at a time


def effort_for(count: int, limit: int) -> Effort:
    """What it takes to find hardly less than all of the nearest `limit` of `count` vectors."""
    if count <= EXACT_UP_TO:
        return Effort(count, count, count)
    more = max(1.0, limit / LEAST_LIMIT)
    larger = max(1.0, count / _SMALL)
    most = int(more * _MOST * larger**_GROWTH_OF_MOST)
    pool = max(most, int(_POOL * larger**_GROWTH_OF_POOL))
    # Choosing a pool takes as long as comparing twice as many by weighed signs.
    return Effort(pool if count > 2 * pool else count, most, int(more * _BATCH * larger**_GROWTH_OF_BATCH))


def _half(dims: int) -> int:
    return (dims + 7) // 8


@lru_cache(maxsize=4)
def _digits(dims: int) -> tuple[bytes, bytes]:
    """By the high byte of a float16, which has its sign and about its size: the digit of its sign, plain and turned."""
    (slight,) = struct.unpack("=H", struct.pack("=e", _SLIGHT / dims**0.5 if dims else 0.0))
    below = (slight + 0x80) >> 8
    plain = bytes(b"01"[byte >> 7] for byte in range(256))
    turned = bytes(b"01"[(byte >> 7) ^ ((byte & 0x7F) < below)] for byte in range(256))
    return plain, turned


def _bits(digits: bytes) -> bytes:
    width = _half(len(digits))
    return int(digits.ljust(8 * width, b"0"), 2).to_bytes(width, "big") if digits else b""
