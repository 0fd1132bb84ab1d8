from datetime import date

import pytest

from commonplace.model import Chunk
from commonplace.search.query import parse
from commonplace.search.ranking import ASKED_BONUS, DAY_BONUS, ranked_chunks

TODAY = date(2026, 11, 15)


def chunk(ordinal, source="memory", text="text", day=None):
    return Chunk("memory/a.md", source, ordinal, ordinal + 1, ordinal + 2, text, day=day)


def ranked(chunks, keywords, meaning, question="gateway", foremost=2, everything=False):
    return ranked_chunks(
        parse(question, today=TODAY),
        chunks,
        keywords,
        meaning,
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


def test_a_named_day_and_the_words_of_a_person_are_worth_more():
    chunks = [
        chunk(0, day="2026-02-10"),
        chunk(1, source="sessions", text="User: hello"),
        chunk(2, source="sessions", text="Assistant: hello"),
    ]
    bonuses = {
        item.chunk.ordinal: item.bonus
        for item in ranked(chunks, [0.0] * 3, [0.0] * 3, question="on 2026-02-10", everything=True)
    }

    assert bonuses == {0: DAY_BONUS, 1: ASKED_BONUS, 2: 0.0}
