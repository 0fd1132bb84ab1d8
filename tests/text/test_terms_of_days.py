from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from plainmind.text.terms import DayRange, terms_of_day, terms_of_span

days = st.dates(date(1990, 1, 1), date(2090, 12, 31))


def test_evergreen_text_is_filed_under_no_day():
    assert terms_of_day(None) == ()


def test_a_week_is_looked_up_day_by_day():
    assert len(terms_of_span(DayRange(date(2026, 2, 9), date(2026, 2, 15), "last week"))) == 7


def test_a_season_is_looked_up_by_months_and_a_decade_by_years():
    spring = terms_of_span(DayRange(date(2026, 3, 1), date(2026, 5, 31), "spring"))
    decade = terms_of_span(DayRange(date(2016, 1, 1), date(2026, 12, 31), "since 2016"))

    assert spring == ("month:2026-03", "month:2026-04", "month:2026-05")
    assert decade[0] == "year:2016"
    assert decade[-1] == "year:2026"


@given(days, st.integers(0, 4000), st.data())
def test_every_day_of_a_span_is_found_by_its_terms(first, length, data):
    span = DayRange(first, first + timedelta(days=length), "")
    inside = first + timedelta(days=data.draw(st.integers(0, length)))

    assert {*terms_of_span(span)} & {*terms_of_day(inside.isoformat())}
