"""Vectors of an index: packed as float16, kept at a byte a number, compared exactly, and their signs.

Signs take two bits a number: enough to tell which few of many vectors are worth comparing exactly. Without numpy they
are compared by simsimd and very large integers: such an integer is a row of lanes, 16 bits each, and adding two of them
adds ten thousand small numbers in a microsecond. `arithmetic_numpy.py` does the same for a process that stays.
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, compress

from plainmind.base.errors import BadVector
from plainmind.base.model import Vector
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol
else:
    Protocol = object


# What importing numpy takes, and what plain arithmetic takes for one vector, in nanoseconds.
_IMPORTING = 65_000_000
_PER_VECTOR = 25
_BYTES = bytes(range(256))

BYTES_PER_NUMBER = 2  # float16: half the size of float32, cosines differ by less than 0.0002

# The numbers of a stored vector are rounded to a common step, so that a byte holds each: cosines differ by 0.0003, and
# seldom by more than 0.001. A step is 8 to 15 times a power of two: then any number of steps is exact as float16.
# Where one number stands out so far that the step had to be larger than the last of these, the vector stays as it is.
_OCTAVE = 8  # steps from one power of two to the next
_FINEST = -24  # the power of two of which all float16 numbers are multiples
_COARSEST = -8
STEPS = (
    *(
        (_OCTAVE + at % _OCTAVE) * 2.0 ** (at // _OCTAVE + _FINEST)
        for at in range(_OCTAVE * (_COARSEST - _FINEST - 3))
    ),
    2.0**_COARSEST,
)
_MOST_STEPS = 127
_SIGN = 128  # the bit of a byte that says below zero

_spent = 0  # on plain arithmetic, in nanoseconds

Dots = Callable[[bytes, "bytes | memoryview", int], list[float]]


def pack_vector(vector: Vector, dims: int) -> bytes:
    """The float16 bytes of a unit vector of `dims` numbers; anything else must not come near an index."""
    _check(vector, dims)
    return struct.pack(f"={dims}e", *vector)


def _check(vector: Vector, dims: int) -> None:
    if len(vector) != dims:
        raise BadVector(
            f"a vector of {len(vector)} numbers does not belong into an index of {dims}",
            hint="the embedding model has changed: run `plainmind sync --force`",
        )
    length = math.hypot(*vector)
    if not 0.99 < length < 1.01:  # also catches NaN, which is in no range
        raise BadVector(f"a vector of length {length:.3g} instead of 1 must not be stored or searched for")


def round_vector(vector: Vector, dims: int) -> bytes:
    """The float16 bytes of a unit vector as an index keeps it; those that were rounded before stay as they are."""
    return lengthen(shorten(vector, dims), dims)


def shorten(vector: Vector, dims: int) -> bytes:
    """A unit vector at a byte a number and one for their step; as float16 where that would lose too much."""
    _check(vector, dims)
    largest = _largest(vector)
    code = _code_of(largest / _MOST_STEPS)
    if code >= len(STEPS):
        return struct.pack(f"={dims}e", *vector)
    # What was rounded before is a whole number of steps, though perhaps of larger ones than would be chosen now.
    for at, step in enumerate(STEPS[code : code + _OCTAVE], start=code):
        if (largest / step).is_integer() and all((number / step).is_integer() for number in vector):
            code = at
            break
    return _in_steps(vector, STEPS[code]) + bytes((code,))


def _code_of(least: float) -> int:
    """Which step is the smallest that is no smaller than this."""
    part, power = math.frexp(least)
    return _OCTAVE * (power - 4 - _FINEST) + math.ceil(part * 2 * _OCTAVE) - _OCTAVE


def _largest(vector: Vector) -> float:
    """The largest number, signs aside."""
    if "numpy" not in sys.modules:
        return max(map(abs, vector))
    import numpy as np

    return float(np.abs(np.asarray(vector)).max())


def _in_steps(vector: Vector, step: float) -> bytes:
    """How many steps each number is, to the nearest and among two to the even one: a signed byte each."""
    if "numpy" not in sys.modules:
        return array("b", [round(number / step) for number in vector]).tobytes()
    import numpy as np

    return np.rint(np.asarray(vector, dtype=np.float64) / step).astype(np.int8).tobytes()


def lengthen(short: bytes, dims: int) -> bytes:
    """The float16 bytes of a vector that was shortened."""
    if len(short) == dims * BYTES_PER_NUMBER:
        return short
    return _as_float16(short[:dims], short[dims])


def lengthen_all(kept: Iterable[tuple[int, bytes]], dims: int) -> dict[int, bytes]:
    """The float16 bytes of many vectors by their ids, those of one step at once: in half of the time."""
    width = dims * BYTES_PER_NUMBER
    found: dict[int, bytes] = {}
    by_step: dict[int, list[tuple[int, bytes]]] = {}
    for id_, short in kept:
        if len(short) == width:
            found[id_] = short
        else:
            by_step.setdefault(short[dims], []).append((id_, short))
    for code, some in by_step.items():
        packed = _as_float16(b"".join([short for _, short in some]), code)
        row = width + BYTES_PER_NUMBER  # which the byte of the step has become
        found |= {id_: packed[at * row : at * row + width] for at, (id_, _) in enumerate(some)}
    return found


def _as_float16(numbers: bytes, code: int) -> bytes:
    first, second = _bytes_of_steps(code)
    found = bytearray(len(numbers) * BYTES_PER_NUMBER)
    found[0::2] = numbers.translate(first)
    found[1::2] = numbers.translate(second)
    return bytes(found)


@lru_cache(maxsize=64)
def _bytes_of_steps(code: int) -> tuple[bytes, bytes]:
    """For each signed byte, taken as unsigned, the first and the second byte of so many steps as float16."""
    step = STEPS[code]
    numbers = [(byte if byte < _SIGN else byte - 2 * _SIGN) * step for byte in range(2 * _SIGN)]
    packed = struct.pack(f"={len(numbers)}e", *numbers)
    return packed[0::2], packed[1::2]


def unpack_vector(packed_vector: bytes) -> Vector:
    """The numbers of a packed vector; packing them again gives the same bytes."""
    count = len(packed_vector) // BYTES_PER_NUMBER
    return array("f", struct.unpack(f"={count}e", packed_vector))


def _cosines_by_simsimd(simsimd: Any, query: bytes, block: bytes | memoryview) -> memoryview[float]:
    # memoryview cannot be cast to "e"; the view says uint16 and `dtype` says what the bits mean.
    dims = len(query) // BYTES_PER_NUMBER
    left = memoryview(query).cast("B").cast("H", (1, dims))
    right = memoryview(block).cast("B").cast("H", (len(block) // len(query), dims))
    return memoryview(simsimd.cdist(left, right, "dot", dtype="float16")).cast("B").cast("d")


def _dots_by_simsimd(simsimd: Any) -> Dots:
    def dots(query: bytes, block: bytes | memoryview, dims: int) -> list[float]:  # noqa: ARG001
        return list(_cosines_by_simsimd(simsimd, query, block))

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


def cosines_of(query: bytes, block: bytes | memoryview) -> memoryview[float]:
    """The products of a packed vector with many, one after the other: float64."""
    try:
        import simsimd
    except ImportError:
        found = _dots_by_numpy()(query, block, len(query) // BYTES_PER_NUMBER)
        return memoryview(array("d", found))
    return _cosines_by_simsimd(simsimd, query, block)


# The second byte of a float64 from 2^-15 to 2 tells sixteen sizes from one power of 2 to the next; the first is 0x3F.
_FROM_LITTLE_TO_TWO = bytes([255 if byte == 0x3F else 0 for byte in range(256)])


def foremost(cosines: memoryview[float], absent: bytes, wanted: int) -> list[int]:
    """The positions of the `wanted` largest of some numbers (float64), in order, and of others that are about as large.

    Never one that is absent: `absent` has a byte for each, 255 for those.
    """
    if "numpy" in sys.modules:
        from plainmind.index import arithmetic_numpy

        return arithmetic_numpy.foremost(cosines, absent, wanted)
    count = len(absent)
    raw = bytes(cosines)
    if sys.byteorder == "big":
        first, second = raw[0::8], raw[1::8]
    else:
        first, second = raw[7::8], raw[6::8]
    known = int.from_bytes(first.translate(_FROM_LITTLE_TO_TWO), "little")
    if 255 in absent:
        known &= ~int.from_bytes(absent, "little")
    sizes = (int.from_bytes(second, "little") & known).to_bytes(count, "little")
    # The largest size that so many reach, by halves; what is too small for one is not looked at for the next.
    low, high, large = 0, 255, sizes
    while low < high:
        middle = (low + high + 1) // 2
        larger = large.translate(None, _BYTES[:middle])
        if len(larger) >= wanted:
            low, large = middle, larger
        else:
            high = middle - 1
    if not low:
        return [at for at in range(count) if not absent[at]]
    return _marked(sizes.translate(bytes(low) + b"\1" * (256 - low)))


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
_WORTH_A_POOL = 4  # which is so above some 23,000; with numpy above 10,000, by tenths of a millisecond

# For numbers that spread like a bell curve, in their deviations; that of a unit vector's numbers is 1 / √dims.
_SLIGHT = 0.6  # a number of a stored vector below this counts for nothing, above it for one
_STEP = 0.586  # a query's numbers are weighed in four levels: the even steps that lose least
LEVELS = 4
_LONG, _LEVELS_OF_LONG = 4_096, 2  # more numbers than this, and four levels make distances of 2^16 and more

SIGNS_STAND_IN = "rows"

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
    # Choosing a pool takes as long as comparing many times as many by weighed signs, which misses none.
    pooled = pool if count > _WORTH_A_POOL * pool else count
    return Effort(pooled, most, int(more * _BATCH * larger**_GROWTH_OF_BATCH))


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


class Absences:
    """Which positions of a segment have no vector: a byte for each, 0 where there is one, 255 where there is none."""

    __slots__ = ("flags", "positions")

    def __init__(self, flags: bytes) -> None:
        self.flags = flags
        self.positions = array("q", compress(range(len(flags)), flags) if 255 in flags else ())

    @property
    def count(self) -> int:
        """How many have none."""
        return len(self.positions)

    def present(self, first_id: int) -> Iterable[int]:
        """The ids of those that have one, in a segment that begins with this id."""
        ids = range(first_id, first_id + len(self.flags))
        return [id_ for id_, flag in zip(ids, self.flags, strict=True) if not flag] if self.positions else ids


class SignPart:
    """The signs of a segment's vectors, as the arithmetic has prepared them that compares them."""

    __slots__ = ("absences", "first_id", "signs")

    def __init__(self, first_id: int, signs: Any, absences: Absences) -> None:
        self.first_id = first_id
        self.signs = signs
        self.absences = absences

    def __len__(self) -> int:
        return len(self.absences.flags)


