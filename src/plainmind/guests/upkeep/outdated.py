"""Superseded, stale and expiry: lines that a newer one contradicts, and lines that say until when they hold."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator

from plainmind.base.lazy import pattern
from plainmind.guests.upkeep.model import Cite, Edit, Proposal
from plainmind.guests.upkeep.survey import (
    Line,
    Survey,
    has_neutral_heading,
    is_about_something,
    is_to_do,
    without_day,
)
from plainmind.text.sentences import denied_parts, is_negated, names_of, numbers_of, same_words
from plainmind.text.terms import document_terms, fold, stem
from plainmind.text.validity import expiring, superseded

# --- superseded: a newer line contradicts; always a question, never an act ---


_LABEL = pattern(
    r"^\**(?P<label>[^:：=*]{2,60}?)\**\s?(?::\**\s|：\**\s?|\s=\s|\s(?:is|are|ist|sind|heißt|lautet)\s|[是为叫])\s*"
    r"(?P<value>\S.*)$"
)
# Words of a sentence that tells of a change. English, German, Chinese.
_CHANGE = pattern(
    r"\b(?:now|no longer|not any ?more|any more|anymore|instead|moved|switched|changed|renamed|replaced|replaces"
    r"|from now on|as of|since|quit|stopped|gave up|cancell?ed|dropped|back to"
    r"|jetzt|nun|nicht mehr|kein(?:e|en)? .{0,30}mehr|statt|anstelle|umgezogen|gewechselt|geändert|umbenannt|ersetzt"
    r"|ab sofort|ab (?:dem )?\d{4}-\d\d|from \d{4}-\d\d|seit|aufgehört|gekündigt|abgesagt|mittlerweile|inzwischen)\b"
    r"|现在|不再|改为|改成|改用|换成|换到|搬到|搬去|取消|从.{0,12}起|戒了|停用|升级到",
    re.IGNORECASE,
)
_TARGET = pattern(
    r"\b(?:moved|switched|changed|renamed|umgezogen|gewechselt|geändert|umbenannt)\b.{0,60}?\b(?:to|nach|zu"
    r"|auf|in)\s+(\w+)"
    r"|(?:改为|改成|改用|换成|换到|搬到|搬去|升级到)(\w{1,6})",
    re.IGNORECASE,
)
_INSTEAD = pattern(
    r"\b(?:instead of|rather than|no longer|statt|anstatt|anstelle von|nicht mehr)\s(.{1,20})|不再是?(.{1,8})",
    re.IGNORECASE,
)
# In notes about programs "now", "back" and "changed" are in every other line.
_TECHNICAL = pattern(r"`|\s[—–]\s|\$.*\$|→|->|://|✅|❌|#\d|:\d{4}|\.(?:md|py|ts|js|sh|json|ya?ml)\b")
_SPEAKER = pattern(r"(?:I|We|My|Our|Ich|Wir|Meine?[nrms]?|Unsere?[nrms]?)\b|我", re.IGNORECASE)
_VALUE_END = pattern(r"[,;，；(（]")
_COLON = pattern(r"[:：]")
_HAN = pattern(r"[\u4e00-\u9fff]")
_MOST_OCCASION = 40
_TELLS_NOTHING = ("?", "？", ":", "：", ":**")
_FULL_NAME = pattern(r"(?:(?:My|Our|Mein\w*|Unser\w*) \w+ )?(?P<first>[A-ZÄÖÜ]\w+) (?P<last>[A-ZÄÖÜ]\w+)")
_NO_NAME_HAN = frozenset(
    "是在的住有和不喜对会要去来从把用说现已也都每想买卖做负管开教带很能可被给将正刚还又只就今昨明上下最"
)
# A name of three characters, which begins with one of the names that most people have.
_HAN_NAME = pattern(
    "(?P<first>[王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾萧田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆"
    "范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万钱戴严莫孔向常汤][\u4e00-\u9fff])"
    f"(?P<last>(?![{''.join(sorted(_NO_NAME_HAN))}])[\u4e00-\u9fff])"
)
_PLACES = frozenset(
    """
    in at on with behind under beside near above by from for im am an auf bei beim hinter unter neben
    """.split()  # noqa: SIM905
)
_ARTICLES = frozenset({"the", "a", "an", "my", "our", "der", "die", "das", "ein", "eine", "mein", "unser"})
_DESCRIBED = pattern(r"\W{0,4}(?:\*\*[^*]+\*\*|`[^`]+`|\w[\w .-]{0,30}?)(?: ?\([^)]*\))?\s+(?:[—–=→]|-)\s")
_MOST_VALUES = 4  # of a label; one with more is a list of happenings
_LEAST_SHARED = 2
_LEAST_OF_NEW = 0.3  # a line that says much more is about something else
# Labels of things that happen again and again.
_EVENTS = frozenset(
    form
    for word in """
    cause problem solution fix fixed status result outcome summary context update issue verify verified lesson action
    decision impact blocker test tests practice example step phase
    todo note notes idea meeting call done standup lunch dinner breakfast bought read watched weather mood sleep run
    idee notiz besprechung erledigt gekauft gelesen wetter mittag schlaf 待办 想法 会议 笔记 天气 心情 午饭 睡眠
    """.split()  # noqa: SIM905
    for form in (word, stem(fold(word)))
)


def updates(survey: Survey) -> Iterator[Proposal]:
    """Durable lines that a newer line may have made untrue."""
    lines = [line for line in survey.lines if not line.is_task and not line.is_settled]
    seen: set[tuple[str, int]] = set()
    for old, new in (*_by_label(lines, survey), *_by_words(survey)):
        if old.is_log or old.is_record or (old.path, old.number) in seen or old.has_more:
            continue
        seen.add((old.path, old.number))
        yield superseded_proposal(old, new, survey)


def _by_label(lines: Iterable[Line], survey: Survey) -> Iterator[tuple[Line, Line]]:
    """Lines with the same label, of which the newest has another value."""
    groups: dict[tuple[str, frozenset[str]], list[tuple[Line, str]]] = {}
    for line in lines:
        for found in _labels(line.words):
            label = survey.terms(found["label"])
            if label and not label & _EVENTS and found["label"].strip().casefold() not in _EVENTS:
                groups.setdefault((line.scope, label), []).append((line, found["value"]))
    for (_, label), group in groups.items():
        values = {" ".join(given.casefold().split()) for _, given in group}
        if not 2 <= len(values) <= _MOST_VALUES:
            continue
        headings = {survey.terms(line.heading) for line, _ in group if not line.is_log}
        for old, value_of_old in group:
            newer = [
                line
                for line, given in group
                if is_newer(line, old, survey)
                and _differs(value_of_old, given, survey)
                and _are_comparable(old, line, value_of_old, given, survey)
                and _is_about_the_same(old, line, survey, is_clear=len(label) > 1 or len(headings) < 2)
            ]
            if newer:
                yield old, max(newer, key=lambda line: (line.day or "", line.number))


def _labels(words: str) -> Iterator[re.Match[str]]:
    """What a line says of what: its own label, and the one behind an occasion (`AGM: treasurer: Ada`)."""
    if (found := _LABEL.match(words)) is None:
        return
    yield found
    first, dot, rest = words.partition(". ")
    inner = rest if dot and len(first) <= _MOST_OCCASION else found["value"]
    if len(inner) < len(words) and (second := _LABEL.match(inner)) and _COLON.search(second[0]):
        yield second


def _is_about_the_same(old: Line, new: Line, survey: Survey, *, is_clear: bool) -> bool:
    """A label of one word means what its heading says; for a log it must stand under one heading alone."""
    if new.is_log and is_about_something(new) and not _shares_heading(old, new, survey):
        return False
    if is_clear:
        return True
    if old.is_log or new.is_log:
        return False
    neutral = has_neutral_heading(old) or has_neutral_heading(new)
    return neutral or survey.terms(old.heading) == survey.terms(new.heading)


def _shares_heading(old: Line, new: Line, survey: Survey) -> bool:
    """Whether a log's heading names something that the headings, the file or the words of the old line name too."""
    known = survey.terms(" ".join((*old.headings, old.path.removesuffix(".md"), old.words)))
    return bool(survey.terms(new.heading) & known)


