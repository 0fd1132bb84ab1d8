import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.text.terms import DayRange, mentioned_days

TODAY = dt.date(2026, 11, 15)  # a Sunday


def spans(query, today=TODAY):
    return [(found.first.isoformat(), found.last.isoformat()) for found in mentioned_days(query, today)]


ONE_DAY = {
    "what happened on 2026-02-10?": "2026-02-10",
    "memory/2026-02-10-plan.md": "2026-02-10",
    "2026/2/10": "2026-02-10",
    "2026.02.10": "2026-02-10",
    "10 February 2026": "2026-02-10",
    "the 10th of feb, 2025": "2025-02-10",
    "Feb 10th": "2026-02-10",
    "Dec. 5": "2025-12-05",
    "march 5": "2026-03-05",
    "May the 4th": "2026-05-04",
    "February 29": "2024-02-29",
    "2/10/2026": "2026-02-10",
    "25/10/2026": "2026-10-25",
    "10.2.2026": "2026-02-10",
    "2.25.2026": "2026-02-25",
    "yesterday": "2026-11-14",
    "last night": "2026-11-14",
    "the day before yesterday": "2026-11-13",
    "Today": "2026-11-15",
    "this morning": "2026-11-15",
    "3 days ago": "2026-11-12",
    "a day ago": "2026-11-14",
    "a couple of days ago": "2026-11-13",
    "last Friday": "2026-11-13",
    "last sunday": "2026-11-08",
    "on Sunday": "2026-11-08",
    "on Monday": "2026-11-09",
    "on Thurs": "2026-11-12",
    "昨天": "2026-11-14",
    "昨日の会議": "2026-11-14",
    "前天": "2026-11-13",
    "大前天": "2026-11-12",
    "一昨日": "2026-11-13",
    "今天": "2026-11-15",
    "三天前": "2026-11-12",
    "十二天前": "2026-11-03",
    "二十天前": "2026-10-26",
    "5日前": "2026-11-10",
    "2026年2月10日": "2026-02-10",
    "２０２６年２月１０日": "2026-02-10",
    "2026년 2월 10일": "2026-02-10",
    "3月5日": "2026-03-05",
    "12月5号": "2025-12-05",
    "去年3月5日": "2025-03-05",
    "上周五": "2026-11-06",
    "这周一": "2026-11-09",
    "先週の金曜日": "2026-11-06",
    "지난주 금요일": "2026-11-06",
    "어제": "2026-11-14",
    "오늘": "2026-11-15",
    "3일 전": "2026-11-12",
}

SEVERAL_DAYS = {
    "February 2026": ("2026-02-01", "2026-02-28"),
    "Sept. of 2025": ("2025-09-01", "2025-09-30"),
    "2024-02": ("2024-02-01", "2024-02-29"),
    "in May": ("2026-05-01", "2026-05-31"),
    "in may": ("2026-05-01", "2026-05-31"),
    "in late dec": ("2025-12-01", "2025-12-31"),
    "in November": ("2026-11-01", "2026-11-30"),
    "the May trip": ("2026-05-01", "2026-05-31"),
    "our june plans": ("2026-06-01", "2026-06-30"),
    "last March": ("2026-03-01", "2026-03-31"),
    "last november": ("2025-11-01", "2025-11-30"),
    "since last March": ("2026-03-01", "2026-11-15"),
    "since may": ("2026-05-01", "2026-11-15"),
    "since 2023": ("2023-01-01", "2026-11-15"),
    "two weeks ago": ("2026-10-29", "2026-11-04"),
    "a fortnight ago": ("2026-10-29", "2026-11-04"),
    "two months ago": ("2026-09-01", "2026-09-30"),
    "three years ago": ("2023-01-01", "2023-12-31"),
    "last week": ("2026-11-02", "2026-11-08"),
    "this week": ("2026-11-09", "2026-11-15"),
    "last weekend": ("2026-11-07", "2026-11-08"),
    "last month": ("2026-10-01", "2026-10-31"),
    "last quarter": ("2026-07-01", "2026-09-30"),
    "last year": ("2025-01-01", "2025-12-31"),
    "in 2023": ("2023-01-01", "2023-12-31"),
    "last spring": ("2026-03-01", "2026-05-31"),
    "last summer": ("2026-06-01", "2026-08-31"),
    "last autumn": ("2025-09-01", "2025-11-30"),
    "this fall": ("2026-09-01", "2026-11-30"),
    "last winter": ("2025-12-01", "2026-02-28"),
    "winter of 2023": ("2023-12-01", "2024-02-29"),
    "Q3 2025": ("2025-07-01", "2025-09-30"),
    "2025 Q3": ("2025-07-01", "2025-09-30"),
    "in Q2": ("2026-04-01", "2026-06-30"),
    "the past 10 days": ("2026-11-05", "2026-11-15"),
    "the past week": ("2026-11-08", "2026-11-15"),
    "上周": ("2026-11-02", "2026-11-08"),
    "上个月": ("2026-10-01", "2026-10-31"),
    "去年": ("2025-01-01", "2025-12-31"),
    "2025年": ("2025-01-01", "2025-12-31"),
    "2025年3月": ("2025-03-01", "2025-03-31"),
    "去年三月": ("2025-03-01", "2025-03-31"),
    "十二月": ("2025-12-01", "2025-12-31"),
    "两周前": ("2026-10-29", "2026-11-04"),
    "3个月前": ("2026-08-01", "2026-08-31"),
    "最近七天": ("2026-11-08", "2026-11-15"),
    "上周末": ("2026-11-07", "2026-11-08"),
    "先週": ("2026-11-02", "2026-11-08"),
    "先月": ("2026-10-01", "2026-10-31"),
    "3か月前": ("2026-08-01", "2026-08-31"),
    "지난주": ("2026-11-02", "2026-11-08"),
    "지난달": ("2026-10-01", "2026-10-31"),
    "작년": ("2025-01-01", "2025-12-31"),
    "2주 전": ("2026-10-29", "2026-11-04"),
}