class SignArithmetic(Protocol):
    """What this module and `arithmetic_numpy.py` do with signs; they agree to the last bit."""

    SIGNS_STAND_IN: str

    def prepare_signs(self, signs: bytes, width: int) -> Any:
        """The signs of a segment in the order in which they are compared, `width` bytes a vector."""

    def nearest_by_signs(
        self, query: Sequence[bytes], parts: Sequence[SignPart], wanted: int, pool: int
    ) -> list[int]:
        """The ids of `wanted` vectors whose signs are nearest, nearest first; among equals the first.

        The `pool` nearest by the first signs of the query are compared with all of its signs.
        """


def sign_arithmetic(count: int) -> SignArithmetic:
    """The arithmetic for so many vectors: this module, until it is time for numpy."""
    if is_numpy_due(_PER_VECTOR * count):
        from plainmind.index import arithmetic_numpy

        return arithmetic_numpy
    from plainmind.index import vectors  # noqa: PLW0406 (this module)

    return vectors


def is_numpy_due(nanoseconds: int) -> bool:
    """Whether a piece of work that would take this long without numpy should be done with it.

    Importing numpy costs a cold search more than its whole arithmetic without it. So it is not imported before as much
    time has gone into plain arithmetic as the import would have taken: then at most twice the least possible is spent.
    """
    global _spent  # noqa: PLW0603 (the process is what imports numpy, and what pays for it)
    if "numpy" in sys.modules:
        return True
    _spent += nanoseconds
    return _spent >= _IMPORTING


