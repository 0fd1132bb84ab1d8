"""Calendar arithmetic: the first and last day of what people call a week, a month, a season."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

from plainmind.base.lazy import IGNORECASE, pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Span: TypeAlias = tuple[dt.date, dt.date]
# The days that are meant, and behind them those that may be meant as well.
Either: TypeAlias = tuple[dt.date, dt.date, dt.date, dt.date]
Match: TypeAlias = re.Match[str]
Resolve: TypeAlias = Callable[[Match, dt.date], Span | Either | None]
# A way to name days, and what it means on a given day. It may raise ValueError or OverflowError for no day.
DatePattern: TypeAlias = tuple[re.Pattern[str], Resolve]
# What a query must have in it to be worth the pattern: of each group one, in lower case, with 0 for any digit.
Hints: TypeAlias = tuple[tuple[str, ...], ...]
HintedPattern: TypeAlias = tuple[Hints, re.Pattern[str], Resolve]

# Hints that are in every language.
A_DIGIT, A_YEAR = ("0",), ("0000",)
YEAR = r"(?P<year>(?:19|20|21)\d\d)(?!\w)"

MONTHS_OF_SEASON = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # the first of three
DAYS_OF_UNIT = {"hour": 1 / 24, "day": 1, "week": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}


def any_case(source: str) -> re.Pattern[str]:
    """Make a pattern for which capitals do not matter."""
    return pattern(source, IGNORECASE)


def no_day(_match: Match, _today: dt.date) -> None:
    """Name no day: what happens every week happens on none."""


def days_ago(count: int) -> Callable[[Match, dt.date], Span]:
    """Mean the day that many days before today."""
    return lambda _match, today: day(days_before(today, count))


def day(date: dt.date) -> Span:
    """Return one day as a span."""
    return date, date


def days_before(today: dt.date, count: int) -> dt.date:
    """Return the day that many days earlier; raises OverflowError before the year 1."""
    return today - dt.timedelta(days=count)


def week_of(date: dt.date) -> Span:
    """Return Monday to Sunday."""
    monday = days_before(date, date.weekday())
    return monday, monday + dt.timedelta(days=6)


def months(year: int, first_month: int, count: int = 1) -> Span:
    """Return whole months; `first_month` may lie outside 1..12 and then counts into other years."""
    first, following = (_first_of_month(year, month) for month in (first_month, first_month + count))
    return first, days_before(following, 1)


def year_span(year: int) -> Span:
    """Return January to December."""
    return dt.date(year, 1, 1), dt.date(year, 12, 31)


def calendar_span(unit: str, today: dt.date, periods_back: int) -> Span:
    """Return the week, month, quarter or year that lies so many periods before today's."""
    if unit == "year":
        return year_span(today.year - periods_back)
    if unit == "month":
        return months(today.year, today.month - periods_back)
    if unit == "quarter":
        return months(today.year, (today.month - 1) // 3 * 3 + 1 - 3 * periods_back, 3)
    return week_of(days_before(today, 7 * periods_back))


def rolling(today: dt.date, count: int, unit: str) -> Span:
    """Return the days from so many units ago up to today."""
    return days_before(today, -int(-count * DAYS_OF_UNIT[unit] // 1)), today


def ago(today: dt.date, count: int, unit: str) -> Span:
    """Return what "so many units ago" means: the vaguer the unit, the wider the span."""
    if unit in ("month", "year"):
        return calendar_span(unit, today, count)
    date = days_before(today, int(count * DAYS_OF_UNIT[unit]))
    vagueness = dt.timedelta(days=3 if unit in ("week", "fortnight") else 0)
    return date - vagueness, date + vagueness


def weekend_before(today: dt.date, *, or_now: bool = False) -> Span:
    """Return the last Saturday and Sunday that are over, or those of now if it is one of them."""
    if or_now and today.weekday() >= 5:
        return days_before(today, today.weekday() - 5), days_before(today, today.weekday() - 6)
    sunday = days_before(today, today.weekday() + 1)
    return days_before(sunday, 1), sunday


def weekday_before(today: dt.date, weekday: int) -> Span:
    """Return the latest such weekday (Monday is 0) before today."""
    return day(days_before(today, (today.weekday() - weekday) % 7 or 7))


def weekday_of_week(today: dt.date, weekday: int, weeks_back: int) -> Span:
    """Return such a weekday (Monday is 0) of this week, or of one before."""
    return day(week_of(days_before(today, 7 * weeks_back))[0] + dt.timedelta(days=weekday))


def day_of_month(today: dt.date, number: int, months_back: int) -> Span:
    """Return such a day of this month, or of one before; raises ValueError for a day that it does not have."""
    return day(months(today.year, today.month - months_back)[0].replace(day=number))


def recent_days(today: dt.date, month: int, first: int, count: int) -> Span | None:
    """Return the latest so many days of a year that have begun."""
    begun = recent_day(today, month, first)
    return begun and (begun[0], begun[0] + dt.timedelta(days=count - 1))


def recent_months(today: dt.date, first_month: int, count: int, *, over: bool) -> Span:
    """Return the latest such months that have begun, or that are over."""
    for year in (today.year, today.year - 1):
        span = months(year, first_month, count)
        if span[1] < today if over else span[0] <= today:
            return span
    return months(today.year - 2, first_month, count)


def recent_season(today: dt.date, first_month: int) -> Span | Either:
    """Return the season that has begun last; until half of it is over, the one of the year before may be meant too."""
    first, last = recent_months(today, first_month, 3, over=False)
    if today - first > last - today:
        return first, last
    return (first, last, *months(first.year - 1, first_month, 3))


def recent_day(today: dt.date, month: int, day_of_month: int) -> Span | None:
    """Return the latest such day that is not in the future; 29 February may be eight years back."""
    for year in range(today.year, today.year - 9, -1):
        try:
            date = dt.date(year, month, day_of_month)
        except ValueError:  # not in this year; perhaps in no year
            continue
        if date <= today:
            return day(date)
    return None


def _first_of_month(year: int, month: int) -> dt.date:
    return dt.date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
