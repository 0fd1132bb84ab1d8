"""The days that a query names ("2026-02-10", "last March", 昨天), and the keyword terms of days."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator

from plainmind.base.pattern import pattern
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.text.spans import DatePattern, HintedPattern

_LONGEST_QUERY = 4000
# Every English way to name a day contains a digit or one of these: most queries need none of the patterns.
_HINTS = (
    *("day", "week", "month", "quarter", "year", "night", "morning", "afternoon", "evening"),
    *("mon", "tue", "wed", "thu", "fri", "sat", "sun", "spring", "summer", "autumn", "fall", "winter"),
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
)
# Longer spans are looked up by month, and then by year.
MOST_DAYS = 31
MOST_MONTHS = 24
_SINCE = pattern(r"\bsince\s+(?:the\s+)?$", re.IGNORECASE)


@value
class DayRange:
    """Days from `first` to `last`, both included, and the words that named them."""

    first: dt.date
    last: dt.date
    text: str


def mentioned_days(query: str, today: dt.date) -> tuple[DayRange, ...]:
    """Return the days that a query names, in its order.

    Without a year the past is meant: the latest such day or month that has begun. Dates that no calendar
    has, like 30 February, name nothing.
    """
    query = _normalize(query[:_LONGEST_QUERY])
    taken = bytearray(len(query))
    found: dict[int, DayRange] = {}
    for words, resolve in _patterns(query):
        for match in words.finditer(query):
            start, end = match.span()
            if any(taken[start:end]):
                continue
            taken[start:end] = b"\x01" * (end - start)
            try:
                span = resolve(match, today)
            except (ValueError, OverflowError):  # a day outside the calendar is no day
                continue
            if span is not None:
                first, last = span
                if _SINCE.search(query[:start]):
                    last = max(last, today)
                found[start] = DayRange(first, last, match[0].strip())
    return tuple(found[start] for start in sorted(found))


def _normalize(query: str) -> str:
    if query.isascii():
        return query
    import unicodedata

    return unicodedata.normalize("NFKC", query)


def _patterns(query: str) -> Iterator[DatePattern]:
    """Yield what may match, the more specific first; compiling all of it would slow a cold search."""
    lowered = query.lower()
    if any(map(str.isdecimal, query)) or any(hint in lowered for hint in _HINTS):
        from plainmind.text.dates_english import ENGLISH_DATES

        yield from _possible(ENGLISH_DATES, lowered)
    if not query.isascii():
        from plainmind.text.dates_east_asian import EAST_ASIAN_DATES

        yield from _possible(EAST_ASIAN_DATES, lowered)


def _possible(patterns: Iterable[HintedPattern], lowered: str) -> Iterator[DatePattern]:
    shape = "".join(["0" if letter.isdecimal() else letter for letter in lowered])
    for hints, words, resolve in patterns:
        if all(any(hint in shape for hint in alternatives) for alternatives in hints):
            yield words, resolve


def terms_of_day(day: str | None) -> tuple[str, ...]:
    """The terms of a dated text: its day, month and year, in a form that no word has."""
    return () if day is None else (f"day:{day}", f"month:{day[:7]}", f"year:{day[:4]}")


def terms_of_span(span: DayRange) -> tuple[str, ...]:
    """The fewest terms that together name every day of a span, and hardly any other."""
    count = (span.last - span.first).days + 1
    if count <= MOST_DAYS:
        return tuple(f"day:{(span.first + dt.timedelta(days=number)).isoformat()}" for number in range(count))
    months = _months(span.first, span.last)
    if len(months) <= MOST_MONTHS:
        return tuple(f"month:{month}" for month in months)
    return tuple(f"year:{year}" for year in range(span.first.year, span.last.year + 1))[:MOST_MONTHS]


def _months(first: dt.date, last: dt.date) -> list[str]:
    start, end = first.year * 12 + first.month - 1, last.year * 12 + last.month - 1
    return [f"{number // 12:04d}-{number % 12 + 1:02d}" for number in range(start, end + 1)]
