"""Signs of vectors tell which of them are near."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.index_contents import vector

from plainmind.index import vectors


def rounded(number):
    return struct.unpack("=e", struct.pack("=e", number))[0]


def halves(found, dims):
    """The digits of both halves of signs, and all that fills them up."""
    width = len(found) // 2
    digits = ["".join(f"{byte:08b}" for byte in half) for half in (found[:width], found[width:])]
    return [each[:dims] for each in digits], set("".join(each[dims:] for each in digits))


@pytest.mark.parametrize("dims", [1, 7, 8, 9, 256, 1536])
def test_a_sign_is_a_bit_for_each_number_and_another_that_is_turned_if_the_number_is_slight(dims):
    own = vector("x", dims)
    found = vectors.signs_of(vectors.pack_vector(own, dims))
    (plain, turned), filling = halves(found, dims)

    assert len(found) == vectors.signs_width(dims)
    assert plain == "".join("1" if number < 0 else "0" for number in own)
    assert filling <= {"0"}
    sizes = [abs(number) * dims**0.5 for number in own]
    slight = [size for size, one, other in zip(sizes, plain, turned, strict=True) if one != other]
    others = [size for size, one, other in zip(sizes, plain, turned, strict=True) if one == other]
    assert max(slight, default=0.5) < 0.7  # the high byte of a number tells its size to an eighth
    assert min(others, default=0.5) > 0.5


def test_minus_zero_is_below_zero_everywhere():
    packed = struct.pack("=3e", -0.0, 0.0, 1.0)

    assert vectors.signs_of(packed) == bytes([0b10000000, 0b01000000])
    assert vectors.query_signs(packed)[0] == bytes([0b10000000, 0b10000000])


@pytest.mark.parametrize("dims", [16, 256, 1000])
def test_a_distance_weighs_a_query_by_the_size_of_its_numbers_and_leaves_out_slight_ones(dims):
    query, other = vector("query", dims), vector("other", dims)
    asked, filed = vectors.pack_vector(query, dims), vectors.pack_vector(other, dims)
    (plain, turned), _ = halves(vectors.signs_of(filed), dims)
    step = 0.586 / dims**0.5
    expected = 0
    for mine, theirs, again in zip(query, plain, turned, strict=True):
        weight = 1 + 2 * min(3, int(abs(rounded(mine)) / step))
        differs = (mine < 0) != (theirs == "1")
        expected += weight if theirs != again else 2 * weight * differs

    rows = vectors.sign_distances(vectors.query_signs(asked), vectors.signs_of(filed))
    (base,) = rows[0]
    small = sum(abs(rounded(number)) < level * step for number in query for level in (1, 2, 3))
    assert 4 * base + sum(row[0] for row in rows[1:]) == expected + 2 * small


@pytest.mark.parametrize("dims", [4_096, 4_097, 10_000])
def test_no_distance_of_long_vectors_is_too_large_for_two_bytes(dims):
    query = vectors.query_signs(struct.pack(f"={dims}e", *[0.01] * dims))
    opposite = vectors.signs_of(struct.pack(f"={dims}e", *[-0.01] * dims))
    distances = [row[0] for row in vectors.sign_distances(query, opposite)]

    assert len(query) * distances[0] + sum(distances[1:]) < 0xFFFF


@given(st.integers(0, 2_000_000), st.integers(1, 500))
def test_effort_is_bounded_and_never_less_than_what_is_asked_for(count, limit):
    effort = vectors.effort_for(count, limit)

    assert min(count, limit) <= effort.most <= max(effort.pool, effort.most) <= max(count, 120_000)
    assert effort.pool >= min(count, effort.most)
    if count <= 1_024:
        assert effort.batch == effort.most == effort.pool == count
