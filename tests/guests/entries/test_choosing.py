"""Which entries somebody means who wants something forgotten."""

from __future__ import annotations

import pytest

from plainmind.guests.entries.entry_file import entries_meant, entries_that_say
from plainmind.guests.entries.model import Entry
from plainmind.text.note_format import format_note

TEA = Entry("01TEA", "Anna prefers  green Tea", "preference", 0.7, 0)
DOOR = Entry("01DOOR", "the code of the door is 4711", "fact", 0.7, 0)
ABOUT = Entry("01ABOUT", "01TEA is about tea", "other", 0.7, 0)
PHONE = Entry("01PHONE", "彼女の電話番号は4711", "fact", 0.7, 0)
ALL = (TEA, DOOR, ABOUT, PHONE)


@pytest.mark.parametrize(
    ("what", "meant"),
    [
        (" 01TEA ", [TEA]),
        ("tea green", [TEA]),
        ("TEA", [TEA, ABOUT]),
        ("door tea", []),
        ("green te", [TEA]),
        ("of th", [DOOR]),
        ("th of", []),
        ("oor ode", []),
        ("door: code!", [DOOR]),
        ("-> !", []),
        ("電話 番号", [PHONE]),
        ("郵便 番号", []),
        ("  ", []),
        ("", []),
    ],
)
def test_an_id_means_one_entry_and_words_all_that_have_them(what, meant):
    assert entries_meant(ALL, what) == meant


def test_a_part_of_a_word_is_not_the_word():
    shop = Entry("01SHOP", "This isn't the postcode of the outdoor shop", "fact", 0.7, 0)

    assert entries_meant([shop, DOOR], "the code of the door is") == [DOOR]


@pytest.mark.parametrize("clock_time", ["14:32", None])
def test_a_note_means_the_entry_that_says_the_same(clock_time):
    line = format_note("The code of the door is 4711", note_id="01JD3", clock_time=clock_time).rstrip("\n")

    assert entries_that_say(ALL, [line]) == [DOOR]


@pytest.mark.parametrize(
    "line", ["* Anna prefers green tea", "2. anna prefers green tea", "Anna prefers green tea"]
)
def test_marks_of_a_list_and_capitals_make_no_difference(line):
    assert entries_that_say(ALL, ["", line]) == [TEA]


@pytest.mark.parametrize("line", ["- tea", "- Anna prefers green tea, and milk", "-", "- <!-- m:01JD3 -->"])
def test_a_line_that_says_more_or_less_means_no_entry(line):
    assert entries_that_say(ALL, [line]) == []
