from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import TermStatistics
from plainmind.search.pages import names_day, parse, term_weights
from plainmind.text.terms import document_terms

TODAY = date(2026, 11, 15)


def test_a_question_keeps_its_content_words_and_drops_the_rest():
    query = parse("  Where does\nthe gateway run? ", today=TODAY)

    assert query.text == "Where does the gateway run?"
    assert query.terms == ("gateway", "run")
    assert not query.is_empty


def test_blank_text_asks_nothing():
    assert parse(" \n ", today=TODAY).is_empty


def test_an_identifier_is_an_exact_token():
    assert "a828e60" in parse("what broke in a828e60", today=TODAY).exact


@pytest.mark.parametrize(
    ("text", "has_one"),
    [
        ("fixed in a828e60, today", True),
        ("fixed in A828E60", True),
        ("fixed in a828e6", False),
        ("“a828e60” — at last", True),
        ("nothing", False),
    ],
)
def test_a_text_has_an_exact_token_or_has_not(text, has_one):
    assert parse("what broke in a828e60", today=TODAY).has_exact_token(text) is has_one
    assert not parse("what broke", today=TODAY).has_exact_token(text)


PIECES = [
    *"ab -_./:,'’“”…é",
    *["a828e60", "A828E60", "ERR-4711", "err", "4711", "4,711", "v1.2", "用户", "src/app.py"],
    *["\u200b", "Ａ８２８ｅ６０", "ÉRR-4711", "e\u0301rr-4711", "ẞ", "ſrc/app.py", "src/æpp.py"],
]


@given(st.lists(st.sampled_from(PIECES)))
def test_an_exact_token_is_found_wherever_the_terms_of_a_text_have_it(parts):
    query = parse("ERR-4711 in src/app.py of v1.2 since a828e60", today=TODAY)
    text = "".join(parts)

    assert query.has_exact_token(text) == (not query.exact.isdisjoint(document_terms(text)))


def test_an_identifier_of_other_letters_is_an_exact_token_too():
    query = parse("что значит ошибка-17", today=TODAY)

    assert query.has_exact_token("Насос: Ошибка-17, вода")
    assert not query.has_exact_token("Насос: ошибка-18, вода")
    assert not query.has_exact_token("the pump: error 17")


def test_rare_terms_weigh_more_and_unknown_terms_most():
    weights = term_weights(["common", "rare", "unknown"], TermStatistics(100, {"common": 90, "rare": 2}))

    assert 0 < weights["common"] < weights["rare"] < weights["unknown"]


def test_a_count_above_the_total_does_not_break_the_weight():
    assert term_weights(["odd"], TermStatistics(1, {"odd": 5}))["odd"] > 0


def test_an_empty_index_gives_weights_too():
    assert term_weights(["anything"], TermStatistics(0, {}))["anything"] > 0


@pytest.mark.parametrize(
    ("question", "day", "named"),
    [
        ("what happened on 2026-02-10?", "2026-02-10", True),
        ("what happened on 2026-02-10?", "2026-02-11", False),
        ("what happened in February 2026?", "2026-02-28", True),
        ("what happened?", "2026-02-10", False),
        ("what happened yesterday?", None, False),
        ("what happened yesterday?", "not a day", False),
    ],
)
def test_a_question_names_the_days_inside_its_spans(question, day, named):
    assert names_day(parse(question, today=TODAY), day) is named


def test_a_question_names_the_people_in_it_but_not_its_first_word():
    query = parse("Where did Anna and Zoë Smith go?", today=TODAY)

    assert query.names("Anna")
    assert query.names("zoë smith")
    assert not query.names("Where")
    assert not query.names("Bob")
    assert not query.names(None)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("what did we decide lately?", True),
        ("the current address of the office", True),
        ("最近决定了什么", True),
        ("今天决定了什么", False),
        ("right now", True),
        ("something new", False),
        ("what did we decide?", False),
        ("the currency of Japan", False),
    ],
)
def test_a_question_may_ask_for_what_is_recent(question, asked):
    assert parse(question, today=TODAY).asks_for_recent is asked


def test_a_book_pasted_as_a_question_is_cut():
    assert len(parse("word " * 100_000, today=TODAY).text) <= 8_000
