"""How English, German, French and Spanish name days, most specific first.

A weekday is the last one before today, unless its week is named with it; of every Friday none is meant.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from plainmind.base.lazy import IGNORECASE, pattern
from plainmind.base.value import value
from plainmind.text.spans import (
    MONTHS_OF_SEASON,
    HintedPattern,
    Match,
    Span,
    ago,
    calendar_span,
    day,
    day_of_month,
    days_before,
    months,
    recent_day,
    recent_days,
    recent_months,
    rolling,
    weekday_before,
    weekday_of_week,
    weekend_before,
    year_span,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Resolve: TypeAlias = "Callable[[Match, dt.date], Span | None]"

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "several": 3, "four": 4}
_COUNTS |= {"five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\w:])"
_YEAR = r"(?P<year>(?:19|20|21)\d\d)(?!\w)"
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


def _season(match: Match, today: dt.date) -> Span:
    over = match["which"].lower() in ("last", "previous", "past")
    return recent_months(today, MONTHS_OF_SEASON[match["season"].lower()], 3, over=over)


def _weekday(match: Match, today: dt.date) -> Span:
    which, weekday = (match["which"] or "").lower(), _WEEKDAYS.index(match["weekday"][:3].lower())
    if which in {"this", "next"}:
        return weekday_of_week(today, weekday, 0 if which == "this" else -1)
    return weekday_before(today, weekday)


def _weekday_in_week(match: Match, today: dt.date) -> Span:
    weeks_back = {"last": 1, "previous": 1, "this": 0, "next": -1}[match["week"].lower()]
    return weekday_of_week(today, _WEEKDAYS.index(match["weekday"][:3].lower()), weeks_back)


def _none(_match: Match, _today: dt.date) -> None:
    """Name no day: what happens every week happens on none."""


def _before_last(match: Match, today: dt.date) -> Span:
    return calendar_span(_unit(match), today, 2)


def _next_period(match: Match, today: dt.date) -> Span:
    return calendar_span(_unit(match), today, -1)


def _days_ago(count: int) -> Callable[[Match, dt.date], Span]:
    return lambda _match, today: day(days_before(today, count))


def _case_matters(source: str) -> re.Pattern[str]:
    return pattern(source)


def _any_case(source: str) -> re.Pattern[str]:
    return pattern(source, IGNORECASE)


# What a query must have in it, for the pattern to be tried.
_A_DIGIT = ("0",)
_A_YEAR = ("0000",)
_A_SEASON = tuple(MONTHS_OF_SEASON)
_A_UNIT = ("hour", "day", "week", "fortnight", "month", "year")
_A_PERIOD = ("week", "month", "quarter", "year")
_LAST = ("last", "previous")

ENGLISH_DATES: tuple[HintedPattern, ...] = (
    (
        (("0000-0", "0000/0", "0000.0"),),
        _any_case(r"(?<![\d.])(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)(?!\d)"),
        _iso_day,
    ),
    (
        (("0000-00",),),
        _any_case(r"(?<![\d-])(?P<year>(?:19|20|21)\d\d)-(?P<month>\d\d)(?![\d-])"),
        _iso_month,
    ),
    (
        (("-0000", "/0000", ".0000"),),
        _any_case(
            r"(?<![\d./-])(?P<first>\d\d?)(?P<mark>[-/.])(?P<second>\d\d?)(?P=mark)"
            r"(?P<year>(?:19|20|21)\d\d)(?![\d/-]|\.\d)"
        ),
        _numeric_day,
    ),
    ((_A_DIGIT, _MONTHS), _any_case(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?"), _named_day),
    ((_A_DIGIT, _MONTHS), _any_case(rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}(?:,?\s+{_YEAR})?"), _named_day),
    ((_A_YEAR, _MONTHS), _any_case(rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}"), _month_of_year),
    ((("q0",), _A_YEAR), _any_case(rf"\bq(?P<quarter>[1-4])\s*(?:of\s+|/|-)?{_YEAR}"), _quarter),
    ((("q0",), _A_YEAR), _any_case(rf"\b{_YEAR}[\s/-]*q(?P<quarter>[1-4])\b"), _quarter),
    ((("q0",),), _case_matters(r"\bQ(?P<quarter>[1-4])\b(?P<year>)"), _quarter),
    ((_A_SEASON, _A_YEAR), _any_case(rf"\b{_SEASON}\s+(?:of\s+)?{_YEAR}"), _season_of_year),
    (
        (("ago",), ("today", "week", "month")),
        _any_case(rf"\b{_COUNT}\s+(?P<unit>week)s?\s+ago\s+today\b"),
        lambda m, today: day(days_before(today, 7 * _count(m))),
    ),
    ((("yesterday",),), _any_case(r"\b(?:the\s+)?day\s+before\s+yesterday\b"), _days_ago(2)),
    ((("yesterday", "night"),), _any_case(r"\b(?:yesterday|last\s+night)\b"), _days_ago(1)),
    (
        (("today", "tonight", "morning", "afternoon", "evening"),),
        _any_case(r"\b(?:today|tonight|this\s+(?:morning|afternoon|evening))\b"),
        _days_ago(0),
    ),
    (
        (_WEEKDAYS, ("week",)),
        _case_matters(rf"\b{_WEEKDAY}\s+(?i:(?:of\s+)?(?P<week>last|previous|this|next)\s+week)\b"),
        _weekday_in_week,
    ),
    (
        (("month",), _A_DIGIT),
        _any_case(rf"\b{_DAY}\s+(?:day\s+)?of\s+(?P<which>this|last)\s+month\b"),
        lambda m, today: day_of_month(today, int(m["day"]), 0 if m["which"].lower() == "this" else 1),
    ),
    (
        (("ago", "back"),),
        _any_case(rf"\b{_COUNT}\s+{_UNIT}\s+(?:ago|back)\b"),
        lambda m, today: ago(today, _count(m), _unit(m)),
    ),
    (
        (("past", *_LAST), _A_UNIT),
        _any_case(rf"\b(?:the\s+)?(?:past|last|previous)\s+{_COUNT}\s+{_UNIT}"),
        lambda m, today: rolling(today, _count(m), _unit(m)),
    ),
    (
        (("past",), _A_UNIT),
        _any_case(rf"\b(?:the\s+)?past\s+{_UNIT}"),
        lambda m, today: rolling(today, 1, _unit(m)),
    ),
    (
        (("weekend",),),
        _any_case(r"\b(?:last|previous|past)\s+weekend\b"),
        lambda _, today: weekend_before(today),
    ),
    (
        (("weekend",),),
        _any_case(r"\b(?:(?:over|on|at|during|this)\s+(?:the\s+)?|the\s+)weekend\b"),
        lambda _, today: weekend_before(today, or_now=True),
    ),
    ((("before last",),), _any_case(r"\b(?P<unit>week|month|year)\s+before\s+last\b"), _before_last),
    ((("next",), _A_PERIOD), _any_case(r"\bnext\s+(?P<unit>week|month|quarter|year)\b"), _next_period),
    ((("tomorrow",),), _any_case(r"\btomorrow\b"), _days_ago(-1)),
    ((("other day",),), _any_case(r"\bthe\s+other\s+day\b"), lambda _, today: rolling(today, 7, "day")),
    ((("hristmas",),), _any_case(r"\bchristmas\b"), lambda _, today: recent_days(today, 12, 24, 3)),
    ((("new year",),), _any_case(r"\bnew\s+year'?s\s+eve\b"), lambda _, today: recent_days(today, 12, 30, 3)),
    (
        (_LAST, _A_PERIOD),
        _any_case(r"\b(?:last|previous)\s+(?P<unit>week|month|quarter|year)\b"),
        lambda m, today: calendar_span(_unit(m), today, 1),
    ),
    (
        (("this",), _A_PERIOD),
        _any_case(r"\bthis\s+(?P<unit>week|month|quarter|year)\b"),
        lambda m, today: calendar_span(_unit(m), today, 0),
    ),
    ((_WEEKDAYS,), _case_matters(rf"(?i:\b(?:every|each|any|most|all))\s+{_WEEKDAY}"), _none),
    (
        (_WEEKDAYS,),
        _case_matters(rf"\b(?P<which>(?i:last|previous|past|on|this|next))\s+{_WEEKDAY}"),
        _weekday,
    ),
    (
        (_WEEKDAYS,),
        _any_case(r"\b(?P<which>)(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"),
        _weekday,
    ),
    (
        (_A_SEASON,),
        _any_case(rf"\b(?P<which>last|previous|past|this|(?:in|during|over)(?:\s+the)?)\s+{_SEASON}"),
        _season,
    ),
    ((_LAST, _MONTHS), _any_case(rf"\b(?:last|previous)\s+{_MONTH}"), _last_month_named),
    (
        (_MONTHS,),
        _any_case(rf"\b(?:in|during)\s+(?:early\s+|late\s+|mid[\s-])?{_MONTH}"),
        _recent_month_named,
    ),
    ((("since",), _MONTHS), _any_case(rf"(?<=since\s){_MONTH}"), _recent_month_named),
    ((_MONTHS,), _case_matters(_BARE_MONTH), _recent_month_named),
    (
        (_A_YEAR,),
        _any_case(rf"\b(?:in|during|throughout|from|of|year)\s+(?:early\s+|late\s+|mid[\s-])?{_YEAR}"),
        lambda m, _: year_span(int(m["year"])),
    ),
    ((("since",), _A_YEAR), _any_case(rf"(?<=since\s){_YEAR}"), lambda m, _: year_span(int(m["year"]))),
)


# --- German, French, Spanish ---


@value
class _Language:
    """How a language names days. Names are patterns, `{…}` stands for all that it calls so.

    `hints` are the words of which a question must have one, or a digit, to be worth a pattern.
    """

    months: tuple[str, ...]
    weekdays: tuple[str, ...]
    seasons: Mapping[str, int]  # and the first month of each
    units: Mapping[str, str]
    counts: Mapping[str, int]
    days: Mapping[str, int]  # and how many days back each is
    ago: str
    rolling: str
    periods: Mapping[str, int]  # with {unit}, and how many periods back
    every: str  # weekday of all weeks
    in_week: Mapping[str, int]  # a weekday with its week, and how many weeks back that is
    weekday: str
    weekends: Mapping[str, bool]  # and whether the present one may be meant
    season: str
    last_season: str
    day_of_month: str
    month_of_year: str
    month: str
    feasts: Mapping[str, tuple[int, int, int]]  # month, day and how many days
    hints: Mapping[str, tuple[str, ...]]

    def dates(self) -> Iterable[tuple[tuple[str, ...], str, Resolve]]:
        """The kinds of words that must be there, patterns, and what they mean."""
        yield ("digit", "month"), self.day_of_month, self._day_of_month
        yield ("year", "month"), self.month_of_year, lambda m, _: months(int(m["year"]), self._month(m))
        for words, count in self.days.items():
            yield ("day",), words, _days_ago(count)
        yield ("ago",), self.ago, lambda m, today: ago(today, self._count(m), self._unit(m))
        yield ("last",), self.rolling, lambda m, today: rolling(today, self._count(m), self._unit(m))
        for words, or_now in self.weekends.items():
            yield ("weekend",), words, _weekend(or_now=or_now)
        yield ("weekday",), self.every, _none
        for words, back in self.in_week.items():
            yield ("weekday", "which"), words, self._in_week(back)
        for words, back in self.periods.items():
            yield ("unit", "which"), words, self._period(back)
        yield (
            ("weekday",),
            self.weekday,
            lambda m, today: weekday_before(today, self._weekday(m)),
        )
        yield (
            ("season", "last"),
            self.last_season,
            lambda m, today: recent_months(today, self._season(m), 3, over=True),
        )
        yield ("season", "in"), self.season, self._season_named
        for words, feast in self.feasts.items():
            yield ("feast",), words, _feast(*feast)
        yield (
            ("month", "in"),
            self.month,
            lambda m, today: recent_months(today, self._month(m), 1, over=False),
        )

    def patterns(self) -> tuple[HintedPattern, ...]:
        """The same, with names in place of their marks."""
        parts = {
            "month": f"(?P<month>{_any_of(self.months)})",
            "weekday": f"(?P<weekday>{_any_of(self.weekdays)})",
            "season": f"(?P<season>{_any_of(self.seasons)})",
            "unit": f"(?P<unit>{_any_of(self.units)})",
            "count": rf"(?P<count>\d{{1,3}}|{_any_of(self.counts)})",
            "day": r"(?P<day>\d{1,2})",
            "year": _YEAR,
        }
        # Of a name that stands twice in a pattern, only one is ever matched.
        parts |= {
            f"{name}2": parts[name].replace(f"<{name}>", f"<{name}2>")
            for name in ("weekday", "unit", "count")
        }
        hints = {"digit": _A_DIGIT, "year": _A_YEAR, **self.hints}
        return tuple(
            (
                tuple(hints[kind] for kind in kinds),
                _any_case(rf"\b{_with_parts(words, parts)}(?!\w)"),
                resolve,
            )
            for kinds, words, resolve in self.dates()
        )

    def _in_week(self, weeks_back: int) -> Resolve:
        return lambda match, today: weekday_of_week(today, self._weekday(match), weeks_back)

    def _period(self, periods_back: int) -> Resolve:
        return lambda match, today: calendar_span(self._unit(match), today, periods_back)

    def _day_of_month(self, match: Match, today: dt.date) -> Span | None:
        if match["year"]:
            return day(dt.date(int(match["year"]), self._month(match), int(match["day"])))
        return recent_day(today, self._month(match), int(match["day"]))

    def _season_named(self, match: Match, today: dt.date) -> Span:
        if match["year"]:
            return months(int(match["year"]), self._season(match), 3)
        return recent_months(today, self._season(match), 3, over=False)

    def _month(self, match: Match) -> int:
        return _place(self.months, match["month"]) + 1

    def _weekday(self, match: Match) -> int:
        return _place(self.weekdays, _first(match, "weekday"))

    def _season(self, match: Match) -> int:
        return list(self.seasons.values())[_place(list(self.seasons), match["season"])]

    def _unit(self, match: Match) -> str:
        return list(self.units.values())[_place(list(self.units), _first(match, "unit"))]

    def _count(self, match: Match) -> int:
        words = _first(match, "count")
        if words.isdecimal():
            return int(words)
        return list(self.counts.values())[_place(list(self.counts), words)]


def _weekend(*, or_now: bool) -> Resolve:
    return lambda _match, today: weekend_before(today, or_now=or_now)


def _feast(month: int, first: int, count: int) -> Resolve:
    return lambda _match, today: recent_days(today, month, first, count)


def _any_of(names: Iterable[str]) -> str:
    return "|".join(f"(?:{name})" for name in names)


def _with_parts(words: str, parts: Mapping[str, str]) -> str:
    for name, part in parts.items():
        words = words.replace(f"{{{name}}}", part)
    return words.replace(" ", r"\s+")


def _first(match: Match, name: str) -> str:
    found = match.groupdict()
    words: str = found[name] or found[f"{name}2"]
    return words


def _place(names: Sequence[str], words: str) -> int:
    return next(at for at, name in enumerate(names) if pattern(name, IGNORECASE).fullmatch(words))


# Spaces stand for any white space; a name in braces for all that the language calls so.
_GERMAN = _Language(
    months=(
        "januar|jänner|jan", "februar|feb", "märz|maerz|marz", "april|apr", "mai", "juni|jun", "juli|jul",
        "august|aug", "september|sept?", "oktober|okt", "november|nov", "dezember|dez",
    ),
    weekdays=("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag|sonnabend", "sonntag"),
    seasons={"frühling|fruehling|frühjahr|fruehjahr": 3, "sommer": 6, "herbst": 9, "winter": 12},
    units={
        "stunden?": "hour", "tag(?:en|e)?": "day", "wochen?": "week", "monat(?:en|e|s)?": "month",
        "quartal": "quarter", "jahr(?:en|e|es)?": "year",
    },
    counts={
        "eine[mnr]?": 1, "zwei": 2, "drei|ein paar|paar|einigen": 3, "vier": 4, "fünf|fuenf": 5, "sechs": 6,
        "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf|zwoelf": 12, "vierzehn": 14,
    },
    days={"vorvorgestern": 3, "vorgestern": 2, "gestern": 1, "heute": 0, "übermorgen|uebermorgen": -2},
    ago="vor {count} {unit}",
    rolling="(?:letzten|vergangenen) {count} {unit}",
    periods={
        "vorletzte[nrsm]? {unit}": 2, "(?:letzte|vorige|vergangene)[nrsm]? {unit}": 1, "diese[nrsm]? {unit}": 0,
        "(?:nächste|naechste)[nrsm]? {unit}": -1,
    },
    every="(?:jede[nmr]?|immer) {weekday}",
    in_week={
        "{weekday} (?:letzter|voriger|vergangener) woche": 1,
        "(?:letzte|vorige|vergangene)[nr]? woche (?:am )?{weekday}": 1,
        "{weekday} dieser woche": 0,
        "diese woche (?:am )?{weekday}": 0,
        "(?:nächste|naechste|kommende)[nr]? {weekday}": -1,
    },
    weekday="(?:(?:am|(?:letzte|vorige|vergangene)[nmr]?) )?{weekday}(?:abend|morgen|(?:vor|nach)?mittag|nacht)?",
    weekends={
        "(?:letzte|vorige|vergangene)[snm]? wochenende": False,
        "(?:am|übers|uebers|dieses|das|an diesem) wochenende": True,
    },
    season="(?:im|diese[nsm]?) {season}(?: {year})?",
    last_season="(?:letzte|vorige|vergangene)[nms]? {season}",
    day_of_month="{day}\\. ?{month}(?: {year})?",
    month_of_year="{month} {year}",
    month="(?:(?:im|anfang|ende|mitte|letzte[nm]) |(?<=seit\\s)|(?<=bis\\s)|(?<=vor\\s)){month}",
    feasts={"weihnachten": (12, 24, 3), "silvester": (12, 30, 3)},
    hints={
        "month": (
            *("januar", "jänner", "jan ", "feb", "märz", "maerz", "marz", "apr", "mai", "jun", "jul", "aug", "sep"),
            *("okt", "nov", "dez"),
        ),
        "day": ("gestern", "heute", "bermorgen"),
        "ago": ("vor ",),
        "last": ("letzte", "vorige", "vergangene"),
        "weekend": ("wochenende",),
        "weekday": ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonnabend", "sonntag"),
        "which": ("letzte", "vorige", "vergangene", "diese", "chste", "kommende"),
        "unit": ("stunde", "tag", "woche", "monat", "quartal", "jahr"),
        "season": ("frühling", "fruehling", "frühjahr", "fruehjahr", "sommer", "herbst", "winter"),
        "in": ("im ", "diese", "anfang", "ende ", "mitte", "seit", "bis ", "vor ", "letzte"),
        "feast": ("weihnachten", "silvester"),
    },
)  # fmt: skip

_FRENCH = _Language(
    months=(
        "janvier", "f[ée]vrier", "mars", "avril", "mai", "juin", "juillet", "ao[ûu]t", "septembre", "octobre",
        "novembre", "d[ée]cembre",
    ),
    weekdays=("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    seasons={"printemps": 3, "[ée]t[ée]": 6, "automne": 9, "hiver": 12},
    units={
        "heures?": "hour", "jours?": "day", "semaines?": "week", "mois": "month", "trimestre": "quarter",
        "ans?|ann[ée]es?": "year",
    },
    counts={
        "une?": 1, "deux": 2, "trois|quelques": 3, "quatre": 4, "cinq": 5, "six": 6, "sept": 7, "huit": 8, "neuf": 9,
        "dix": 10, "onze": 11, "douze": 12, "quinze": 15,
    },
    days={"avant-hier": 2, "aujourd'hui|ce (?:matin|soir)": 0, "demain": -1},
    ago="il y a {count} {unit}",
    rolling="(?:(?:ces|les|des) )?(?:{count} derni[èe]re?s|derni[èe]re?s {count2}) {unit}",
    periods={
        "{unit} (?:derni[èe]re?|pass[ée]e?)": 1,
        "(?:cette|ce|cet) {unit}": 0,
        "{unit} prochaine?": -1,
        "(?:l')?avant-derni[èe]re? {unit}": 2,
    },
    every="(?:tous les|chaque) {weekday}s?",
    in_week={
        "{weekday} de la semaine (?:derni[èe]re|pass[ée]e)": 1,
        "{weekday} de cette semaine": 0,
        "ce {weekday}": 0,
        "{weekday} prochain": -1,
    },
    weekday="{weekday}(?: (?:dernier|pass[ée]))?",
    weekends={"week-?end (?:dernier|pass[ée])": False, "(?:ce|le|du|pendant le) week-?end": True},
    season="(?:au|en|cet|ce) {season}(?: {year})?",
    last_season="(?:l'|le )?{season} (?:dernier|pass[ée])",
    day_of_month="{day}(?:er)? {month}(?: {year})?",
    month_of_year="{month} {year}",
    month="(?:(?:en|au mois de|d[ée]but|fin) |(?<=depuis\\s)|(?<=avant\\s)){month}",
    feasts={"no[ëe]l": (12, 24, 3)},
    hints={
        "month": (
            *("janvier", "vrier", "mars", "avril", "mai", "juin", "juillet", "août", "aout", "embre", "octobre"),
        ),
        "day": ("avant-hier", "aujourd", "ce matin", "ce soir", "demain"),
        "ago": ("il y a",),
        "last": ("dernier", "dernièr", "passé", "passe"),
        "weekend": ("week-end", "ce weekend", "le weekend", "du weekend"),
        "weekday": ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
        "which": ("dernier", "dernièr", "passé", "passe", "ce ", "cet", "prochain"),
        "unit": ("heure", "jour", "semaine", "mois", "trimestre", "an", "année"),
        "season": ("printemps", "été", "ete", "automne", "hiver"),
        "in": ("au ", "en ", "ce ", "cet ", "début", "debut", "fin ", "depuis", "avant"),
        "feast": ("noël", "noel"),
    },
)  # fmt: skip

_SPANISH = _Language(
    months=(
        "enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "sep?tiembre", "octubre",
        "noviembre", "diciembre",
    ),
    weekdays=("lunes", "martes", "mi[ée]rcoles", "jueves", "viernes", "s[áa]bado", "domingo"),
    seasons={"primavera": 3, "verano": 6, "oto[ñn]o": 9, "invierno": 12},
    units={
        "horas?": "hour", "d[íi]as?": "day", "semanas?": "week", "mes(?:es)?": "month", "trimestre": "quarter",
        "a[ñn]os?": "year",
    },
    counts={
        "una?": 1, "dos": 2, "tres|unos|unas|algunos|algunas": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7,
        "ocho": 8, "nueve": 9, "diez": 10, "once": 11, "doce": 12, "quince": 15,
    },
    days={
        "anteayer|antes de ayer": 2, "ayer|anoche": 1, "hoy|esta (?:ma[ñn]ana|tarde|noche)": 0, "pasado ma[ñn]ana": -2,
    },
    ago="hace {count} {unit}",
    rolling="(?:[úu]ltim|pasad)[oa]s {count} {unit}",
    periods={
        "{unit} (?:pasad[oa]|anterior)": 1,
        "[úu]ltim[oa] {unit}": 1,
        "est[ea] {unit}": 0,
        "{unit} que viene|pr[óo]xim[oa] {unit2}": -1,
        "{unit} antepasad[oa]": 2,
    },
    every="(?:todos los|cada|los) {weekday}s?",
    in_week={
        "{weekday} de la semana pasada": 1,
        "{weekday} de esta semana": 0,
        "este {weekday}": 0,
        "(?:pr[óo]ximo {weekday}|{weekday2} que viene)": -1,
    },
    weekday="(?:el (?:pasado )?)?{weekday}(?: pasado)?",
    weekends={
        "(?:fin de semana pasado|[úu]ltimo fin de semana)": False,
        "(?:este|el|durante el|en el) (?:fin de semana|finde)": True,
    },
    season="(?:en|est[ea]) (?:la |el )?{season}(?: (?:de )?{year})?",
    last_season="{season} pasad[oa]",
    day_of_month="{day} de {month}(?: (?:de |del )?{year})?",
    month_of_year="{month} (?:de |del )?{year}",
    month="(?:(?:en|a principios de|a finales de) |(?<=desde\\s)|(?<=hasta\\s)|(?<=antes\\sde\\s)){month}",
    feasts={"navidad(?:es)?": (12, 24, 3), "nochevieja": (12, 30, 3)},
    hints={
        "month": (
            *("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "tiembre", "octubre"),
            *("noviembre", "diciembre"),
        ),
        "day": ("ayer", "anoche", "hoy", "esta ", "pasado ma"),
        "ago": ("hace ",),
        "last": ("ltim", "pasad"),
        "weekend": ("fin de semana", "finde"),
        "weekday": ("lunes", "martes", "rcoles", "jueves", "viernes", "sábado", "sabado", "domingo"),
        "which": ("pasad", "anterior", "ltim", "este", "esta", "viene", "xim"),
        "unit": ("hora", "día", "dia", "semana", "mes", "trimestre", "año", "ano"),
        "season": ("primavera", "verano", "otoño", "otono", "invierno"),
        "in": ("en ", "este", "esta", "desde", "hasta", "antes", "principios", "finales"),
        "feast": ("navidad", "nochevieja"),
    },
)  # fmt: skip


# Germans say "hier" of where they are.
_FRENCH_WORD = _any_case(
    r"\b(?:le|la|les|que|quoi|qui|quand|avons|avez|ai|nous|vous|je|il|est|dit|fait|pour|avec|dans|soir|matin)\b"
    r"|\b(?:j|qu|d)'"
)


def _yesterday_in_french(match: Match, today: dt.date) -> Span | None:
    return day(days_before(today, 1)) if _FRENCH_WORD.search(match.string) else None


@cache
def other_western_dates() -> tuple[HintedPattern, ...]:
    """Those of German, French and Spanish."""
    known = [each for language in (_GERMAN, _FRENCH, _SPANISH) for each in language.patterns()]
    return (*known, ((("hier",),), _any_case(r"\bhier\b"), _yesterday_in_french))
