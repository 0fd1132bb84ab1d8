"""Where something made up stands in a page: stretch after stretch gets the answer that each would get alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redaction.test_hostile_texts import BEGINNINGS, SHAPES, WORDS

from plainmind.redaction.page import Page
from plainmind.redaction.plausible import MadeUp, has_made_up

PIECES = [
    *"aAzqX09_. :/=\"'!#-é中ß²\n",
    "kettle613x", "correct-horse-battery-staple", "scrmbldwqx", "abcd efgh ijkl mnop", "house", "garden/lake", " ",
    "www.example.org/garden", "A" * 9, "word " * 3, "18:30", "2026-01-02", "x" * 300, "#!a", "a?", "utf-8",
]  # fmt: skip


def alone(page, start, end):
    text = page.text[start:end]
    return has_made_up(text, text.lower(), 0, len(text))


def passed_over(text, stretches):
    """Stretches that would have something made up in them alone, and are said to have none."""
    page = Page(text)
    made_up = MadeUp(page)
    return [one for one in stretches if not made_up.is_in(*one) and alone(page, *one)]


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

    assert any(alone(Page(text), *one) for one in stretches)
    assert passed_over(text, stretches) == []


def test_plain_words_have_nothing_made_up_in_them():
    text = "We met on Tuesday, and talked about the 3 houses by the lake at 18:30.\n" * 50
    made_up = MadeUp(Page(text))

    assert not [at for at in range(0, 3_000, 20) if made_up.is_in(at, at + 256)]
