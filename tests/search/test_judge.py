from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import Chunk
from plainmind.search.doubts import terms_beside
from plainmind.search.pages import Page, QuestionWords, terms_with
from plainmind.search.snippets import ROUNDING, Judge, Weights
from plainmind.text.terms import document_terms

WEIGHTS = {"gateway": 3.0, "hetzner": 5.0}


class Signals:
    """The signals of one unit, as a judge reads them."""

    def __init__(self, coverage, nearby, passage):
        self.coverage, self.nearby, self.passage = coverage, nearby, passage


def page(*lines):
    return Page(Chunk("memory/a.md", "memory", 0, 1, len(lines) + 1, "\n".join(lines)))


def read(judge, *lines):
    of = page(*lines)
    return judge.read(of, judge.asked.found_in(of))


def signals(*lines, window_chars=700):
    asked = QuestionWords(WEIGHTS)
    wording = read(Judge(asked, Weights(), window_chars=window_chars), *lines)
    return [
        Signals(asked.shares[own], asked.shares[around], passage)
        for own, around, passage in zip(wording.own, terms_beside(wording.own), wording.passages, strict=True)
    ]


def test_coverage_is_the_share_of_the_question_that_a_line_has():
    both, one, none = signals("the gateway moved to Hetzner", "a gateway", "nothing of it")

    assert both.coverage == 1.0
    assert one.coverage == pytest.approx(3 / 8)
    assert none.coverage == 0.0


def test_a_line_between_two_matches_shares_in_their_passage():
    first, between, last = signals("the gateway", "then we talked", "moved to Hetzner")

    assert between.coverage == 0.0
    assert between.passage == first.passage == last.passage > 0


def test_a_passage_ends_where_the_snippet_would():
    first, last = signals("the gateway " + "x" * 50, "moved to Hetzner", window_chars=60)

    assert first.passage < signals("the gateway", "moved to Hetzner")[0].passage
    assert last.passage > 0


def test_a_later_window_may_be_better_than_the_first():
    first, _, last = signals("a gateway " + "x" * 40, "nothing", "gateway, gateway, Hetzner", window_chars=60)

    assert last.passage > first.passage > 0


def test_a_window_that_reaches_no_further_than_another_adds_nothing():
    passages = [
        signal.passage for signal in signals("gateway", "gateway", "Hetzner", "x" * 40, window_chars=30)
    ]

    assert passages[0] == passages[1] == passages[2] > passages[3] == 0.0


def test_a_worse_window_leaves_what_a_better_one_gave():
    passages = [signal.passage for signal in signals("Hetzner", "gateway", "x" * 20, window_chars=30)]

    assert passages[0] == passages[1] > passages[2] > 0


def test_a_page_without_any_of_the_words_says_nothing():
    assert read(Judge(QuestionWords(WEIGHTS), Weights(), window_chars=700), "nothing", "of it") is None


def test_the_words_of_a_line_those_beside_it_and_its_passage_are_mixed():
    judge = Judge(QuestionWords(WEIGHTS), Weights(coverage=1.0, nearby=0.5, passage=0.25), window_chars=700)
    wording = read(judge, "the gateway moved to Hetzner", "yes")

    assert judge.coverage(wording) == 1.0
    assert judge.scores(wording) == [
        pytest.approx(1.0 + 0.25 * wording.passages[0]),
        pytest.approx(0.5 + 0.25 * wording.passages[1]),
    ]


shares = st.floats(0, 1)
lines_of_words = st.lists(
    st.lists(st.sampled_from(["gateway", "hetzner", "moved", "other"]), max_size=5).map(" ".join),
    min_size=1,
    max_size=9,
)


@given(lines_of_words, shares, shares, shares, st.integers(min_value=5, max_value=90))
def test_no_line_is_worth_more_than_its_page_may_have(lines, coverage, nearby, passage, window_chars):
    asked = QuestionWords({"gateway": 3.0, "hetzner": 5.0, "move": 0.5})
    weights = Weights(coverage=coverage, nearby=nearby, passage=passage)
    judge = Judge(asked, weights, window_chars=window_chars)
    filed = Counter(document_terms("\n".join(lines)))
    counts = bytes(filed[term] for term in asked.terms)
    terms = terms_with(counts)
    wording = read(judge, *lines)

    if wording is not None:
        assert judge.coverage(wording) <= asked.shares[terms]
        assert max(judge.scores(wording)) <= judge.most_of_page(terms, counts) * ROUNDING


@pytest.mark.parametrize("with_vectors", [True, False])
@pytest.mark.parametrize("with_keywords", [True, False])
def test_the_signals_that_were_consulted_can_reach_one(with_vectors, with_keywords):
    weights = Weights().scaled(with_vectors=with_vectors, with_keywords=with_keywords)
    words = weights.coverage + weights.nearby + weights.passage + weights.keywords + weights.neighbours

    assert words + weights.meaning == pytest.approx(1.0 if with_vectors or with_keywords else 0.0)


def test_where_the_words_are_missing_meaning_counts_more():
    weights = Weights()

    assert weights.leaning(0.8) == weights
    assert weights.leaning(0.0).meaning > weights.leaning(0.3).meaning > weights.meaning


def test_a_line_borrows_the_words_that_only_its_neighbours_have():
    asked, answered, far, *_ = signals(
        "where is the gateway?", "at Hetzner", "yes", "well", "so", "the gateway"
    )

    assert answered.nearby == pytest.approx(3 / 8)
    assert asked.nearby == pytest.approx(5 / 8)
    assert far.nearby == pytest.approx(1.0)