NOTHING = [
    "", "we may march on", "May I ask", "this may help", "march to the sea", "2026-02-30", "Feb 30",
    "31 April", "13/13/2026", "2024-25", "2026-13", "99999 days ago", "9999 years ago", "9999 days",
    "0000-01-01", "目前天气", "十三月", "2026年13月", "去年13月", "一二天前", "10.0.0.7",
    "v1.2.2026.3", "sat on a mat", "room 2023", "2 days",
]  # fmt: skip


@pytest.mark.parametrize("query", ONE_DAY)
def test_a_day_is_understood(query):
    assert spans(query) == [(ONE_DAY[query], ONE_DAY[query])]


@pytest.mark.parametrize("query", SEVERAL_DAYS)
def test_several_days_are_understood(query):
    assert spans(query) == [SEVERAL_DAYS[query]]


@pytest.mark.parametrize("query", NOTHING)
def test_what_names_no_day_gives_none(query):
    assert spans(query) == []


def test_several_mentions_come_in_the_order_of_the_query_with_their_words():
    found = mentioned_days("was it 昨天, in May or on June 3rd, 2025?", TODAY)
    assert found == (
        DayRange(dt.date(2026, 11, 14), dt.date(2026, 11, 14), "昨天"),
        DayRange(dt.date(2026, 5, 1), dt.date(2026, 5, 31), "in May"),
        DayRange(dt.date(2025, 6, 3), dt.date(2025, 6, 3), "June 3rd, 2025"),
    )


def test_in_a_month_that_has_not_come_this_year_means_last_year():
    assert spans("in May", dt.date(2026, 4, 30)) == [("2025-05-01", "2025-05-31")]


def test_last_winter_during_a_winter_is_the_one_before():
    assert spans("last winter", dt.date(2026, 1, 10)) == [("2024-12-01", "2025-02-28")]


PHRASES = st.lists(
    st.one_of(
        st.sampled_from([*ONE_DAY, *SEVERAL_DAYS, *NOTHING, "since", "last", "ago", "years", "十", "월"]),
        st.text(max_size=8),
        st.integers(0, 99999).map(str),
    ),
    max_size=8,
).map(" ".join)


@given(PHRASES, st.dates())
def test_no_query_on_no_day_raises_and_ranges_are_in_order(query, today):
    for found in mentioned_days(query, today):
        assert found.first <= found.last


def test_a_very_long_query_is_read_only_at_its_beginning():
    assert spans("yesterday " + "x 1 " * 200_000 + "today") == [("2026-11-14", "2026-11-14")]
