"""Many words are found in one pass exactly where each of them stands."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.redaction.anchors import Part, _all_words, _pairs_of, _Words, _words, look_through, parts_of
from plainmind.redaction.engine import Redactor
from plainmind.redaction.page import Page

REDACTOR = Redactor(key=b"k")
LAKE = "We went to the lake on Monday and had a good time there with all of them.\n"


def found_in(words, text):
    """Every word with its place, the longer ones only if they are really there."""
    places = set()
    for shift in (1, 2):
        for at, which in words.hits_in(_pairs_of(text, shift), shift, (0, len(text)), len(text)):
            places |= {(at - offset, word) for word, offset in words.found[which]}
    return {(at, word) for at, word in places if text.startswith(word, at)}


def standing_in(words, text):
    return {(at, word) for word in words for at in range(len(text)) if text.startswith(word, at)}


@given(
    st.lists(st.sampled_from(["ab", "abc", "bca", "a b", "cab", "x", "a", "b", "c", " ", "-"])).map("".join)
)
def test_words_within_and_beside_each_other_are_all_found(text):
    words = ("ab", "abc", "bca", "a b", "cab", "b-", "caba", " a")

    assert found_in(_Words(words), text) == standing_in(words, text)


def test_every_word_that_a_rule_begins_with_is_found_at_even_and_odd_places():
    chosen = sorted(_all_words())
    random.Random(1).shuffle(chosen)
    text = "".join(word + "." * (number % 3) for number, word in enumerate(chosen))

    assert found_in(_words(), text) == standing_in(chosen, text)


def test_what_is_said_to_be_absent_is_nowhere_and_the_rest_may_be_there():
    page = Page(LAKE * 90 + "Authorization: nothing, cookie jars and a passcode\n")
    look_through(page)

    assert page.absent
    assert not [word for word in page.absent if word in page.narrow]
    assert page.has("cookie")
    assert not page.has("bearer")


@pytest.mark.parametrize("before", range(4))
def test_a_name_is_found_wherever_a_part_of_a_long_text_ends(before):
    for at in range(4_096 - 12, 4_096 + 4):
        text = ("." * before + LAKE * 100)[:at] + " password: hunter22x " + LAKE * 20

        assert "hunter22x" not in REDACTOR.without_secrets(text), at


def test_a_text_crowded_with_names_is_shown_up_to_where_it_is_crowded():
    crowd = "key token secret login user auth pass pw " * 40
    text = (
        f"{LAKE * 60}{crowd}\npassword = hunter22x\n{crowd}db_token: 'a8f3k2m9q1z7x5c4'\n{crowd}{LAKE * 60}"
    )

    hidden = REDACTOR.without_secrets(text)

    assert any(part.is_crowded for part in parts_of(Page(text)))
    assert "hunter22x" not in hidden
    assert "a8f3k2m9q1z7x5c4" not in hidden
    assert 40 < hidden.count("lake") < 60


def test_behind_a_crowd_what_is_written_is_read_as_ever():
    crowd = "key token secret login user auth pass pw " * 300
    text = f"{crowd}\n{LAKE * 120}my password there is hunter22x by now\n{LAKE * 20}"

    parts = parts_of(Page(text))

    assert [part.is_crowded for part in parts].count(True) > 1
    assert "hunter22x" not in REDACTOR.without_secrets(text)


def test_a_word_before_a_sign_is_found_in_any_language_in_a_crowd():
    crowd = "key token secret login user auth pass pw " * 120
    for name in ("password", "backup code", "密码", "비밀 번호", "DB_PASS", "clé wifi"):
        text = f"{crowd}{name} = 'a8f3k2m9q1z7x5c4' {crowd}"

        assert "a8f3k2m9q1z7x5c4" not in REDACTOR.without_secrets(text), name


@pytest.mark.parametrize(
    "shape",
    ["password ", "SK", "dapi", "api_key=a1b2c3d4e5 ", "pass the token, then go on with the walk\n" * 7],
)
@pytest.mark.parametrize("before", [0, 3_000, 5_001])
def test_what_is_repeated_has_the_same_names_as_if_it_were_searched_again(shape, before, monkeypatch):
    text = (LAKE * 90)[:before] + shape * (30_000 // len(shape)) + "password: none " + LAKE * 90

    def places():
        page = Page(text)
        look_through(page)
        return [[(at, anchor.word) for at, anchor in part.places] for part in page.parts], page.absent

    quickly = places()
    repeated = [part for part, before in _parts_and_those_before(text) if part._repeated(before) is not None]
    monkeypatch.setattr(Part, "_repeated", lambda *_: None)

    assert len(repeated) >= 5
    assert quickly == places()


def _parts_and_those_before(text):
    page = Page(text)
    look_through(page)
    return list(zip(page.parts[1:], page.parts, strict=False))


@given(st.text(st.sampled_from("Ab ÉéÄßΣσςİıЯяＡａ…中Ⅷ\ud800𝐀")))
def test_lower_case_is_what_it_is_whatever_way_it_is_made(text):
    page = Page(text)

    assert page.low == page.text.replace("\u0130", "i").lower()