def _by_words(survey: Survey) -> Iterator[tuple[Line, Line]]:
    """Sentences about the same thing, of which the newer tells of a change or says the opposite."""
    for one, other in survey.near:
        if one.scope != other.scope:
            continue
        for old, new in ((one, other), (other, one)):
            if old.is_log or not is_newer(new, old, survey):
                continue
            if says_otherwise(old, new, survey):
                yield old, new


def says_otherwise(old: Line, new: Line, survey: Survey, *, needs_cue: bool = True) -> bool:
    """Whether a line denies another one about the same thing, or has another value and tells of a change."""
    before, after = survey.terms(old.words), survey.terms(new.words)
    shared = len(before & after)
    if shared < _LEAST_SHARED or shared < _LEAST_OF_NEW * len(after) or not _may_deny(old, new, survey):
        return False
    if is_negated(old.words) != is_negated(new.words) and shared >= 0.6 * min(len(before), len(after)):
        return denies_something_of(old.words, after) or denies_something_of(new.words, before)
    target = _TARGET.search(new.words)
    if target and survey.terms(target[1] or target[2]) <= before:
        return False  # the older line says what it was changed to
    if _CHANGE.search(new.words):
        return bool(after - before) and (
            bool(before - after) or _takes_place_of(new.words, old.words, survey)
        )
    # Nobody says that something has changed: another number or name stands where the old one stood, and little else.
    return (
        not needs_cue
        and shared >= 0.6 * min(len(before), len(after))
        and bool(_values(old.words) - _values(new.words))
        and bool(_values(new.words) - _values(old.words))
    )


