import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.text.spans import calendar_span, months, recent_day, recent_months, week_of, weekday_before

DAYS = st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))


@given(DAYS)
def test_a_week_is_seven_days_from_a_monday_around_the_day(today):
    first, last = week_of(today)
    assert first.weekday() == 0
    assert (last - first).days == 6
    assert first <= today <= last


@given(DAYS, st.sampled_from(["week", "month", "quarter", "year"]), st.integers(0, 20))
def test_periods_follow_each_other_without_gap_or_overlap(today, unit, back):
    later, earlier = calendar_span(unit, today, back), calendar_span(unit, today, back + 1)
    assert (later[0] - earlier[1]).days == 1


@given(DAYS, st.integers(1, 12), st.sampled_from([1, 3]), st.booleans())
def test_recent_months_have_begun_or_are_over(today, month, count, over):
    first, last = recent_months(today, month, count, over=over)
    assert last < today if over else first <= today
    following = months(first.year + 1, month, count)
    assert following[1] >= today if over else following[0] > today


@given(DAYS, st.integers(0, 6))
def test_a_weekday_lies_within_the_last_seven_days(today, weekday):
    first, last = weekday_before(today, weekday)
    assert first == last
    assert first.weekday() == weekday
    assert 1 <= (today - first).days <= 7


@pytest.mark.parametrize(("month", "day"), [(2, 30), (13, 1), (0, 1), (4, 31)])
def test_a_day_of_no_year_is_none(month, day):
    assert recent_day(dt.date(2026, 11, 15), month, day) is None


def test_a_leap_day_is_found_across_a_century_without_one():
    day = dt.date(2096, 2, 29)
    assert recent_day(dt.date(2104, 2, 28), 2, 29) == (day, day)
