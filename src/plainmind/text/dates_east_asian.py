"""How Chinese, Japanese and Korean name days, most specific first.

A weekday alone is the last one before today; 上周五 and 先週の金曜日 are of the calendar week before this one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from plainmind.base.lazy import pattern
from plainmind.text.spans import (
    Either,
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
    recent_months,
    recent_season,
    rolling,
    weekday_before,
    weekday_of_week,
    weekend_before,
    year_span,
)

_DIGITS = {"一": 1, "二": 2, "两": 2, "兩": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_WEEKDAYS = {
    name: number
    for number, names in enumerate(("一月월", "二火화", "三水수", "四木목", "五金금", "六土토", "日天일"))
    for name in names
}
_UNITS = {
    "天": "day",
    "日": "day",
    "일": "day",
    "周": "week",
    "週": "week",
    "星": "week",
    "礼": "week",
    "禮": "week",
}
_UNITS |= {"주": "week", "月": "month", "개": "month", "달": "month", "年": "year", "년": "year"}
_YEARS_BACK = {
    "今年": 0,
    "올해": 0,
    "去年": 1,
    "昨年": 1,
    "작년": 1,
    "지난해": 1,
    "前年": 2,
    "一昨年": 2,
    "재작년": 2,
}
_DAYS_BACK = {
    **dict.fromkeys(("明天", "明日", "あした", "내일"), -1),
    **dict.fromkeys(("今天", "今日", "今晚", "今夜", "今早", "今朝", "오늘"), 0),
    **dict.fromkeys(("昨天", "昨日", "昨晚", "昨夜", "きのう", "어제", "어젯밤"), 1),
    **dict.fromkeys(("前天", "一昨日", "おととい", "그저께", "그제", "엊그제"), 2),
    **dict.fromkeys(("大前天", "그끄저께"), 3),
}
# Korean counts its days by names of their own.
_DAYS_IN_KOREAN = {"하루": 1, "이틀": 2, "사흘": 3, "나흘": 4, "닷새": 5, "엿새": 6, "이레": 7, "열흘": 10}
_COUNTS_IN_KOREAN = {"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일": 1}
_SEASONS = {**dict.fromkeys("春봄", 3), "夏": 6, "여름": 6, "秋": 9, "가을": 9, "冬": 12, "겨울": 12}
_PERIODS_BACK = {
    **dict.fromkeys(
        ("上周", "上週", "上星期", "上个星期", "上個星期", "上礼拜", "上个礼拜", "上禮拜"), ("week", 1)
    ),
    **dict.fromkeys(("先週", "지난주", "지난 주", "저번 주", "저번주"), ("week", 1)),
    **dict.fromkeys(("上上周", "上上週", "先々週", "지지난주", "지지난 주"), ("week", 2)),
    **dict.fromkeys(("下周", "下週", "下星期", "下个星期", "来週", "다음 주", "다음주"), ("week", -1)),
    **dict.fromkeys(
        ("本周", "本週", "这周", "這週", "这个星期", "這個星期", "今週", "이번 주", "이번주"), ("week", 0)
    ),
    **dict.fromkeys(("上个月", "上個月", "上月", "先月", "지난달", "지난 달", "저번 달"), ("month", 1)),
    **dict.fromkeys(("上上个月", "上上個月", "先々月"), ("month", 2)),
    **dict.fromkeys(("本月", "这个月", "這個月", "今月", "이번 달", "이번달"), ("month", 0)),
    **dict.fromkeys(("下个月", "下個月", "来月", "다음 달", "다음달"), ("month", -1)),
}

_NUMBER = r"(?P<count>\d{1,4}|[一二两兩三四五六七八九十]{1,3})"
_MONTH = r"(?P<month>\d{1,2}|[一二三四五六七八九十]{1,2})\s*[月월]"
_DAY = r"(?P<day>\d{1,2})\s*[日号號일]"
_UNIT = (
    r"(?:个|個|か|ヶ|ケ|カ|箇)?"
    r"(?P<unit>天|日|일|周|週間?|星期|礼拜|禮拜|주일?|(?<=[个個かヶケカ箇])月|개월|달|年|년)(?:间|間|간)?"
)


def _one_of(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


def _number(words: str) -> int:
    """Read 12 or 十二; raises ValueError for what is no number."""
    if words.isdecimal():
        return int(words)
    tens, ten, ones = words.rpartition("十")
    if any(digits and digits not in _DIGITS for digits in (tens, ones)):
        raise ValueError(words)
    return (_DIGITS.get(tens, 1) * 10 if ten else 0) + _DIGITS.get(ones, 0)


def _date(match: Match, _today: dt.date) -> Span:
    return day(dt.date(int(match["year"]), _number(match["month"]), int(match["day"])))


def _month_of_year(match: Match, _today: dt.date) -> Span | None:
    return _whole_month(int(match["year"]), match)


def _in_a_year_by_name(match: Match, today: dt.date) -> Span | None:
    year = today.year - _YEARS_BACK[match["name"]]
    if match["day"]:
        return day(dt.date(year, _number(match["month"]), int(match["day"])))
    return _whole_month(year, match)


def _whole_month(year: int, match: Match) -> Span | None:
    month = _number(match["month"])
    return months(year, month) if 1 <= month <= 12 else None


def _day_of_month(match: Match, today: dt.date) -> Span | None:
    return recent_day(today, _number(match["month"]), int(match["day"]))


def _recent_month(match: Match, today: dt.date) -> Span | None:
    month = _number(match["month"])
    return recent_months(today, month, 1, over=False) if 1 <= month <= 12 else None


def _ago(match: Match, today: dt.date) -> Span:
    return ago(today, _number(match["count"]), _UNITS[match["unit"][0]])


def _rolling(match: Match, today: dt.date) -> Span:
    return rolling(today, _number(match["count"]), _UNITS[match["unit"][0]])


def _weekday(match: Match, today: dt.date) -> Span:
    which = match["which"]
    weeks_back = 2 if which[:2] in {"上上", "先々", "지지"} else 1 if which[0] in "上先지" else 0
    return weekday_of_week(today, _WEEKDAYS[match["weekday"]], -1 if which[0] in "下来다" else weeks_back)


def _last_weekday(match: Match, today: dt.date) -> Span | None:
    if match["every"]:
        return None  # what happens every week happens on no day
    return weekday_before(today, _WEEKDAYS[match["weekday"]])


def _ago_in_korean(match: Match, today: dt.date) -> Span:
    if match["days"]:
        return ago(today, _DAYS_IN_KOREAN[match["days"]], "day")
    return ago(today, _COUNTS_IN_KOREAN[match["count"]], _UNITS[match["unit"][0]])


def _day_of_named_month(match: Match, today: dt.date) -> Span:
    return day_of_month(today, _number(match["day"]), 1 if match["which"][0] in "先上지" else 0)


def _season(match: Match, today: dt.date) -> Span | Either:
    first, name = _SEASONS[match["season"]], match["name"]
    if name in _YEARS_BACK:
        return months(today.year - _YEARS_BACK[name], first, 3)
    if name is not None or match["this"]:
        return recent_months(today, first, 3, over=name is not None)
    return recent_season(today, first)


def _period(match: Match, today: dt.date) -> Span:
    unit, periods_back = _PERIODS_BACK[match[0]]
    return calendar_span(unit, today, periods_back)


_A_YEAR = ("年", "년")
_A_MONTH = ("月", "월")

EAST_ASIAN_DATES: tuple[HintedPattern, ...] = tuple(
    (hints, pattern(source), resolve)
    for hints, source, resolve in (
        ((_A_YEAR, _A_MONTH), rf"(?<!\d)(?P<year>\d{{4}})\s*[年년]\s*{_MONTH}\s*{_DAY}", _date),
        ((_A_YEAR, _A_MONTH), rf"(?<!\d)(?P<year>\d{{4}})\s*[年년]\s*{_MONTH}", _month_of_year),
        (
            (tuple(_YEARS_BACK), _A_MONTH),
            rf"(?P<name>{_one_of(_YEARS_BACK)})[的の]?\s*{_MONTH}(?:\s*{_DAY})?",
            _in_a_year_by_name,
        ),
        ((_A_MONTH,), rf"(?<!\d){_MONTH}\s*{_DAY}", _day_of_month),
        (
            (("月", "달"), ("日", "号", "號", "일")),
            (
                r"(?P<which>今月|本月|这个月|這個月|이번\s?달|先月|上个月|上個月|上月|지난\s?달)[の的]?\s*"
                r"(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3})\s*[日号號일]"
            ),
            _day_of_named_month,
        ),
        ((("前", "전"),), rf"{_NUMBER}\s*{_UNIT}\s*(?:以?前|之前|전)", _ago),
        (
            (("近", "过去", "過去", "ここ", "この", "지난", "최근"),),
            rf"(?:最近|过去|過去|近|ここ|この|지난|최근)\s*{_NUMBER}\s*{_UNIT}",
            _rolling,
        ),
        (
            (("전",),),
            rf"(?:(?P<days>{_one_of(_DAYS_IN_KOREAN)})|(?P<count>{_one_of(_COUNTS_IN_KOREAN)})\s?(?P<unit>주일?|달|개월))\s?전",
            _ago_in_korean,
        ),
        (
            (("周", "週", "星期", "礼拜", "禮拜"),),
            r"(?P<which>上上?|[这這本下])[个個]?(?:周|週|星期|礼拜|禮拜)(?P<weekday>[一二三四五六日天])",
            _weekday,
        ),
        (
            (("週", "주"),),
            (
                r"(?P<which>先々週|先週|今週|来週|지지난\s?주|지난\s?주|이번\s?주|다음\s?주)の?\s*"
                r"(?P<weekday>[月火水木金土日월화수목금토일])(?:曜日?|요일)"
            ),
            _weekday,
        ),
        (
            (("周", "週", "星期", "礼拜", "禮拜"),),
            r"(?P<every>[每毎]个?)?(?:周|週|星期|礼拜|禮拜)(?P<weekday>[一二三四五六日天])",
            _last_weekday,
        ),
        (
            (("曜", "요일"),),
            r"(?:(?P<every>毎週|毎|매주)の?\s*)?(?:지난\s?)?(?P<weekday>[月火水木金土日월화수목금토일])(?:曜日?|요일)(?P<habit>마다)?",
            lambda match, today: None if match["habit"] else _last_weekday(match, today),
        ),
        (
            (("周末", "週末", "주말"),),
            r"上个?周末|上個?週末|先週末|지난\s?주말",
            lambda _, today: weekend_before(today),
        ),
        (
            (("周末", "週末", "주말"),),
            r"(?<![每毎])(?<!매)(?:周末|週末|주말)",
            lambda _, today: weekend_before(today, or_now=True),
        ),
        (
            (("几天", "幾天", "数日", "先日", "며칠"),),
            r"[前这這][几幾]天|[几幾]天前|ここ数日|数日前|先日|며칠\s?전|요\s?며칠",
            lambda _, today: rolling(today, 7, "day"),
        ),
        (
            (tuple(_SEASONS),),
            (
                rf"(?:(?P<name>{_one_of(_YEARS_BACK)}|지난|上一?个?)[的の]?\s?|(?P<this>この|这个?|這個?|이번\s?))?"
                rf"(?P<season>{_one_of(_SEASONS)})"
                r"(?:天|季|に|の間|에|(?<=[봄름을울])(?!\w))"
            ),
            _season,
        ),
        # 目前天气 ("the weather at present") does not say 前天.
        (
            (tuple(_DAYS_BACK),),
            rf"{_one_of(_DAYS_BACK)}".replace("|前天", "|(?<![目以之午])前天"),
            lambda match, today: day(days_before(today, _DAYS_BACK[match[0]])),
        ),
        ((tuple(_PERIODS_BACK),), _one_of(_PERIODS_BACK), _period),
        ((_A_YEAR,), r"(?<!\d)(?P<year>\d{4})\s*[年년]", lambda match, _: year_span(int(match["year"]))),
        (
            (tuple(_YEARS_BACK),),
            _one_of(_YEARS_BACK),
            lambda match, today: year_span(today.year - _YEARS_BACK[match[0]]),
        ),
        ((_A_MONTH,), rf"(?<![\d个個]){_MONTH}", _recent_month),
    )
)