def _takes_place_of(new: str, old: str, survey: Survey) -> bool:
    """Whether a sentence names a number or a name of another one as what holds no longer: "68 instead of 62"."""
    found = _INSTEAD.search(new)
    return found is not None and bool(
        survey.terms(found[1] or found[2]) & {fold(each) for each in _values(old)}
    )


def _may_deny(old: Line, new: Line, survey: Survey) -> bool:
    """Whether a line is about the same thing and the same person as another one, and says something else of it."""
    if same_words(old.words, new.words) or is_another_person(old.words, new.words):
        return False
    if any(
        _DESCRIBED.match(line.words) or is_to_do(line.words) or _TECHNICAL.search(line.words)
        for line in (old, new)
    ):
        return False  # of a thing more than one description is true, and steps follow each other
    return _shares_subject(old.words, new.words, survey) and not _is_another_one(old.words, new.words)


def _is_another_one(old: str, new: str) -> bool:
    """Whether a name and a number both differ: the place in Rome at 30 euros is not the one in Linz at 40."""
    said, says = without_day(old), without_day(new)
    names, numbers = (names_of(said), names_of(says)), (set(numbers_of(said)), set(numbers_of(says)))
    return all(one - other and other - one for one, other in (names, numbers))


def denies_something_of(words: str, other: frozenset[str]) -> bool:
    """Whether what is denied is spoken of on the other side as well."""
    said = [set(document_terms(part)) for part in denied_parts(words)]
    return any(not terms or terms & other for terms in said)


def _values(words: str) -> set[str]:
    said = without_day(words)
    return names_of(said) | set(numbers_of(said))


def is_another_person(old: str, new: str) -> bool:
    """Whether a line is about somebody, and another one about somebody else with the same first name."""
    if found := _FULL_NAME.match(old):
        others = re.findall(rf"\b{re.escape(found['first'])} ([A-ZÄÖÜ]\w+)", new)
        return bool(others) and found["last"] not in others
    if found := _HAN_NAME.match(old):
        others = re.findall(rf"{found['first']}([\u4e00-\u9fff])", new)
        return bool(others) and found["last"] not in others and not _NO_NAME_HAN & set(others)
    return False


