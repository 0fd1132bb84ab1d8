"""Signs of vectors tell which of them are near."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.index_contents import vector

from commonplace.store import kernels, signs


@pytest.mark.parametrize("dims", [1, 7, 8, 9, 256, 1536])
def test_a_sign_is_a_bit_for_each_number(dims):
    own = vector("x", dims)
    found = signs.signs_of(kernels.packed(own, dims))
    bits = "".join(f"{byte:08b}" for byte in found)

    assert len(found) == signs.signs_width(dims)
    assert bits[:dims] == "".join("1" if number < 0 else "0" for number in own)
    assert set(bits[dims:]) <= {"0"}


def test_minus_zero_is_below_zero_everywhere():
    packed = struct.pack("=3e", -0.0, 0.0, 1.0)

    assert signs.signs_of(packed) == signs.query_signs(packed)[0] == bytes([0b10000000])


@pytest.mark.parametrize("dims", [16, 256, 1000])
def test_a_query_is_weighed_by_the_size_of_its_numbers(dims):
    query, other = vector("query", dims), vector("other", dims)
    step = 0.586 / dims**0.5
    expected = 0
    for mine, theirs in zip(query, other, strict=True):
        weight = 1 + 2 * min(3, int(abs(struct.unpack("=e", struct.pack("=e", mine))[0]) / step))
        expected += weight if (mine < 0) != (theirs < 0) else 0

    rows = kernels.sign_distances(
        signs.query_signs(kernels.packed(query, dims)), signs.signs_of(kernels.packed(other, dims))
    )
    (base,) = rows[0]
    turned = sum(
        abs(struct.unpack("=e", struct.pack("=e", number))[0]) < level * step
        for number in query
        for level in (1, 2, 3)
    )
    assert 4 * base + sum(row[0] for row in rows[1:]) == expected + turned


@given(st.integers(0, 2_000_000), st.integers(1, 500))
def test_effort_is_bounded_and_never_less_than_what_is_asked_for(count, limit):
    effort = signs.effort_for(count, limit)

    assert min(count, limit) <= effort.most <= max(effort.pool, effort.most) <= max(count, 120_000)
    assert effort.pool >= min(count, effort.most)
    if count <= 1_024:
        assert effort.batch == effort.most == effort.pool == count
