"""How English names days, most specific first.

A weekday is the last one before today, unless its week is named with it; of every Friday none is meant.
"""

from __future__ import annotations

import datetime as dt
import re

from plainmind.base.lazy import pattern
from plainmind.text.spans import (
    A_DIGIT,
    A_YEAR,
    MONTHS_OF_SEASON,
    YEAR,
    Either,
    HintedPattern,
    Match,
    Span,
    ago,
    any_case,
    calendar_span,
    day,
    day_of_month,
    days_ago,
    days_before,
    months,
    no_day,
    recent_day,
    recent_days,
    recent_months,
    recent_season,
    rolling,
    weekday_before,
    weekday_of_week,
    weekend_before,
    year_span,
)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "several": 3, "four": 4}
_COUNTS |= {"five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\w:])"
_UNIT = r"(?P<unit>hour|day|week|fortnight|month|year)s?\b"
_COUNT = (
    r"(?:(?:a\s+)?(?P<count>\d{1,4}|couple|few|several|an?|one|two|three|four|five|six|seven|eight|nine|ten"
    r"|eleven|twelve)(?:\s+of)?)"
)
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)\b"
# "may" and "march" are verbs too: alone they need a capital, and no subject after them ("May I ask …").
_BARE_MONTH = (
    r"\b(?P<month>(?i:january|february|april|june|july|august|september|october|november|december)"
    r"|March|May(?!\s+(?:I|you|he|she|it|we|they|the|this|that|these|those|my|your|our)\b))\b"
)
_WEEKDAY = (
    r"(?P<weekday>(?i:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b"
)


def _month(match: Match) -> int:
    return _MONTHS.index(match["month"][:3].lower()) + 1


def _count(match: Match) -> int:
    words = match["count"].lower()
    return _COUNTS.get(words) or int(words)


def _unit(match: Match) -> str:
    unit: str = match["unit"].lower()
    return unit


def _iso_day(match: Match, _today: dt.date) -> Span:
    return day(dt.date(int(match["year"]), int(match["month"]), int(match["day"])))


def _iso_month(match: Match, _today: dt.date) -> Span | None:
    month = int(match["month"])
    return months(int(match["year"]), month) if 1 <= month <= 12 else None


def _numeric_day(match: Match, _today: dt.date) -> Span:
    """Read 2/10/2026 month first unless that is impossible; with full stops the day comes first."""
    month, date = int(match["first"]), int(match["second"])
    if match["mark"] == "." or month > 12:
        month, date = date, month
    if month > 12:
        month, date = date, month
    return day(dt.date(int(match["year"]), month, date))


def _named_day(match: Match, today: dt.date) -> Span | None:
    if match["year"]:
        return day(dt.date(int(match["year"]), _month(match), int(match["day"])))
    return recent_day(today, _month(match), int(match["day"]))


def _day_by_numbers(match: Match, today: dt.date) -> Span | None:
    """Read *am 17.11.* with both full stops: without the last it may be a number, without *am* a section."""
    month = int(match["month"])
    return recent_day(today, month, int(match["day"])) if 1 <= month <= 12 else None


def _month_of_year(match: Match, _today: dt.date) -> Span:
    return months(int(match["year"]), _month(match))


def _last_month_named(match: Match, today: dt.date) -> Span:
    return recent_months(today, _month(match), 1, over=True)


def _recent_month_named(match: Match, today: dt.date) -> Span:
    return recent_months(today, _month(match), 1, over=False)


def _quarter(match: Match, today: dt.date) -> Span:
    first_month = int(match["quarter"]) * 3 - 2
    if match["year"]:
        return months(int(match["year"]), first_month, 3)
    return recent_months(today, first_month, 3, over=False)


def _season_of_year(match: Match, _today: dt.date) -> Span:
    return months(int(match["year"]), MONTHS_OF_SEASON[match["season"].lower()], 3)


def _season(match: Match, today: dt.date) -> Span | Either:
    which, first_month = match["which"].lower(), MONTHS_OF_SEASON[match["season"].lower()]
    if which in {"last", "previous", "past", "this"}:
        return recent_months(today, first_month, 3, over=which != "this")
    return recent_season(today, first_month)


