"""Scores are shares of the best that a chunk could have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.store import bm25


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

    short = bm25.score(weights, {"mac": 2}, bm25.length_penalty(10, 50))
    long = bm25.score(weights, {"mac": 2}, bm25.length_penalty(500, 50))
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


@given(
    st.dictionaries(
        st.integers(1, 9), st.dictionaries(st.sampled_from("abc"), st.integers(1, 4), min_size=1), max_size=9
    )
)
def test_scoring_by_term_equals_scoring_by_chunk(occurrences):
    weights = {"a": 0.5, "b": 0.3, "c": 0.2}
    penalties = {id_: 1.0 + id_ / 10 for id_ in occurrences if id_ != 3}  # 3 is hidden by a filter
    postings = {term: {id_: own[term] for id_, own in occurrences.items() if term in own} for term in weights}

    found = bm25.scores(weights, postings, penalties)
    assert found == pytest.approx(
        {id_: bm25.score(weights, occurrences[id_], penalty) for id_, penalty in penalties.items()}
    )
