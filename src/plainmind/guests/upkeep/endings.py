"""Stale and expiry: lines that say in words until when they hold, over by now or not yet."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator

from plainmind.base.lazy import pattern
from plainmind.guests.upkeep.model import Cite, Edit, Proposal
from plainmind.guests.upkeep.survey import Line, Survey
from plainmind.text.validity import expiring

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner",
            "february feb februar",
            "march mar märz mrz",
            "april apr",
            "may mai",
            "june jun juni",
            "july jul juli",
            "august aug",
            "september sep sept",
            "october oct oktober okt",
            "november nov",
            "december dec dezember dez",
        ),
        1,
    )
    for name in names.split()
}
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday montag 一",
            "tuesday dienstag 二",
            "wednesday mittwoch 三",
            "thursday donnerstag 四",
            "friday freitag 五",
            "saturday samstag 六",
            "sunday sonntag 日 天",
        )
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATE = (
    r"(?:(?P<iso>\d{4}-\d{2}-\d{2})"
    rf"|(?P<d1>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s)?(?P<m1>{_MONTH})\.?(?:,?\s(?P<y1>\d{{4}}))?(?!\w)"
    rf"|(?P<m2>{_MONTH})\.?\s(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s(?P<y2>\d{{4}}))?(?!\w)"
    r"|(?P<d3>\d{1,2})\.(?P<m3>\d{1,2})\.(?P<y3>\d{4})?"
    r"|(?:(?P<y4>\d{4})年)?(?P<m4>\d{1,2})月(?P<d4>\d{1,2})[日号]?)"
)
_NAMED_DAY = (
    r"(?P<weekday>(?:next |nächsten |kommenden |下)?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    r"|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|(?:周|星期|礼拜)[一二三四五六日天]))"
)
_UNTIL = pattern(
    r"(?:\b(?:until|till|valid (?:until|to|through)|expires?(?: on)?|good until|ends? on|closed until|due(?: on| by)?"
    r"|deadline(?: is)?:?|no later than|bis(?: zum| einschließlich)?|gültig bis|läuft am|frist:?|spätestens(?: am)?)\s"
    r"|截止(?:到|日期[是为:：]?)?\s?|有效期[至到]\s?|到期日[是为:：]?\s?|直到\s?)"
    rf"(?:{_DATE}|{_NAMED_DAY})",
    re.IGNORECASE,
)
# A day by which something is over, in Chinese behind the date.
_BEFORE = pattern(rf"{_DATE}\s?(?:之?前|为止|到期|截止)")
_RELATIVE = pattern(
    r"(?<!\w)(?P<tomorrow>(?:until |by )?tomorrow|(?:bis )?morgen(?! früh aufsteh)(?!s|stund)|明天)(?!\w)"
    r"|(?<!\w)(?P<today>(?:later )?today|tonight|heute(?: abend)?|今天|今晚)(?!\w)"
    r"|(?<!\w)(?P<week>next week|nächste woche|下周(?![一二三四五六日天])|下个?星期)"
    r"|(?<!\w)(?P<this>this week|diese woche|这周|本周)"
    rf"|(?<!\w)(?:(?:on|this|am|by)\s)(?P<on>{_NAMED_DAY})",
)
_RANGE = pattern(
    rf"(?:{_MONTH}|\d\.?|\d{{4}}|[日号])\s*$", re.IGNORECASE
)  # a day before "until" begins a span of days
_HABIT = pattern(
    r"\b(?:every|each|always|usually|never|daily|weekly|jede[nrsm]?|immer|täglich|wöchentlich|meist|nie)\b|[每常总]|从不",
    re.IGNORECASE,
)
_OVER_FOR_DAYS = 2  # a line of yesterday is not stale yet


def endings(survey: Survey) -> Iterator[Proposal]:
    """Durable lines that name their end in words: put into the form that search understands."""
    today = dt.date.fromisoformat(survey.today)
    for line in survey.durable:
        if line.is_settled or line.is_record or line.has_more:
            continue
        end, is_said = _end_of(line, today)
        if end is None:
            continue
        over = (today - end).days
        if over >= _OVER_FOR_DAYS:
            yield _proposal(
                "stale",
                line,
                end,
                f"it was over on {end}; marked so, it stays in the file and is out of recall",
            )
        elif over < 0 and is_said:
            yield _proposal(
                "expiry",
                line,
                end,
                f"it says itself that it holds until {end}; marked so, it is out of recall from then on",
            )


def _end_of(line: Line, today: dt.date) -> tuple[dt.date | None, bool]:
    """The last day on which a line holds, and whether the line calls it an end."""
    said = dt.date.fromisoformat(line.day) if line.day else None
    found = _UNTIL.search(line.words) or _BEFORE.search(line.words)
    if found is not None and not _RANGE.search(line.words[: found.start()]):
        weekday = found.groupdict().get("weekday")
        if weekday:
            return (_next_weekday(weekday, said) if said and not _HABIT.search(line.words) else None), True
        return _date(found, said or today), True
    if said is None or not line.is_dated or _HABIT.search(line.words):
        return None, False  # below a day of its own, "today" is told of that day
    relative = _RELATIVE.search(_small_first(line.words))
    return (None if relative is None else _relative_end(relative, said)), False


def _small_first(words: str) -> str:
    """A sentence may begin with a capital; inside of one, a German `Morgen` is a morning."""
    return words[:1].lower() + words[1:]


def _relative_end(found: re.Match[str], said: dt.date) -> dt.date:
    if found["tomorrow"]:
        return said + dt.timedelta(days=1)
    if found["today"]:
        return said
    if found["week"]:
        return said + dt.timedelta(days=13 - said.weekday())
    if found["this"]:
        return said + dt.timedelta(days=6 - said.weekday())
    return _next_weekday(found["on"], said)


def _next_weekday(named: str, said: dt.date) -> dt.date:
    """The next such day after one on which it was named."""
    folded = named.casefold()
    number = next(at for name, at in _WEEKDAYS.items() if folded.endswith(name))
    ahead = (number - said.weekday() - 1) % 7 + 1
    return said + dt.timedelta(days=ahead)


def _date(found: re.Match[str], near: dt.date) -> dt.date | None:
    """The day that is named; without a year the next such day from when it was said."""
    parts = found.groupdict()
    try:
        if parts["iso"]:
            return dt.date.fromisoformat(parts["iso"])
        at = next(number for number in "1234" if parts[f"d{number}"])
        month = parts[f"m{at}"]
        number = int(month) if month.isdigit() else _MONTHS[month.casefold()]
        day, year = int(parts[f"d{at}"]), parts[f"y{at}"]
        if year:
            return dt.date(int(year), number, day)
        first = dt.date(near.year, number, day)
        return first if first >= near else dt.date(near.year + 1, number, day)
    except ValueError:
        return None  # no calendar has it


def _proposal(kind: str, line: Line, end: dt.date, reason: str) -> Proposal:
    new = expiring(line.text, until=end.isoformat())
    return Proposal(
        kind,
        (Cite(line.path, line.number, line.text),),
        (Edit(line.path, line.number, (line.text,), (new,)),),
        reason,
    )
