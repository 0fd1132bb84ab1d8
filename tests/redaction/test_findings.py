from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from plainmind.redaction.findings import settle
from plainmind.redaction.page import Page


def test_what_overlaps_is_joined_and_takes_the_kind_of_the_first_scan():
    first = [(10, 20, "sure")]
    second = [(0, 5, "maybe"), (5, 12, "maybe"), (18, 30, "maybe"), (40, 41, "maybe")]

    assert settle([first, second], []) == [(0, 5, "maybe"), (5, 30, "sure"), (40, 41, "maybe")]
    assert settle([second, first], []) == [(0, 5, "maybe"), (5, 30, "maybe"), (40, 41, "maybe")]


def test_what_touches_a_taken_place_is_left_out():
    found = [(0, 5, "a"), (8, 12, "a"), (20, 25, "a"), (30, 35, "a"), (50, 60, "a")]

    assert settle([found], [(5, 8), (11, 13), (24, 26), (31, 33)]) == [(0, 5, "a"), (50, 60, "a")]


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)).map(lambda pair: (pair[0], sum(pair), "x")))


@given(SPANS, SPANS)
def test_every_reported_character_is_covered_exactly_once(first, second):
    found = settle([first, second], [])
    covered = [at for start, end, _ in found for at in range(start, end)]

    assert covered == sorted({at for start, end, _ in [*first, *second] for at in range(start, end)})


@given(st.text(st.sampled_from("aZ9_.- \n+é中\ud800"), max_size=200), st.integers(0, 60))
def test_a_stretch_begins_where_twenty_letters_digits_or_joints_follow_each_other(text, more):
    text += "b" * more
    page = Page(text)
    found = re.finditer(r"(?<![A-Za-z0-9_.-])[A-Za-z0-9_.-]{20,}", page.text)

    assert page.stretches == [stretch.start() for stretch in found]
