"""Both looks make the order: what a model says about the best results, and what the index found in them."""

from __future__ import annotations

import pytest

from plainmind.base.model import CERTAIN, CitedLines, SearchHit
from plainmind.search.second_look import look_again, passage_of


def hit(
    path: str,
    worth: float,
    text: str = "text",
    *,
    best_line: int = 0,
    headings: str = "",
    older: tuple[CitedLines, ...] = (),
) -> SearchHit:
    last = 10 + text.count("\n")
    return SearchHit(
        path, 10, last, 0.5, text, "memory", best_line=best_line, headings=headings, worth=worth, older=older
    )


def test_a_result_that_a_model_finds_right_rises_and_its_score_with_it() -> None:
    first, second, _ = look_again([hit("a", 0.3), hit("b", 0.25), hit("c", 0.1)], [-6.0, 6.0, -6.0])

    assert (first.path, second.path) == ("b", "a")
    assert first.score > CERTAIN > second.score


def test_a_result_that_is_far_ahead_by_its_words_stays_first() -> None:
    assert [one.path for one in look_again([hit("a", 0.6), hit("b", 0.2)], [-3.0, 5.0])] == ["a", "b"]


def test_the_first_look_decides_where_the_second_sees_no_difference() -> None:
    assert [one.path for one in look_again([hit("a", 0.4), hit("b", 0.3)], [1.0, 1.0])] == ["a", "b"]


def test_what_was_not_read_keeps_its_place_among_the_rest() -> None:
    seen = look_again([hit("a", 0.4), hit("b", 0.3), hit("c", 0.2)], [2.0, None, 2.0])

    assert [one.path for one in seen] == ["a", "b", "c"]


def test_where_results_are_as_good_as_each_other_none_is_certain() -> None:
    seen = look_again([hit(name, 0.3) for name in "abc"], [2.0, 2.0, 2.0])

    assert max(one.score for one in seen) < CERTAIN


def test_none_is_surer_than_the_one_before_it() -> None:
    scores = [one.score for one in look_again([hit(name, 0.9) for name in "abcd"], [9.0, 8.0, 7.0, -9.0])]

    assert scores == sorted(scores, reverse=True)


def test_without_a_second_opinion_everything_stays_as_it_was() -> None:
    hits = [hit("a", 0.4), hit("b", 0.5)]

    assert look_again(hits, [None, None]) == hits
    assert look_again([], []) == []


@pytest.mark.parametrize(("worth", "said"), [(0.0, 0.0), (1.0, 0.0), (2.0, 40.0), (0.0, -40.0)])
def test_a_score_is_never_certain_beyond_doubt(worth: float, said: float) -> None:
    (seen,) = look_again([hit("a", worth)], [said])

    assert 0 < seen.score < 1


def test_what_is_newer_stays_before_what_it_is_newer_than() -> None:
    older = (CitedLines("b", 10, 10),)
    seen = look_again([hit("a", 0.3, older=older), hit("b", 0.3), hit("c", 0.3)], [-3.0, 3.0, 4.0])

    assert [one.path for one in seen] == ["c", "a", "b"]
    assert seen[1].score == seen[2].score

    seen = look_again([hit("a", 0.3, older=older), hit("b", 0.3)], [3.0, -3.0])
    assert [one.path for one in seen] == ["a", "b"]
    assert seen[0].score > seen[1].score


def test_a_passage_is_what_stands_around_the_line_that_answers_under_its_headings() -> None:
    lines = [f"line {number} " + "x" * 100 for number in range(12)]
    passage = passage_of(hit("a", 0.9, "\n".join(lines), best_line=16, headings="Projects › Lighthouse"))

    assert passage.split("\n") == ["Projects › Lighthouse", *lines[5:8], lines[8]]


@pytest.mark.parametrize("best_line", [0, 10, 99])
def test_a_short_snippet_is_read_whole(best_line: int) -> None:
    assert passage_of(hit("a", 0.9, "one\ntwo\nthree", best_line=best_line)) == "one\ntwo\nthree"


def test_an_identifier_that_stands_nowhere_makes_the_second_look_doubt_too():
    hits = [hit("a", 0.6), hit("b", 0.1), hit("c", 0.0)]

    assert look_again(hits, [6.0, -6.0, -6.0])[0].score > CERTAIN
    assert look_again(hits, [6.0, -6.0, -6.0], {"hw-3001"})[0].score < CERTAIN
