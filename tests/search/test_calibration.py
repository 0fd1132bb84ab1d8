import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.search.engine import calibrate


def test_nothing_in_common_scores_zero_and_everything_one():
    assert calibrate(0.0, has_exact_token=False) == pytest.approx(0.0)
    assert calibrate(1.0, has_exact_token=False) == pytest.approx(1.0)


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_evidence_never_scores_less(one, other):
    low, high = sorted((one, other))

    assert calibrate(low, has_exact_token=False) <= calibrate(high, has_exact_token=False)


@given(st.floats(-1, 2))
def test_scores_stay_between_zero_and_one(raw):
    assert 0.0 <= calibrate(raw, has_exact_token=False) <= 1.0


@given(st.floats(0, 1))
def test_an_exact_rare_token_always_survives_the_default_threshold(raw):
    assert calibrate(raw, has_exact_token=True) >= 0.5
