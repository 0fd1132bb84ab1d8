"""Scores are shares of the best that a chunk could have."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.plain_store import score

from plainmind.index import bm25


@given(st.integers(1, 10**7), st.data())
def test_every_term_tells_something_and_rarer_ones_more(chunk_count, data):
    common = data.draw(st.integers(1, chunk_count))
    rare = data.draw(st.integers(0, common - 1))

    assert 0 < bm25.inverse_frequency(chunk_count, common) < bm25.inverse_frequency(chunk_count, rare)


@given(st.dictionaries(st.text(), st.integers(0, 50), min_size=1))
def test_the_weights_of_a_query_add_up_to_one(chunks_with):
    assert sum(bm25.term_weights(50, chunks_with).values()) == pytest.approx(1)


def test_a_long_chunk_needs_more_mentions():
    weights = {"mac": 1.0}

    short = score(weights, {"mac": 2}, bm25.length_penalty(10, 50))
    long = score(weights, {"mac": 2}, bm25.length_penalty(500, 50))
    assert short > long


def test_an_index_of_empty_chunks_has_a_penalty_too():
    assert bm25.length_penalty(0, 0.0) > 0


@given(st.lists(st.text(max_size=6)))
def test_terms_look_the_same_one_by_one_and_together(terms):
    assert bm25.storable_terms(terms) == [bm25.storable_term(term) for term in terms if term]


def test_long_terms_are_cut_at_the_same_place_on_both_ways():
    term = "x" * 5_000

    assert bm25.storable_terms([term, "y"]) == [bm25.storable_term(term), "y"]
    assert len(bm25.storable_term(term)) == bm25.MAX_TERM_CHARACTERS


@given(
    st.dictionaries(st.integers(1, 500), st.sampled_from([0.1, 0.2, 0.3]), max_size=200), st.integers(0, 20)
)
def test_the_best_are_the_first_of_all_in_order(found, limit):
    in_order = sorted(found.items(), key=lambda item: (-item[1], item[0]))

    assert list(bm25.best(found, limit)) == in_order[:limit]


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=20))
def test_occurrences_are_counted(terms):
    assert bm25.occurrences(terms) == {term: terms.count(term) for term in set(terms)}


def test_a_term_counts_at_most_255_times_and_a_chunk_is_at_most_65535_long():
    counted = bm25.occurrences(["a"] * 1_000 + ["b"])

    assert counted == {"a": 255, "b": 1}
    assert bm25.length_of(counted) == 256
    assert bm25.length_of({str(number): 255 for number in range(300)}) == 65_535


def test_the_heaviest_terms_come_first():
    weights = bm25.term_weights(100, {"common": 90, "rare": 1, "usual": 30, "as rare": 1})

    assert list(weights) == ["rare", "as rare", "usual", "common"]


def test_what_can_be_printed_is_stored_as_it_is():
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    printable = "".join(filter(str.isprintable, everything)).replace(" ", "")

    assert bm25._UNSTORABLE.search(printable) is None
    assert bm25._UNSTORABLE_BUT_SPACE.search(f"{printable} {printable}") is None


@given(st.lists(st.text(st.characters(), max_size=4), max_size=8))
def test_terms_of_any_characters_come_out_clean(terms):
    for term in bm25.storable_terms(terms):
        assert term
        assert not any(character.isspace() or "\ud800" <= character <= "\udfff" for character in term)