def prepare_signs(signs: bytes, width: int) -> bytes:  # noqa: ARG001 (as it is for numpy)
    """They are compared row by row, as they are."""
    return signs


def nearest_by_signs(query: Sequence[bytes], parts: Sequence[SignPart], wanted: int, pool: int) -> list[int]:
    """The ids of `wanted` vectors whose signs are nearest, nearest first."""
    width = len(query[0])
    within, signs, absences = _pooled(query, parts, pool)
    first, *others = (_lanes(row) for row in sign_distances(query, signs))
    most = 8 * width * (2 * len(query) - 1)
    totals = len(query) * first + sum(others)
    numbers = _numbers(totals, len(absences.flags))
    chosen = sorted(
        _least(totals, absences, wanted, most=most), key=numbers.__getitem__
    )  # among equals the first
    ends = list(accumulate(map(len, parts)))
    offsets = [part.first_id + len(part) - end for part, end in zip(parts, ends, strict=True)]
    return [position + offsets[bisect_right(ends, position)] for position in map(within.__getitem__, chosen)]


def _pooled(
    query: Sequence[bytes], parts: Sequence[SignPart], pool: int
) -> tuple[Sequence[int], bytes, Absences]:
    """The positions of those that are compared with all signs of the query, their signs, and which are absent."""
    width = len(query[0])
    absences = parts[0].absences if len(parts) == 1 else _joined(parts)
    everything = range(len(absences.flags))
    if len(everything) - absences.count <= pool:
        return everything, b"".join([part.signs for part in parts]), absences
    # Part by part: the signs of a million take 64 MB, and putting them together as long as comparing them.
    distances = b"".join([sign_distances(query[:1], part.signs)[0] for part in parts if part.signs])
    within = _least(_lanes(memoryview(distances).cast("H")), absences, pool, most=8 * width)
    rows: list[bytes] = []
    begun = start = 0
    for part in parts:
        signs, end = part.signs, start + len(part)
        ended = bisect_left(within, end, begun)
        rows += [signs[(at - start) * width : (at - start + 1) * width] for at in within[begun:ended]]
        begun, start = ended, end
    return within, b"".join(rows), Absences(bytes(len(within)))


