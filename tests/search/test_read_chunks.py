from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import Chunk
from plainmind.search.pages import QuestionWords, RankedChunk, Shelf
from plainmind.search.snippets import SPEAKER_BONUS, Judge, Weights, read_closely
from plainmind.text.terms import document_terms

WEIGHTS = {"gateway": 3.0, "hetzner": 5.0, "move": 2.0}


def ranked(text, ordinal=0, keywords=0.0, meaning=0.0, bonus=0.0, more=0):
    """A chunk, of which it is known how often each word stands in it; headings may have `more`."""
    last = 2 + text.count("\n")
    item = RankedChunk(Chunk("memory/a.md", "memory", ordinal, 1, last, text), keywords, meaning, bonus)
    filed = Counter(document_terms(text))
    item.term_counts = bytes(min(255, filed[term] + more) for term in WEIGHTS)
    return item


def read(*items, foremost=32, named=frozenset(), factor=1.0, shelf=None):
    return read_closely(
        items,
        shelf or Shelf(),
        Judge(QuestionWords(WEIGHTS), Weights(), window_chars=700),
        Weights(),
        foremost=foremost,
        named=named,
        age_factor=lambda _day: factor,
        compare=lambda _said: None,
    )


def test_a_line_is_worth_what_its_words_and_its_chunk_say():
    (chunk,) = read(ranked("the gateway moved to Hetzner\nyes", keywords=0.5, meaning=0.4, bonus=0.1))
    weights = Weights()
    of_chunk = weights.keywords * 0.5 + weights.meaning * 0.4 + 0.1

    assert chunk.scores[0] == pytest.approx(
        weights.coverage + weights.passage * chunk.wording.passages[0] + of_chunk
    )
    assert chunk.scores[1] == pytest.approx(
        weights.nearby + weights.passage * chunk.wording.passages[1] + of_chunk
    )


def test_a_chunk_without_any_of_the_words_is_worth_what_is_known_of_it():
    with_words, without, may_have = read(
        ranked("gateway Hetzner"), ranked("nothing\nof it", bonus=0.2), ranked("gatewayless", bonus=0.3)
    )

    assert with_words.wording is not None
    assert (without.wording, without.scores) == (None, [0.2, 0.2])
    assert (may_have.wording, may_have.scores) == (None, [0.3])


def test_who_is_named_and_speaks_gets_a_bonus():
    (chunk,) = read(ranked("Anna: hello\nBob: hello Anna"), named=frozenset({"anna"}))

    assert chunk.scores == [pytest.approx(SPEAKER_BONUS), 0.0]
    assert chunk.most >= SPEAKER_BONUS


def test_where_no_foremost_line_says_much_meaning_counts_more():
    few_words, many_words = ranked("move\nthen", meaning=0.5), ranked("gateway at Hetzner")
    trusted = Weights().meaning * 0.5

    assert read(few_words, many_words)[0].scores[1] < read(few_words)[0].scores[1]
    assert read(few_words, many_words, foremost=1)[0].scores == read(few_words)[0].scores
    assert read(ranked("nothing", meaning=0.5))[0].scores == [pytest.approx(3 * trusted)]


def test_words_that_stand_in_different_lines_are_not_said_in_one():
    chunk, _ = read(ranked("nothing", meaning=0.5), ranked("gateway\n\n\nmoved"))

    assert chunk.scores == [pytest.approx(Weights().leaning(0.3).meaning * 0.5)]


def is_taken_apart(page):
    try:
        object.__getattribute__(page, "units")
    except AttributeError:
        return False
    return True


def test_a_page_that_cannot_say_more_than_another_is_not_taken_apart():
    best, other = read(ranked("gateway at Hetzner"), ranked("it moved"))
    assert [is_taken_apart(best.page), is_taken_apart(other.page)] == [True, False]

    assert other.page.units == ["it moved"]


words = st.sampled_from(["gateway", "Hetzner", "moved", "Anna:", "other", "café", "東京", "gatewayless"])
texts = st.lists(st.lists(words, max_size=5).map(" ".join), min_size=1, max_size=8).map("\n".join)
shares = st.floats(0, 1)


@given(st.lists(st.tuples(texts, shares, shares, shares), min_size=1, max_size=5), st.floats(0.1, 1))
def test_no_line_is_worth_more_than_its_chunk_promises(chunks, factor):
    items = [ranked(text, number, *signals) for number, (text, *signals) in enumerate(chunks)]

    for chunk in read(*items, named=frozenset({"anna"}), factor=factor):
        assert max(chunk.scores, default=0.0) <= chunk.most


@given(st.lists(st.tuples(texts, shares, shares, shares), min_size=1, max_size=5))
def test_pages_in_order_are_worth_the_same(chunks):
    def items():  # anew: reading lifts the nearest
        return [ranked(text, number, *signals) for number, (text, *signals) in enumerate(chunks)]

    plain = read(*items(), named=frozenset({"anna"}))
    ordered = read(*items(), named=frozenset({"anna"}), shelf=Shelf(worth_an_index=1))

    assert [chunk.scores for chunk in ordered] == [chunk.scores for chunk in plain]


@given(
    st.lists(st.tuples(texts, shares, shares, shares), min_size=1, max_size=5),
    st.floats(0.1, 1),
    st.integers(0, 2),
)
def test_larger_counts_promise_enough_and_change_nothing(chunks, factor, more):
    items = [ranked(text, number, *signals) for number, (text, *signals) in enumerate(chunks)]
    plain = read(*items, named=frozenset({"anna"}), factor=factor)
    again = [ranked(text, number, *signals, more) for number, (text, *signals) in enumerate(chunks)]
    by_count = read(*again, named=frozenset({"anna"}), factor=factor)

    for one, other in zip(by_count, plain, strict=True):
        promised = one.most
        # The nearest in meaning are lifted to what the others promise, and more is promised where more is counted.
        more_lifted = (one.ranked.lift - other.ranked.lift) * factor
        assert one.scores == pytest.approx([score + more_lifted for score in other.scores])
        assert max(one.scores, default=0.0) <= promised
        if one.may_be_less:
            one.look()
        assert max(one.scores, default=0.0) <= one.most <= promised


def test_a_chunk_whose_words_are_counted_is_not_opened_before_it_is_read():
    class Unread(Chunk):
        @property
        def text(self):
            raise AssertionError("nobody has asked for it")

    unread = RankedChunk(Unread("memory/b.md", "memory", 0, 1, 2, "", "", None), 0.0, 0.0, 0.0)
    unread.term_counts = bytes([0, 0, 1])
    best, other = read(ranked("gateway at Hetzner"), unread, named=frozenset({"anna"}))

    assert best.scores[0] > other.most > 0.0


def test_words_that_a_cut_line_seems_to_have_do_not_count():
    (chunk,) = read(ranked("gateway"))
    chunk.ranked.term_counts = bytes([0, 1, 0])
    (chunk,) = read(chunk.ranked)

    assert (chunk.wording, chunk.scores) == (None, [0.0])
