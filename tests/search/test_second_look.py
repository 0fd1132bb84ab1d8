"""Both looks make the order: what a model says about the best results, and what the index found in them."""

from __future__ import annotations

import pytest

from plainmind.base.model import SearchHit
from plainmind.search.second_look import look_again, passage_of


def hit(path: str, score: float, text: str = "text", *, best_line: int = 0, headings: str = "") -> SearchHit:
    lines = text.count("\n")
    return SearchHit(path, 10, 10 + lines, score, text, "memory", best_line=best_line, headings=headings)


def test_a_result_that_a_model_finds_right_rises_and_its_score_with_it() -> None:
    first, second = look_again([hit("a", 0.8), hit("b", 0.7)], [-6.0, 6.0])

    assert (first.path, second.path) == ("b", "a")
    assert first.score > 0.5 > second.score


def test_the_first_look_decides_where_the_second_sees_no_difference() -> None:
    assert [one.path for one in look_again([hit("a", 0.95), hit("b", 0.7)], [1.0, 1.0])] == ["a", "b"]


def test_what_was_not_read_keeps_its_place_among_the_rest() -> None:
    seen = look_again([hit("a", 0.97), hit("b", 0.8), hit("c", 0.7)], [2.0, None, 2.0])

    assert [one.path for one in seen] == ["a", "b", "c"]


def test_without_a_second_opinion_everything_stays_as_it_was() -> None:
    hits = [hit("a", 0.9), hit("b", 1.0)]

    assert look_again(hits, [None, None]) == hits
    assert look_again([], []) == []


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_a_score_that_is_certain_can_be_doubted(score: float) -> None:
    (seen,) = look_again([hit("a", score)], [0.0])

    assert 0 < seen.score < 1


def test_a_passage_is_what_stands_around_the_line_that_answers_under_its_headings() -> None:
    lines = [f"line {number} " + "x" * 100 for number in range(12)]
    passage = passage_of(hit("a", 0.9, "\n".join(lines), best_line=16, headings="Projects › Lighthouse"))

    assert passage.split("\n") == ["Projects › Lighthouse", *lines[5:8], lines[8]]


@pytest.mark.parametrize("best_line", [0, 10, 99])
def test_a_short_snippet_is_read_whole(best_line: int) -> None:
    assert passage_of(hit("a", 0.9, "one\ntwo\nthree", best_line=best_line)) == "one\ntwo\nthree"
