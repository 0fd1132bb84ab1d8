"""Packed vectors keep their cosines, with either library."""

from __future__ import annotations

import struct
import sys

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


@pytest.mark.parametrize("dims", [1, 3, 16, 256, 1536])
def test_cosines_are_those_of_the_full_numbers(dots, dims):
    query = vector("query", dims)
    others = [vector(f"other {number}", dims) for number in range(40)]
    block = b"".join(vectors.pack_vector(other, dims) for other in others)

    found = dots(vectors.pack_vector(query, dims), block, dims)
    exact = [sum(a * b for a, b in zip(query, other, strict=True)) for other in others]
    assert found == pytest.approx(exact, abs=1e-3)


def test_packing_keeps_three_digits():
    own = vector("x", 64)

    assert struct.unpack("=64e", vectors.pack_vector(own, 64)) == pytest.approx(tuple(own), abs=5e-4)


def test_cosines_are_cut_to_the_range_of_scores():
    assert [vectors.cosine_score(dot) for dot in (-0.5, 0.0, 0.25, 1.0001)] == [0.0, 0.0, 0.25, 1.0]
