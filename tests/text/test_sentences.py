"""Which sentences can say the same, and which only look alike to a vector."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.text.sentences import adds_nothing, denied_parts, same_words


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Tea over coffee is what Anna prefers", "Anna prefers tea over coffee"),
        ("Our gateway is running on the Mac Studio", "The gateway runs on a Mac Studio"),
        ("Emma, my sister, lives in Graz", "My sister Emma lives in Graz"),
        ("The user's sister Emma lives in Graz", "my sister emma lives in Graz."),
        ("I prefer dark mode in every editor", "The user prefers dark mode in all editors"),
        ("Every night at 02:15 the backups run", "Backups run at 02:15 every night"),
        ("Emma likes coffee and tea", "Emma likes tea and coffee"),
        ("We release on Tuesdays", "Releases are on Tuesdays"),
        ("Do not deploy on Fridays", "Don't deploy on Fridays"),
        ("茶を飲まない", "茶を飲まない。"),
    ],
)
def test_other_wording_of_the_same_words_is_the_same(new, old):
    assert same_words(new, old)
    assert same_words(old, new)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The port is 8081 on the gateway", "The port is 8080 on the gateway"),
        ("The meeting is on 2026-02-11", "The meeting is on 2026-02-10"),
        ("Anna prefers coffee over tea", "Anna prefers tea over coffee"),
        ("The train goes from Vienna to Graz", "The train goes from Graz to Vienna"),
        ("Alice pays Bob", "Bob pays Alice"),
        ("Ada reports to Ben on Mondays", "Ben reports to Ada on Mondays"),
        ("On Mondays Ada reports to Ben", "Ben reports to Ada on Mondays"),
        ("Anna does not like tea", "Anna likes tea"),
        ("Anna doesn't like tea", "Anna likes tea"),
        ("We no longer use PostgreSQL", "We use PostgreSQL"),
        ("Please never answer in German", "Please answer in German"),
        ("Ich mag keinen Tee", "Ich mag Tee"),
        ("Je n'aime pas le thé", "J'aime le thé"),
        ("我不喜欢茶", "我喜欢茶"),
        ("The gateway runs on a Mac Studio in Graz", "The gateway runs on a Mac Studio"),
        ("the owner of the gateway is Emma", "the owner of the gateway is Anna"),
        ("the backup goes to tern", "the backup goes to tern.backup"),
        ("the backup goes to tern.backup", "the backup goes to tern"),
        ("the freezer is set to -18", "the freezer is set to 18"),
    ],
)
def test_a_number_a_name_a_not_or_another_order_says_something_else(new, old):
    assert not adds_nothing(new, old)
    assert not same_words(new, old)


def test_what_says_less_adds_nothing_but_is_not_made_of_the_same_words():
    assert adds_nothing("the gateway runs", "the gateway runs on a Mac Studio")
    assert not same_words("the gateway runs", "the gateway runs on a Mac Studio")


@pytest.mark.parametrize("word", ["want", "important", "client", "front", "student"])
def test_a_word_that_only_ends_like_a_negation_is_none(word):
    assert same_words(f"the {word} is here", f"here is the {word}")


@given(st.text(max_size=200))
def test_whatever_it_is_it_says_the_same_as_itself(text):
    assert same_words(text, text)


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_same_words_are_the_same_words_from_either_side(one, other):
    if same_words(one, other) and same_words(other, one):
        assert adds_nothing(one, other)
        assert adds_nothing(other, one)


def test_what_is_denied_stands_behind_the_word_or_before_it_in_german() -> None:
    assert denied_parts("Ben does not eat fish") == ["eat fish"]
    assert denied_parts("Enno arbeitet montags nicht") == ["Enno arbeitet montags nicht"]
    assert denied_parts("小明不吃辣") == ["吃辣"]
    assert denied_parts("Ben eats fish") == []
