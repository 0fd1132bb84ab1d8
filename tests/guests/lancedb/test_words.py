"""Postings in buckets come back as they went in, and segments stay few."""

import struct
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.errors import IndexCorrupt
from plainmind.guests.lancedb.rows import (
    MOST_POSITIONS,
    MOST_SEGMENTS,
    Bucket,
    bucket_of,
    in_buckets,
    merge_from,
    runs_of,
)
from plainmind.index.bm25 import Collected

TERM = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=8)
CHUNKS = st.lists(st.dictionaries(TERM, st.integers(1, 255), max_size=6), max_size=12)


@given(chunks=CHUNKS)
def test_every_term_is_found_in_its_bucket_with_its_chunks(chunks):
    collected = Collected()
    for position, counted in enumerate(chunks):
        collected.add(position, counted)
    bodies = in_buckets(collected.by_term())
    buckets = [Bucket(body) for body in bodies]

    found = {}
    for term in {term for counted in chunks for term in counted}:
        postings = buckets[bucket_of(term, len(buckets))].get(term)
        found[term] = dict(zip(postings.positions, postings.counts, strict=True))
    expected = {}
    for position, counted in enumerate(chunks):
        for term, count in counted.items():
            expected.setdefault(term, {})[position] = count
    assert found == expected
    assert {term for bucket in buckets for term, _ in bucket.items()} == set(expected)
    assert buckets[0].get("never there") is None


@given(chunks=CHUNKS, gone=st.sets(st.integers(0, 11)), first=st.integers(0, 50_000))
def test_postings_move_with_their_chunks_and_go_with_them(chunks, gone, first):
    collected = Collected()
    for position, counted in enumerate(chunks):
        collected.add(position, counted)
    living = [position for position in range(len(chunks)) if position not in gone]
    places = np.full(len(chunks), -1)
    places[living] = np.arange(first, first + len(living))
    moved = {}
    for body in in_buckets(collected.by_term()):
        for term, positions, counts in Bucket(body).move(places):
            moved[term] = dict(zip(array("H", positions), counts, strict=True))

    expected = {}
    for at, position in enumerate(living):
        for term, count in chunks[position].items():
            expected.setdefault(term, {})[first + at] = count
    assert moved == expected


def test_postings_of_a_chunk_that_cannot_be_are_damage():
    collected = Collected()
    collected.add(7, {"gateway": 1})
    [body] = in_buckets(collected.by_term())

    with pytest.raises(IndexCorrupt, match="damaged"):
        list(Bucket(body).move(np.zeros(7, dtype=np.int64)))


def test_many_postings_are_spread_over_buckets_that_are_read_one_by_one():
    positions = array("H", range(1_000)).tobytes()
    bodies = in_buckets({f"term{number}": (positions, bytes([1]) * 1_000) for number in range(200)})

    assert len(bodies) > 5
    assert max(map(len, bodies)) < 5 * min(map(len, bodies))


def test_terms_whose_chunks_are_gone_leave_no_trace():
    (body,) = in_buckets({"secret": (b"", b""), "kept": (array("H", [0]).tobytes(), b"\x01")})

    assert b"secret" not in body
    assert b"kept" in body


@pytest.mark.parametrize("cut", [0, 3, 5, -1], ids=["nothing", "no length", "half a term", "a count short"])
def test_a_damaged_bucket_is_refused(cut):
    (body,) = in_buckets({"gateway": (array("H", [0, 2]).tobytes(), b"\x01\x02")})

    with pytest.raises(IndexCorrupt, match="postings"):
        Bucket(body[:cut])


def test_a_bucket_whose_terms_are_no_text_is_refused():
    with pytest.raises(IndexCorrupt, match="postings"):
        Bucket(struct.pack("<I", 2) + b"\xff\xff" + b"\0\0")


def test_few_segments_are_left_as_they_are():
    assert merge_from([8] * MOST_SEGMENTS) is None
    assert merge_from([MOST_POSITIONS] * 50) is None


def test_the_newest_segments_are_merged_and_a_large_one_before_them_is_not():
    assert merge_from([40_000, *[8] * 20]) == 1
    assert merge_from([8_000, *[8] * 20]) == 1


@given(st.lists(st.integers(1, 300), max_size=400))
def test_however_many_changes_there_are_segments_stay_few_and_chunks_are_seldom_moved(changes):
    sizes: list[int] = []
    moved = 0
    for size in changes:
        sizes.append(size)
        first = merge_from(sizes)
        if first is not None:
            moved += sum(sizes[first:])
            sizes[first:] = [sum(sizes[first:])]
    assert len(sizes) <= 2 * MOST_SEGMENTS
    assert moved <= 8 * max(sum(changes), 1)
    assert sum(sizes) == sum(changes)


@given(st.lists(st.integers(1, MOST_POSITIONS), max_size=30))
def test_packed_runs_hold_no_more_than_a_segment_can(sizes):
    runs = runs_of(sizes)

    assert sum(runs) == len(sizes)
    at = 0
    for run in runs:
        assert sum(sizes[at : at + run]) <= MOST_POSITIONS
        at += run
