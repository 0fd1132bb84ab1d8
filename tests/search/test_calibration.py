from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import CERTAIN, SearchHit, SearchResult
from plainmind.search.engine import probability

shares = st.floats(0, 1)


def result(*scores):
    hits = tuple(SearchHit("memory/a.md", 1, 2, score, "text", "memory") for score in scores)
    return SearchResult("question", hits, "builtin", "model", "hybrid")


def test_what_has_nothing_in_common_with_the_question_is_no_answer_and_what_has_all_of_it_is():
    assert probability(0.0, 0.0, is_first=True) < 0.1
    assert probability(0.8, 0.8, is_first=True) > 0.9


@given(shares, shares, shares, st.booleans())
def test_more_evidence_never_scores_less(one, other, coverage, is_first):
    low, high = sorted((one, other))

    assert probability(low, coverage, is_first=is_first) <= probability(high, coverage, is_first=is_first)
    assert probability(coverage, low, is_first=is_first) <= probability(coverage, high, is_first=is_first)


@given(st.floats(-1, 3), shares, st.booleans())
def test_scores_stay_between_zero_and_one(worth, coverage, is_first):
    assert 0.0 < probability(worth, coverage, is_first=is_first) < 1.0


def test_a_result_is_as_certain_as_the_best_of_its_hits():
    assert result(0.8, 0.1).confidence == 0.8
    assert result(CERTAIN, 0.1).is_certain
    assert not result(CERTAIN - 0.01).is_certain
    assert not result().is_certain
