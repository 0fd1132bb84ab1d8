"""The door that every vector from outside passes: counted, measured, finite, not zero, then unit length.

A vector of zeros or NaN has no distance to anything, and databases sort "no distance" first.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence

from plainmind.base.errors import BadVector
from plainmind.base.model import Vector

_SMALLEST_NORM = 1e-6


def checked(vectors: Sequence[Iterable[float]], *, expected_count: int, expected_dims: int) -> list[Vector]:
    """Bring all vectors to unit length, or raise BadVector on the first bad one and return none."""
    if len(vectors) != expected_count:
        raise BadVector(f"{expected_count} vectors were expected and {len(vectors)} came")
    return [_unit(vector, index, expected_dims) for index, vector in enumerate(vectors)]


def _unit(vector: Iterable[float], index: int, expected_dims: int) -> Vector:
    try:
        values = array("d", vector)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadVector(f"vector {index} is not a list of numbers: {error}") from error
    if len(values) != expected_dims:
        raise BadVector(f"vector {index} has {len(values)} dimensions instead of {expected_dims}")
    norm = math.hypot(*values)
    if not math.isfinite(norm):
        raise BadVector(f"vector {index} holds NaN or infinity")
    if norm <= _SMALLEST_NORM:
        raise BadVector(f"vector {index} has length zero")
    return array("f", [value / norm for value in values])
