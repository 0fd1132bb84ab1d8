"""Where something made up stands in a page: stretch after stretch gets the answer that each would get alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redaction.test_hostile_texts import BEGINNINGS, SHAPES, WORDS

from plainmind.redaction.page import Page
from plainmind.redaction.plausible import (
    MADE_UP,
    NOTHING,
    QUOTATION,
    Stretches,
    has_made_up,
    has_quotation,
)

PIECES = [
    *"aAzqX09_. :/=\"'!#-é中ß²\n",
    "kettle613x", "correct-horse-battery-staple", "scrmbldwqx", "abcd efgh ijkl mnop", "house", "garden/lake", " ",
    "www.example.org/garden", "A" * 9, "word " * 3, "18:30", "2026-01-02", "x" * 300, "#!a", "a?", "utf-8",
    '"house"', "'garden lake", "#=a", "#*a", "abcd 1234 ", "efgh ", "we met and talked about the house by the lake ",
]  # fmt: skip


def alone(page, start, end):
    text = page.text[start:end]
    low = text.lower()
    if has_made_up(text, low, 0, len(text)):
        return MADE_UP
    return QUOTATION if has_quotation(low, 0, len(text)) else NOTHING


def stretches_of(page):
    """One that has looked at so many that it no longer looks at each alone."""
    stretches = Stretches(page)
    for _ in range(100):
        stretches.what_is_in(0, min(4, len(page.text)))
    return stretches


def passed_over(text, wanted):
    """Stretches that alone would have more in them than is said of them."""
    page = Page(text)
    stretches = stretches_of(page)
    found = []
    for start, end in wanted:
        clear, until = stretches.clear
        is_clear = clear <= start and end <= until
        if (NOTHING if is_clear else stretches.what_is_in(start, end)) < alone(page, start, end):
            found.append((start, end, is_clear))
    return found


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=60).map("".join),
    st.integers(1, 9),
    st.integers(5, 80),
)
def test_nothing_made_up_is_passed_over(text, step, length):
    last = len(Page(text).text)
    stretches = [(at, min(at + length, last)) for at in range(0, last, step)]

    assert passed_over(text, stretches) == []
    assert passed_over(text, stretches[::3] + stretches) == []


@pytest.mark.parametrize("parts", [SHAPES, WORDS + BEGINNINGS, PIECES], ids=["shapes", "words", "pieces"])
def test_nothing_made_up_is_passed_over_in_a_long_text(parts):
    rng = random.Random("stretches")
    for joint in ("", " "):
        text = joint.join(rng.choices(parts, k=3_000))[:20_000]
        places = sorted(rng.randrange(len(text) - 300) for _ in range(1_500))

        assert passed_over(text, [(at, at + 256) for at in places]) == []


@pytest.mark.parametrize(
    "words", ["a some same sane sanest ", "garden kettlewqxvbn house ", "wqxvbnkettle garden "]
)
def test_what_the_edge_of_a_stretch_makes_of_a_word_counts(words):
    text = words * 100
    stretches = [(at, at + 30) for at in range(len(text) - 30)]

    assert any(alone(Page(text), *one) == MADE_UP for one in stretches)
    assert passed_over(text, stretches) == []


def test_what_stands_in_plain_words_is_known_before_it_is_asked():
    stretches = stretches_of(
        Page("We met on Monday, and talked about the 3 houses by the lake at 18:30.\n" * 50)
    )
    asked = 0
    for at in range(0, 3_000, 20):
        clear, until = stretches.clear
        if not clear <= at <= at + 100 <= until:
            asked += 1
            assert stretches.what_is_in(at, at + 100) == NOTHING

    assert asked < 15
