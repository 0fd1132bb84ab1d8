from datetime import date

import pytest

from plainmind.search.engine import Recency

TODAY = date(2026, 11, 15)


def test_evergreen_text_never_ages():
    assert Recency(floor=0.0).factor(None, today=TODAY) == 1.0


def test_today_and_the_future_are_not_older_than_today():
    assert Recency().factor("2026-11-15", today=TODAY) == 1.0
    assert Recency().factor("2030-01-01", today=TODAY) == 1.0


def test_without_a_floor_a_score_halves_with_every_half_life():
    plain = Recency(half_life_days=30, floor=0.0)

    assert plain.factor("2026-10-16", today=TODAY) == pytest.approx(0.5)
    assert plain.factor("2026-09-16", today=TODAY) == pytest.approx(0.25)


def test_with_the_floor_an_old_answer_is_never_buried():
    assert Recency().factor("1999-01-01", today=TODAY) >= 0.95


def test_newer_is_always_at_least_as_good():
    factors = [Recency().factor(f"2026-{month:02d}-01", today=TODAY) for month in range(1, 12)]

    assert factors == sorted(factors)


def test_it_can_be_switched_off():
    assert Recency(enabled=False, floor=0.0).factor("1999-01-01", today=TODAY) == 1.0


def test_a_day_that_no_calendar_has_does_not_age():
    assert Recency().factor("2026-02-31", today=TODAY) == 1.0


def test_a_question_about_how_things_are_now_lets_age_count_more():
    old = "2026-01-01"

    assert Recency().factor(old, today=TODAY, asked_for_recent=True) < Recency().factor(old, today=TODAY)
    assert Recency().factor(old, today=TODAY, asked_for_recent=True) >= 0.85
    assert Recency(floor=0.1).factor(old, today=TODAY, asked_for_recent=True) < 0.2
