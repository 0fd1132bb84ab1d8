from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import Chunk
from plainmind.search.pages import AsWritten, Page, QuestionWords, limit_to_counts, terms_with, word_index
from plainmind.text.terms import document_terms, query_terms


def page(text, *, one_line=False):
    return Page(Chunk("memory/a.md", "memory", 0, 1, 1 if one_line else 2 + text.count("\n"), text))


def asked(question):
    return QuestionWords(dict.fromkeys(query_terms(question).terms, 1.0))


def counted(question, of):
    """What should be found: the terms of every unit, counted one by one."""
    terms = query_terms(question).terms
    return [
        (position, number, counts[term])
        for position, unit in enumerate(of.units)
        for counts in (Counter(document_terms(unit)),)
        for number, term in enumerate(terms)
        if counts[term]
    ]


def test_words_are_found_by_unit_whatever_their_ending():
    found = asked("who paints?").found_in(page("Painting, painted and paints;\nnothing\n(paint)"))

    assert found == [(0, 0, 3), (2, 0, 1)]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("dying", "he dies, dying or not"),
        ("crying skies", "cry\nsky and skies, cried"),
        ("use", "using it, used\tor\x0buse"),
        ("1000000 people", "1,000,000 people or 1000000.50"),
        ("ECONNREFUSED in main.py", "ECONNREFUSED: src/app/main.py:10"),
        ("memorySearch", "memorySearch.query and MEMORY_SEARCH"),
        ("x" * 80, "y " + "X" * 80),
        ("don't know", "I don’t know — “know” it"),
        ("cafe", "Le Café du coin, and many other words that are plain enough for one line"),
        ("istanbul", "İstanbul and many other words that are plain enough for one line of text"),
        ("东京电池", "在东京都买电池\n东京东京东京"),
        ("哈哈", "哈哈哈哈"),
        ("猫", "我的 猫 和 猫猫"),
        ("新巴82线 iPhone", "新巴82线，iPhone手机\n82"),
        ("новости города", "Новости нашего города и другие слова"),
        ("plain words", "🙂 plain words 🙂\nplain"),
        ("", "anything at all"),
    ],
)
def test_exactly_what_is_filed_is_found(question, text):
    of = page(text)

    assert asked(question).found_in(of) == counted(question, of)


PLAIN = "gateway Gateways dying die cried cry using Used 1,000 1000 1,000.50 C++ c API APIs foo.bar fooBar foo_bar"
OTHER = "Anna’s Anna's café cafe “ran” run—ran … 東京 東京都に 猫 新巴82线 город ﬁne İ ß 🙂 \u200b"
WORDS = st.one_of(
    st.sampled_from(PLAIN.split()),
    st.sampled_from(OTHER.split()),
    st.sampled_from(["\xa0", "\x1c", "\t", "\0"]),
    st.text("aeiltyrcsn", min_size=1, max_size=8),
    st.text(max_size=4),
)
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", "\n", ""])), max_size=30).map(
    lambda words: "".join(word + between for word, between in words)
)


@given(TEXTS, st.data(), st.booleans())
def test_clues_find_what_counting_finds(text, data, one_line):
    of = page(text, one_line=one_line)
    words = text.split() or ["nothing"]
    question = " ".join(data.draw(st.lists(st.one_of(st.sampled_from(words), WORDS), max_size=4)))

    assert asked(question).found_in(of) == counted(question, of)


@given(TEXTS, st.lists(WORDS, max_size=4).map(" ".join))
def test_an_index_finds_what_reading_finds(text, question):
    of = page(text)
    read = asked(question).found_in(of)
    of.put_in_order(word_index(of.units))

    assert asked(question).found_in(of) == read


def test_the_weight_of_a_set_of_terms_is_a_share_of_the_question():
    words = QuestionWords({"gateway": 3.0, "hetzner": 5.0})

    assert words.shares[0b00] == 0.0
    assert words.shares[0b01] == pytest.approx(3 / 8)
    assert words.shares[0b11] == 1.0
    assert words.names_of(0b11) == ("gateway", "hetzner")
    assert words.names_of(0b10) == ("hetzner",)


def test_the_terms_of_a_chunk_are_those_that_stand_in_it():
    assert terms_with(bytes([0, 1, 255, 0])) == 0b0110
    assert terms_with(b"") == 0


def test_what_a_chunk_is_not_filed_under_was_not_found_in_it():
    found = [(0, 0, 2), (1, 1, 1), (2, 0, 3)]

    assert limit_to_counts(found, bytes([5, 1])) is found
    assert limit_to_counts(found, bytes([3, 0])) == [(0, 0, 2), (2, 0, 1)]
    assert limit_to_counts([(0, 0, 300), (1, 1, 2)], bytes([255, 1])) == [(0, 0, 300), (1, 1, 1)]


def test_words_as_written_count_whole_and_little_ones_a_little():
    written = AsWritten("When did Ana paint?", QuestionWords({"ana": 2.0, "paint": 4.0}))

    assert written.share_in("ANA, when did you paint?") == 1.0
    assert written.share_in("ana paints") == 2.0 / 8.0
    assert written.share_in("") == 0.0
