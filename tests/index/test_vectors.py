"""Packed vectors keep their cosines, with either library."""

from __future__ import annotations

import struct
import sys
from array import array

import numpy as np
import pytest
from tests.support.index_contents import vector

from plainmind.index import vectors


@pytest.fixture(params=["simsimd", "numpy"])
def dots(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setitem(sys.modules, "simsimd", None)
    name, chosen = vectors.choose_dots()
    assert name == request.param
    return chosen


def products(query, others):
    return [sum(a * b for a, b in zip(query, other, strict=True)) for other in others]


@pytest.mark.parametrize("dims", [1, 3, 16, 256, 1536])
def test_cosines_are_those_of_the_full_numbers(dots, dims):
    query = vector("query", dims)
    others = [vector(f"other {number}", dims) for number in range(40)]
    block = b"".join(vectors.pack_vector(other, dims) for other in others)

    found = dots(vectors.pack_vector(query, dims), block, dims)
    assert found == pytest.approx(products(query, others), abs=1e-3)


def test_packing_keeps_three_digits():
    own = vector("x", 64)

    assert struct.unpack("=64e", vectors.pack_vector(own, 64)) == pytest.approx(tuple(own), abs=5e-4)


@pytest.mark.parametrize("dims", [256, 1536])
def test_rounding_moves_cosines_by_little(dots, dims):
    query = vector("query", dims)
    others = [vector(f"other {number}", dims) for number in range(400)]
    block = b"".join(vectors.round_vector(other, dims) for other in others)

    found = dots(vectors.pack_vector(query, dims), block, dims)
    off = [one - other for one, other in zip(found, products(query, others), strict=True)]
    assert (sum(each**2 for each in off) / len(off)) ** 0.5 < 0.0005
    assert max(map(abs, off)) < 0.002


@pytest.mark.parametrize("dims", [1, 3, 16, 64, 256, 1536, 4096])
def test_what_was_rounded_is_rounded_to_itself(dims):
    for number in range(100):
        rounded = vectors.round_vector(vector(f"text {number}", dims), dims)
        assert vectors.round_vector(vectors.unpack_vector(rounded), dims) == rounded


def test_a_byte_a_number_is_enough_unless_one_stands_out():
    even = vector("x", 256)
    assert len(vectors.shorten(even, 256)) == 257
    one_stands_out = array("f", [0.8, *[0.0375] * 256])
    assert vectors.shorten(one_stands_out, 257) == vectors.pack_vector(one_stands_out, 257)
    assert vectors.round_vector(one_stands_out, 257) == vectors.pack_vector(one_stands_out, 257)


def test_many_are_lengthened_as_one_is():
    some = [vector(f"text {number}", 256) for number in range(40)]
    some.append(largest_first(0.9))
    kept = {number: vectors.shorten(own, 256) for number, own in enumerate(some)}
    assert len({short[256] for short in kept.values() if len(short) == 257}) > 3
    expected = {number: vectors.lengthen(short, 256) for number, short in kept.items()}
    assert vectors.lengthen_all(kept.items(), 256) == expected
    assert vectors.lengthen_all([], 256) == {}


def largest_first(largest, dims=256):
    others = ((1 - largest**2) / (dims - 1)) ** 0.5
    return array("f", [largest, *[-others] * (dims - 1)])


@pytest.mark.parametrize("largest", [0.0700, 0.1, 0.12401, 0.12402, 0.1245, 0.125, 0.2, 0.249, 0.4921, 0.496])
def test_the_largest_number_of_any_size_fits_into_its_byte(largest):
    own = largest_first(largest)
    kept = vectors.shorten(own, 256)
    assert len(kept) == 257
    step = vectors.STEPS[kept[256]]
    assert 112 <= kept[0] <= 127
    assert largest / 127 <= step * 1.00001
    assert step < largest / 127 * 1.1251
    numbers = struct.unpack("=256e", vectors.lengthen(kept, 256))
    assert numbers == pytest.approx(tuple(own), abs=step / 2)
    assert numbers == tuple(step * each for each in array("b", kept[:256]))


@pytest.mark.parametrize("dims", [3, 16, 256, 1536])
def test_numbers_are_rounded_alike_with_and_without_numpy(dims, monkeypatch):
    assert np
    some = [vector(f"text {number}", dims) for number in range(40)]
    if dims == 256:
        halves = largest_first(0.1)
        step = vectors.STEPS[vectors.shorten(halves, dims)[dims]]
        halves[1], halves[2], halves[3] = 2.5 * step, -3.5 * step, 4.5 * step
        some.append(halves)
    with_numpy = [vectors.shorten(own, dims) for own in some]
    monkeypatch.delitem(sys.modules, "numpy")
    assert [vectors.shorten(own, dims) for own in some] == with_numpy


def test_cosines_are_cut_to_the_range_of_scores():
    assert [vectors.cosine_score(dot) for dot in (-0.5, 0.0, 0.25, 1.0001)] == [0.0, 0.0, 0.25, 1.0]