def _joined(parts: Sequence[SignPart]) -> Absences:
    return Absences(b"".join(part.absences.flags for part in parts))


def _lanes(numbers: memoryview) -> int:
    if sys.byteorder == "big":
        swapped = array("H", numbers.tobytes())
        swapped.byteswap()
        return int.from_bytes(swapped.tobytes(), "little")
    return int.from_bytes(numbers, "little")


def _numbers(lanes: int, count: int) -> array[int]:
    """The numbers of the first lanes."""
    found = array("H", lanes.to_bytes(2 * count, sys.byteorder))
    if sys.byteorder == "big":
        found.reverse()  # the first lane is the lowest
    return found


def _least(lanes: int, absences: Absences, wanted: int, most: int) -> list[int]:
    """The positions of the `wanted` least numbers, none above `most`, in their order; never where one is absent."""
    count = len(absences.flags)
    wanted = min(wanted, count - absences.count)
    if wanted <= 0:
        return []
    if absences.count:
        doubled = bytearray(2 * count)
        doubled[0::2] = doubled[1::2] = absences.flags
        lanes |= int.from_bytes(doubled, "little")
    # Eight of the sixteen bits are enough to choose nearly all: only those at the last level are looked at closely.
    dropped = max(0, most.bit_length() - 8)
    coarse = (lanes >> dropped).to_bytes(2 * count, "little")[0::2]
    level = _level_with(coarse, wanted)
    near = _marked(coarse.translate(b"\1" * (level + 1) + bytes(255 - level)))
    if len(near) == wanted:
        return near
    last = [at for at in near if coarse[at] == level]
    by_number = sorted(last, key=_numbers(lanes, count).__getitem__)  # among equals the first
    surplus = set(by_number[wanted - len(near) :])
    return [at for at in near if at not in surplus]


def _marked(flags: bytes) -> list[int]:
    """The positions of the bytes that are 1, all others being 0."""
    found, at = [], -1
    for gap in map(len, flags.split(b"\1")):
        at += gap + 1
        found.append(at)
    del found[-1]  # is behind them all
    return found


def _level_with(coarse: bytes, wanted: int) -> int:
    """The least level that `wanted` bytes do not exceed."""
    low, high = 0, 255
    while low < high:
        middle = (low + high) // 2
        above = len(coarse.translate(None, _BYTES[: middle + 1]))
        if len(coarse) - above >= wanted:
            high = middle
        else:
            low = middle + 1
    return low