def _weekday(match: Match, today: dt.date) -> Span:
    which, weekday = (match["which"] or "").lower(), _WEEKDAYS.index(match["weekday"][:3].lower())
    if which in {"this", "next"}:
        return weekday_of_week(today, weekday, 0 if which == "this" else -1)
    return weekday_before(today, weekday)


def _weekday_in_week(match: Match, today: dt.date) -> Span:
    weeks_back = {"last": 1, "previous": 1, "this": 0, "next": -1}[match["week"].lower()]
    return weekday_of_week(today, _WEEKDAYS.index(match["weekday"][:3].lower()), weeks_back)


def _before_last(match: Match, today: dt.date) -> Span:
    return calendar_span(_unit(match), today, 2)


def _next_period(match: Match, today: dt.date) -> Span:
    return calendar_span(_unit(match), today, -1)


def _case_matters(source: str) -> re.Pattern[str]:
    return pattern(source)


# What a query must have in it, for the pattern to be tried.
_A_SEASON = tuple(MONTHS_OF_SEASON)
_A_UNIT = ("hour", "day", "week", "fortnight", "month", "year")
_A_PERIOD = ("week", "month", "quarter", "year")
_LAST = ("last", "previous")

ENGLISH_DATES: tuple[HintedPattern, ...] = (
    (
        (("0000-0", "0000/0", "0000.0"),),
        any_case(r"(?<![\d.])(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)(?!\d)"),
        _iso_day,
    ),
    (
        (("0000-00",),),
        any_case(r"(?<![\d-])(?P<year>(?:19|20|21)\d\d)-(?P<month>\d\d)(?![\d-])"),
        _iso_month,
    ),
    (
        (("-0000", "/0000", ".0000"),),
        any_case(
            r"(?<![\d./-])(?P<first>\d\d?)(?P<mark>[-/.])(?P<second>\d\d?)(?P=mark)"
            r"(?P<year>(?:19|20|21)\d\d)(?![\d/-]|\.\d)"
        ),
        _numeric_day,
    ),
    # Half of the months are spelt so in German and Danish, too, where a full stop follows the day.
    ((A_DIGIT, _MONTHS), any_case(rf"\b{_DAY}\.?\s+(?:of\s+)?{_MONTH}(?:,?\s+{YEAR})?"), _named_day),
    (
        (("0.0",),),
        any_case(r"\b(?:am|vom|zum|den|bis|seit|ab)\s+(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?![\d.])"),
        _day_by_numbers,
    ),
    ((A_DIGIT, _MONTHS), any_case(rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}(?:,?\s+{YEAR})?"), _named_day),
    ((A_YEAR, _MONTHS), any_case(rf"\b{_MONTH},?\s+(?:of\s+)?{YEAR}"), _month_of_year),
    ((("q0",), A_YEAR), any_case(rf"\bq(?P<quarter>[1-4])\s*(?:of\s+|/|-)?{YEAR}"), _quarter),
    ((("q0",), A_YEAR), any_case(rf"\b{YEAR}[\s/-]*q(?P<quarter>[1-4])\b"), _quarter),
    ((("q0",),), _case_matters(r"\bQ(?P<quarter>[1-4])\b(?P<year>)"), _quarter),
    ((_A_SEASON, A_YEAR), any_case(rf"\b{_SEASON}\s+(?:of\s+)?{YEAR}"), _season_of_year),
    (
        (("ago",), ("today", "week", "month")),
        any_case(rf"\b{_COUNT}\s+(?P<unit>week)s?\s+ago\s+today\b"),
        lambda m, today: day(days_before(today, 7 * _count(m))),
    ),
    ((("yesterday",),), any_case(r"\b(?:the\s+)?day\s+before\s+yesterday\b"), days_ago(2)),
    ((("yesterday", "night"),), any_case(r"\b(?:yesterday|last\s+night)\b"), days_ago(1)),
    (
        (("today", "tonight", "morning", "afternoon", "evening"),),
        any_case(r"\b(?:today|tonight|this\s+(?:morning|afternoon|evening))\b"),
        days_ago(0),
    ),
    (
        (_WEEKDAYS, ("week",)),
        _case_matters(rf"\b{_WEEKDAY}\s+(?i:(?:of\s+)?(?P<week>last|previous|this|next)\s+week)\b"),
        _weekday_in_week,
    ),
    (
        (("month",), A_DIGIT),
        any_case(rf"\b{_DAY}\s+(?:day\s+)?of\s+(?P<which>this|last)\s+month\b"),
        lambda m, today: day_of_month(today, int(m["day"]), 0 if m["which"].lower() == "this" else 1),
    ),
    (
        (("ago", "back"),),
        any_case(rf"\b{_COUNT}\s+{_UNIT}\s+(?:ago|back)\b"),
        lambda m, today: ago(today, _count(m), _unit(m)),
    ),
    (
        (("past", *_LAST), _A_UNIT),
        any_case(rf"\b(?:the\s+)?(?:past|last|previous)\s+{_COUNT}\s+{_UNIT}"),
        lambda m, today: rolling(today, _count(m), _unit(m)),
    ),
    (
        (("past",), _A_UNIT),
        any_case(rf"\b(?:the\s+)?past\s+{_UNIT}"),
        lambda m, today: rolling(today, 1, _unit(m)),
    ),
    (
        (("weekend",),),
        any_case(r"\b(?:last|previous|past)\s+weekend\b"),
        lambda _, today: weekend_before(today),
    ),
    (
        (("weekend",),),
        any_case(r"\b(?:(?:over|on|at|during|this)\s+(?:the\s+)?|the\s+)weekend\b"),
        lambda _, today: weekend_before(today, or_now=True),
    ),
    ((("before last",),), any_case(r"\b(?P<unit>week|month|year)\s+before\s+last\b"), _before_last),
    ((("next",), _A_PERIOD), any_case(r"\bnext\s+(?P<unit>week|month|quarter|year)\b"), _next_period),
    ((("tomorrow",),), any_case(r"\btomorrow\b"), days_ago(-1)),
    ((("other day",),), any_case(r"\bthe\s+other\s+day\b"), lambda _, today: rolling(today, 7, "day")),
    ((("hristmas",),), any_case(r"\bchristmas\b"), lambda _, today: recent_days(today, 12, 24, 3)),
    ((("new year",),), any_case(r"\bnew\s+year'?s\s+eve\b"), lambda _, today: recent_days(today, 12, 30, 3)),
    (
        (_LAST, _A_PERIOD),
        any_case(r"\b(?:last|previous)\s+(?P<unit>week|month|quarter|year)\b"),
        lambda m, today: calendar_span(_unit(m), today, 1),
    ),
    (
        (("this",), _A_PERIOD),
        any_case(r"\bthis\s+(?P<unit>week|month|quarter|year)\b"),
        lambda m, today: calendar_span(_unit(m), today, 0),
    ),
    ((_WEEKDAYS,), _case_matters(rf"(?i:\b(?:every|each|any|most|all))\s+{_WEEKDAY}"), no_day),
    (
        (_WEEKDAYS,),
        _case_matters(rf"\b(?P<which>(?i:last|previous|past|on|this|next))\s+{_WEEKDAY}"),
        _weekday,
    ),
    (
        (_WEEKDAYS,),
        any_case(r"\b(?P<which>)(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"),
        _weekday,
    ),
    (
        (_A_SEASON,),
        any_case(rf"\b(?P<which>last|previous|past|this|(?:in|during|over)(?:\s+the)?)\s+{_SEASON}"),
        _season,
    ),
    ((_LAST, _MONTHS), any_case(rf"\b(?:last|previous)\s+{_MONTH}"), _last_month_named),
    (
        (_MONTHS,),
        any_case(rf"\b(?:in|during)\s+(?:early\s+|late\s+|mid[\s-])?{_MONTH}"),
        _recent_month_named,
    ),
    ((("since",), _MONTHS), any_case(rf"(?<=since\s){_MONTH}"), _recent_month_named),
    ((_MONTHS,), _case_matters(_BARE_MONTH), _recent_month_named),
    (
        (A_YEAR,),
        any_case(rf"\b(?:in|during|throughout|from|of|year)\s+(?:early\s+|late\s+|mid[\s-])?{YEAR}"),
        lambda m, _: year_span(int(m["year"])),
    ),
    ((("since",), A_YEAR), any_case(rf"(?<=since\s){YEAR}"), lambda m, _: year_span(int(m["year"]))),
)
