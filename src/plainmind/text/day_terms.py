"""Keyword terms for days: what a chunk is filed under by its date, and what a question about days looks up."""

from __future__ import annotations

from datetime import date, timedelta

from plainmind.text.dates import DayRange

# Longer spans are looked up by month, and then by year.
MOST_DAYS = 31
MOST_MONTHS = 24


def terms_of_day(day: str | None) -> tuple[str, ...]:
    """The terms of a dated text: its day, month and year, in a form that no word has."""
    return () if day is None else (f"day:{day}", f"month:{day[:7]}", f"year:{day[:4]}")


def terms_of_span(span: DayRange) -> tuple[str, ...]:
    """The fewest terms that together name every day of a span, and hardly any other."""
    count = (span.last - span.first).days + 1
    if count <= MOST_DAYS:
        return tuple(f"day:{(span.first + timedelta(days=number)).isoformat()}" for number in range(count))
    months = _months(span.first, span.last)
    if len(months) <= MOST_MONTHS:
        return tuple(f"month:{month}" for month in months)
    return tuple(f"year:{year}" for year in range(span.first.year, span.last.year + 1))[:MOST_MONTHS]


def _months(first: date, last: date) -> list[str]:
    start, end = first.year * 12 + first.month - 1, last.year * 12 + last.month - 1
    return [f"{number // 12:04d}-{number % 12 + 1:02d}" for number in range(start, end + 1)]