def _shares_subject(words: str, new: str, survey: Survey) -> bool:
    """Whether what a sentence begins with is in the other one too: a line about Ben says nothing about Ada."""
    after = survey.terms(new)
    label = _LABEL.match(words)
    if label and not survey.terms(label["label"]) <= after:
        return False  # the price for children is not the one for adults
    parts = words.split() if " " in words.strip() else [words[at : at + 2] for at in range(0, 8, 2)]
    own = survey.terms(words)  # an article alone tells nothing
    told = [terms for part in parts[:6] if (terms := survey.terms(part) & own)]
    if not told:
        return False
    if _SPEAKER.match(words):
        return any(terms & after for terms in told[:2])
    return bool(told[0] & after)


def is_newer(new: Line, old: Line, survey: Survey) -> bool:
    """Whether a line was said after another one, as far as that is known."""
    if new is old or new.words.endswith(_TELLS_NOTHING):
        return False
    if new.day is not None and old.day is not None:
        return new.day > old.day
    if (
        new.day is not None
    ):  # a file that was not touched since says nothing newer; who tells of a change knew the old
        return new.day > survey.by_path[old.path].changed_on or _CHANGE.search(new.words) is not None
    # Without any day: beneath each other in the same section, and the later one tells of a change.
    beneath = new.path == old.path and new.headings == old.headings and new.number > old.number
    listed = (
        old.is_item and new.is_item and not old.is_step
    )  # sentences of a text go on, and steps follow each other
    return beneath and listed and old.day is None and _CHANGE.search(new.words) is not None


def has_other_value(old: Line, new: Line, survey: Survey) -> bool:
    """Whether both have the same label, and the values differ."""
    before, after = _LABEL.match(old.words), _LABEL.match(new.words)
    if before is None or after is None or survey.terms(before["label"]) != survey.terms(after["label"]):
        return False
    old_value, new_value = before["value"], after["value"]
    return _differs(old_value, new_value, survey) and _are_comparable(old, new, old_value, new_value, survey)


def _are_comparable(old: Line, new: Line, was: str, now: str, survey: Survey) -> bool:
    """Whether two values answer the same question: a key that is behind the door may well be heavy."""
    if all(_COLON.search(line.words) or _HAN.search(line.words) for line in (old, new)):
        return True
    if _CHANGE.search(new.words) or survey.terms(was) & survey.terms(now):
        return True
    return _sort_of(was) == _sort_of(now)


def _sort_of(given: str) -> str:
    first = given.split(maxsplit=1)[0].strip("*_`\"'(")
    if first[:1].isdigit() or first[:1].isupper():
        return "a number or a name"
    return "a place" if first.casefold() in _PLACES else f"a thing, {first.casefold() in _ARTICLES}"


def _differs(old: str, new: str, survey: Survey) -> bool:
    """Whether a value is another one, and not the same with more or fewer words around it."""
    before, after = survey.terms(old), survey.terms(new)
    if is_negated(old) != is_negated(new):
        return True
    if before - after and after - before:
        return True
    # "Ada, Ben has left": the new value stands first, and what it was is told behind it.
    first, last = (survey.terms(_VALUE_END.split(given, maxsplit=1)[0]) for given in (old, new))
    return bool(first - last) and bool(last - before)


def superseded_proposal(old: Line, new: Line, survey: Survey) -> Proposal:
    """Ask whether a line is no longer true."""
    until = new.day or survey.today
    said = f" of {new.day}" if new.day else ""
    return Proposal(
        "superseded",
        (Cite(old.path, old.number, old.text), Cite(new.path, new.number, new.text)),
        (
            Edit(
                old.path,
                old.number,
                (old.text,),
                (superseded(old.text, until=until, path=new.path, number=new.number),),
            ),
        ),
        f"{new}{said} says otherwise; is this one no longer true?",
    )


# --- stale and expiry: until when a line holds, in its own words ---


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
            yield _end_proposal(
                "stale",
                line,
                end,
                f"it was over on {end}; marked so, it stays in the file and is out of recall",
            )
        elif over < 0 and is_said:
            yield _end_proposal(
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


def _end_proposal(kind: str, line: Line, end: dt.date, reason: str) -> Proposal:
    new = expiring(line.text, until=end.isoformat())
    return Proposal(
        kind,
        (Cite(line.path, line.number, line.text),),
        (Edit(line.path, line.number, (line.text,), (new,)),),
        reason,
    )
