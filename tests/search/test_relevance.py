from collections import Counter

import pytest

from commonplace.search.relevance import Signals, Weights, signals_of, speaker_of, standing_out
from commonplace.search.units import Unit
from commonplace.text.terms import document_terms

WEIGHTS = {"gateway": 3.0, "hetzner": 5.0}


def signals(*lines, window_chars=700):
    units = [Unit(number, 0, line) for number, line in enumerate(lines, 1)]
    return signals_of(
        units,
        [Counter(document_terms(line)) for line in lines],
        term_weights=WEIGHTS,
        window_chars=window_chars,
        keywords=0.5,
        neighbours=0.125,
        meaning=0.25,
    )


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


def test_what_is_known_of_the_chunk_is_known_of_each_line():
    known = {(signal.keywords, signal.neighbours, signal.meaning) for signal in signals("one", "two")}

    assert known == {(0.5, 0.125, 0.25)}


def test_a_question_without_terms_still_has_its_meaning():
    (signal,) = signals_of(
        [Unit(1, 0, "text")],
        [{}],
        term_weights={},
        window_chars=700,
        keywords=0.0,
        neighbours=0.0,
        meaning=0.8,
    )
    only_meaning = Weights().scaled(with_vectors=True, with_keywords=False)

    assert signal.coverage == 0.0
    assert signal.mixed(only_meaning) == pytest.approx(0.8)


@pytest.mark.parametrize("with_vectors", [True, False])
@pytest.mark.parametrize("with_keywords", [True, False])
def test_the_signals_that_were_consulted_can_reach_one(with_vectors, with_keywords):
    weights = Weights().scaled(with_vectors=with_vectors, with_keywords=with_keywords)
    best = Signals(1, 1, 1, 1, 1, 1).mixed(weights)

    assert best == pytest.approx(1.0 if with_vectors or with_keywords else 0.0)


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


@pytest.mark.parametrize(
    ("line", "speaker"),
    [
        ("Anna: I moved", "Anna"),
        ("**Anna:** I moved", "Anna"),
        ("- Anna: I moved", "Anna"),
        ("陈静：你好", "陈静"),
        ("no one speaks here", None),
        ("a note to: somebody", None),
    ],
)
def test_the_speaker_of_a_line_stands_before_a_colon(line, speaker):
    assert speaker_of(line) == speaker


def test_only_what_stands_out_from_equally_similar_texts_counts():
    assert standing_out([0.6, 0.7, 0.6]) == pytest.approx([0.0, 0.25, 0.0])
    assert standing_out([-0.2, 0.5]) == pytest.approx([0.0, 0.5])
    assert standing_out([1.0]) == [0.0]
    assert standing_out([]) == []
