from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.errors import BadVector
from plainmind.embed.protocol import check_vectors

GOOD = [3.0, 4.0]


def test_good_vectors_come_out_in_order_at_unit_length() -> None:
    assert check_vectors([GOOD, [0.0, -2.0]], expected_count=2, expected_dims=2) == [
        array("f", [0.6, 0.8]),
        array("f", [0.0, -1.0]),
    ]


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        ([], "has 0 dimensions instead of 2"),
        ([1.0], "has 1 dimensions instead of 2"),
        ([1.0, 2.0, 3.0], "has 3 dimensions instead of 2"),
        ([math.nan, 1.0], "NaN or infinity"),
        ([1.0, math.inf], "NaN or infinity"),
        ([1.0, -math.inf], "NaN or infinity"),
        ([math.nan, math.inf], "NaN or infinity"),
        ([0.0, 0.0], "length zero"),
        ([1e-9, -1e-9], "length zero"),
        (["1.0", 2.0], "not a list of numbers"),
        ([None, 2.0], "not a list of numbers"),
        ([[1.0], [2.0]], "not a list of numbers"),
        ([10**400, 1], "not a list of numbers"),
        (None, "not a list of numbers"),
        ("ab", "not a list of numbers"),
    ],
)
def test_one_bad_vector_stops_all_and_is_named(bad: object, complaint: str) -> None:
    with pytest.raises(BadVector, match=f"vector 1 .*{complaint}"):
        check_vectors([GOOD, bad, GOOD], expected_count=3, expected_dims=2)  # type: ignore[list-item]


@pytest.mark.parametrize("vectors", [[], [GOOD], [GOOD, GOOD, GOOD]])
def test_too_few_or_too_many_vectors_are_refused(vectors: list[list[float]]) -> None:
    with pytest.raises(BadVector, match=f"2 vectors were expected and {len(vectors)} came"):
        check_vectors(vectors, expected_count=2, expected_dims=2)


def test_numbers_beyond_float32_do_not_turn_into_infinity() -> None:
    (vector,) = check_vectors([[1e200, 1e200]], expected_count=1, expected_dims=2)

    assert list(vector) == pytest.approx([math.sqrt(0.5)] * 2)


@given(st.lists(st.floats(width=32), min_size=8, max_size=8))
def test_what_passes_is_always_finite_and_of_unit_length(values: list[float]) -> None:
    try:
        (vector,) = check_vectors([values], expected_count=1, expected_dims=8)
    except BadVector:
        assert not math.isfinite(math.hypot(*values)) or math.hypot(*values) <= 1e-6
    else:
        assert math.hypot(*vector) == pytest.approx(1, abs=1e-6)
