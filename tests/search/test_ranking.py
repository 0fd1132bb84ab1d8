from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import EVERY_SCOPE, Chunk, SearchFilter
from plainmind.search.engine import (
    ANSWERED_MALUS,
    ASKED_BONUS,
    positions_in_question,
    ranked_chunks,
)
from plainmind.search.pages import parse

TODAY = date(2026, 11, 15)
DAY_BONUS = 0.15


def chunk(ordinal, source="memory", text="text", day=None):
    return Chunk("memory/a.md", source, ordinal, ordinal + 1, ordinal + 2, text, day=day)


def ranked(chunks, keywords, meaning, question="gateway", foremost=2, everything=False, named=()):
    return ranked_chunks(
        parse(question, today=TODAY),
        dict(enumerate(chunks)),
        keywords,
        meaning,
        named or [0.0] * len(chunks),
        day_bonus=DAY_BONUS,
        meaning_weight=0.25,
        foremost=foremost,
        everything=everything,
    )


def test_words_and_meaning_decide_together_and_the_place_between_equals():
    chunks = [chunk(number) for number in range(4)]
    order = ranked(chunks, [0.1, 0.5, 0.5, 0.4], [0.0, 0.0, 0.0, 0.9], foremost=4)

    assert [item.chunk.ordinal for item in order] == [3, 1, 2, 0]


@pytest.mark.parametrize(("everything", "count"), [(False, 2), (True, 3)])
def test_the_foremost_are_the_same_however_many_are_wanted(everything, count):
    chunks = [chunk(number) for number in (5, 1, 3)]
    order = ranked(chunks, [0.5, 0.5, 0.5], [0.0, 0.0, 0.0], everything=everything)

    assert [item.chunk.ordinal for item in order] == [1, 3, 5][:count]


def test_nothing_proposed_is_nothing_ranked():
    assert ranked([], [], []) == []


def test_only_the_foremost_neighbours_speak_for_a_chunk():
    chunks = [chunk(number) for number in (0, 1, 2, 3)]
    order = ranked(chunks, [0.9, 0.8, 0.3, 0.2], [0.0] * 4, everything=True)

    assert [item.neighbours for item in order] == [0.8, 0.9, 0.8, 0.0]


def test_a_named_day_and_the_words_of_a_person_are_worth_more_and_those_of_an_assistant_less():
    chunks = [
        chunk(0, day="2026-02-10"),
        chunk(1, source="sessions", text="User: hello"),
        chunk(2, source="sessions", text="Assistant: hello"),
    ]
    bonuses = {
        item.chunk.ordinal: item.bonus
        for item in ranked(chunks, [0.8] * 3, [0.8] * 3, question="on 2026-02-10", everything=True)
    }

    assert bonuses == {0: DAY_BONUS, 1: ASKED_BONUS, 2: -ANSWERED_MALUS}


def test_what_somebody_said_about_something_else_gains_nothing_by_who_said_it():
    said = [chunk(0, source="sessions", text="User: hello"), chunk(1, source="sessions", text="User: bye")]
    nothing, little = ranked(said, [0.0, 0.1], [0.0, 0.1], everything=True)[::-1]

    assert nothing.bonus == 0.0
    assert little.bonus == pytest.approx(0.1)


def test_what_an_assistant_said_keeps_two_thirds_of_what_it_is_worth():
    said = [chunk(0, source="sessions", text="Assistant: so"), chunk(1, source="sessions", text="and so on")]
    little, nothing = ranked(said, [0.3, 0.0], [0.3, 0.0], everything=True)

    assert nothing.bonus == 0.0
    assert little.bonus == pytest.approx(-0.1)


@pytest.mark.parametrize("everything", [False, True])
def test_the_nearest_in_meaning_are_among_the_foremost_whatever_their_words(everything):
    keywords = [*[0.9 - number / 100 for number in range(20)], *[0.0] * 10]
    meaning = [*[0.1] * 20, *[0.2 + number / 100 for number in range(10)]]
    order = ranked(
        [chunk(number) for number in range(30)], keywords, meaning, foremost=12, everything=everything
    )

    foremost = [item.chunk.ordinal for item in order[:12]]
    assert foremost == [*range(7), *sorted([7, *range(26, 30)])]
    assert len(order) == (30 if everything else 12)


def test_where_there_are_no_vectors_nothing_is_nearest():
    order = ranked([chunk(number) for number in range(6)], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.0] * 6)

    assert [item.chunk.ordinal for item in order] == [5, 4]


signals = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.booleans()), max_size=12)


@given(signals, st.integers(1, 6), st.sampled_from(["gateway", "gateway on 2026-11-03"]))
def test_what_is_not_in_question_is_not_among_the_foremost(signals, foremost, question):
    chunks = [
        chunk(number, "sessions", "User: hi" if said else "so", "2026-11-03" if on_day else None)
        for number, (_, _, said, on_day) in enumerate(signals)
    ]
    keywords, meaning = [each[0] for each in signals], [each[1] for each in signals]
    where = SearchFilter(frozenset({"sessions"}), EVERY_SCOPE)
    kept = positions_in_question(
        where,
        keywords,
        meaning,
        [0.0] * len(chunks),
        day_bonus=DAY_BONUS,
        meaning_weight=0.25,
        foremost=foremost,
    )
    some = ranked(*[[of[at] for at in kept] for of in (chunks, keywords, meaning)], question, foremost)

    assert [each.chunk for each in some] == [
        each.chunk for each in ranked(chunks, keywords, meaning, question, foremost)
    ]


def test_without_bonuses_only_the_foremost_and_their_equals_are_in_question():
    where = SearchFilter(frozenset({"memory"}), EVERY_SCOPE)
    asked = {"named": [0.0] * 4, "day_bonus": 0.0, "meaning_weight": 0.25, "foremost": 2}

    assert positions_in_question(where, [0.1, 0.5, 0.3, 0.3], [0.0] * 4, **asked) == [1, 2, 3]
    assert positions_in_question(where, [0.1, 0.5], [0.0] * 2, **{**asked, "named": [0.0] * 2}) == [
        0,
        1,
    ]


def test_what_is_called_what_the_question_says_comes_first():
    order = ranked([chunk(0), chunk(1)], [0.5, 0.4], [0.0, 0.0], named=[0.0, 0.8])

    assert [item.chunk.ordinal for item in order] == [1, 0]
