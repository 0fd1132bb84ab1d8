"""Both looks make the order: what a model says about the best results, and what the index found in them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from plainmind.base.model import CERTAIN, CitedLines, SearchHit
from plainmind.base.value import replace
from plainmind.search.second_look import (
    Reading,
    cut_short,
    let_read,
    look_again,
    most_windows,
    what_was_read,
    windows_of,
    with_reasons,
)


def hit(
    path: str,
    worth: float,
    text: str = "text",
    *,
    best_line: int = 0,
    headings: str = "",
    older: tuple[CitedLines, ...] = (),
    score: float = 0.5,
) -> SearchHit:
    last = 10 + text.count("\n")
    return SearchHit(
        path,
        10,
        last,
        score,
        text,
        "memory",
        best_line=best_line,
        headings=headings,
        worth=worth,
        older=older,
    )


def read(*said: float | None, reached: int | None = None, share: float = 1.0) -> Reading:
    return Reading(said, len(said) if reached is None else reached, share)


def test_a_result_that_a_model_finds_right_rises_and_its_score_with_it() -> None:
    first, second, _ = look_again([hit("a", 0.3), hit("b", 0.25), hit("c", 0.1)], read(-6.0, 6.0, -6.0))

    assert (first.path, second.path) == ("b", "a")
    assert first.score > CERTAIN > second.score


def test_a_result_that_is_far_ahead_by_its_words_stays_first() -> None:
    assert [one.path for one in look_again([hit("a", 0.6), hit("b", 0.2)], read(-3.0, 5.0))] == ["a", "b"]


def test_the_first_look_decides_where_the_second_sees_no_difference() -> None:
    assert [one.path for one in look_again([hit("a", 0.4), hit("b", 0.3)], read(1.0, 1.0))] == ["a", "b"]


def test_what_was_not_read_keeps_its_place_among_the_rest() -> None:
    seen = look_again([hit("a", 0.4), hit("b", 0.3), hit("c", 0.2)], read(2.0, None, 2.0))

    assert [one.path for one in seen] == ["a", "b", "c"]


def test_what_was_not_read_is_not_put_behind_what_was_because_that_stands_out_among_worse_ones() -> None:
    hits = [hit("a", 0.3), hit("b", 0.25), hit("c", 0.1), hit("d", 0.05)]

    assert [one.path for one in look_again(hits, read(None, 0.5, -4.0, -4.5))] == ["a", "b", "c", "d"]
    assert [one.path for one in look_again(hits, read(None, 4.0, -4.0, -4.5))] == ["b", "a", "c", "d"]


def test_where_results_are_as_good_as_each_other_none_is_certain() -> None:
    seen = look_again([hit(name, 0.3) for name in "abc"], read(2.0, 2.0, 2.0))

    assert max(one.score for one in seen) < CERTAIN


def test_none_is_surer_than_the_one_before_it() -> None:
    scores = [one.score for one in look_again([hit(name, 0.9) for name in "abcd"], read(9.0, 8.0, 7.0, -9.0))]

    assert scores == sorted(scores, reverse=True)


def test_without_a_second_opinion_everything_stays_as_it_was() -> None:
    hits = [hit("a", 0.4), hit("b", 0.5)]

    assert look_again(hits, read(None, None)) == hits
    assert look_again([], read()) == []


@pytest.mark.parametrize(("worth", "said"), [(0.0, 0.0), (1.0, 0.0), (2.0, 40.0), (0.0, -40.0)])
def test_a_score_is_never_certain_beyond_doubt(worth: float, said: float) -> None:
    (seen,) = look_again([hit("a", worth)], read(said))

    assert 0 < seen.score < 1


def test_what_is_newer_stays_before_what_it_is_newer_than() -> None:
    older = (CitedLines("b", 10, 10),)
    seen = look_again([hit("a", 0.3, older=older), hit("b", 0.3), hit("c", 0.3)], read(-3.0, 3.0, 4.0))

    assert [one.path for one in seen] == ["c", "a", "b"]
    assert seen[1].score == seen[2].score

    seen = look_again([hit("a", 0.3, older=older), hit("b", 0.3)], read(3.0, -3.0))
    assert [one.path for one in seen] == ["a", "b"]
    assert seen[0].score > seen[1].score


class Reader:
    """Finds what has a word in it right, and can read so many passages in time."""

    def __init__(self, word: str, in_time: int = 99) -> None:
        self.word = word
        self.in_time = in_time
        self.passages: list[str] = []

    @property
    def name(self) -> str:
        return "reader"

    def log_odds(self, question: str, passages: Sequence[str], *, seconds: float) -> list[float | None]:
        self.passages = list(passages)
        said = [5.0 if self.word in passage else -4.0 for passage in passages]
        return list(said[: self.in_time])


LINES = [f"line {number} " + "x" * 100 for number in range(12)]


def test_what_is_read_first_stands_around_the_line_that_answers_under_its_headings() -> None:
    best, rest = windows_of(hit("a", 0.9, "\n".join(LINES), best_line=16, headings="Projects › Lighthouse"))

    assert best.split("\n") == ["Projects › Lighthouse", *LINES[5:9]]
    assert rest.split("\n") == ["Projects › Lighthouse", *LINES[:5], *LINES[9:]]


def test_of_ideographs_as_much_is_read_at_once_as_has_as_many_pieces() -> None:
    lines = [letter * 100 for letter in "東西南"]

    assert windows_of(hit("a", 0.9, "\n".join(lines), best_line=1)) == (lines[0], "\n".join(lines[1:]))


@pytest.mark.parametrize("best_line", [0, 10, 99])
def test_a_short_snippet_is_read_whole(best_line: int) -> None:
    assert windows_of(hit("a", 0.9, "one\ntwo\nthree", best_line=best_line)) == ("one\ntwo\nthree", "")


def test_a_line_that_says_little_is_not_read_for_itself() -> None:
    text = "\n".join([LINES[0] * 5, "thanks"])

    assert windows_of(hit("a", 0.9, text)) == (LINES[0] * 5, "")


def test_an_answer_in_the_rest_of_a_result_counts_as_one_in_its_best_lines() -> None:
    hits = [hit(name, 0.3, "\n".join(LINES), best_line=10) for name in "ab"]
    reader = Reader("line 11")

    assert let_read(reader, "?", hits, seconds=1) == read(5.0, 5.0)
    assert ["line 0" in passage for passage in reader.passages] == [True, True, False, False]

    assert let_read(Reader("line 0"), "?", hits, seconds=1) == read(5.0, 5.0)


def test_what_was_not_read_in_time_takes_nothing_from_what_was() -> None:
    hits = [hit(name, 0.3, "\n".join(LINES), best_line=10) for name in "ab"]

    assert let_read(Reader("line 11", in_time=3), "?", hits, seconds=1) == read(5.0, -4.0, share=3 / 4)
    assert let_read(Reader("line 11", in_time=1), "?", hits, seconds=1) == read(
        -4.0, None, reached=1, share=1 / 4
    )


def test_what_is_in_a_language_that_is_not_known_has_been_reached() -> None:
    class Foreigner(Reader):
        def log_odds(self, question: str, passages: Sequence[str], *, seconds: float) -> list[float | None]:
            return [None if self.word in passage else 1.0 for passage in passages]

    hits = [hit("a", 0.3, "etwas"), hit("b", 0.3, "something")]

    assert let_read(Foreigner("etwas"), "?", hits, seconds=1) == read(None, 1.0)


def test_too_little_time_is_told_with_how_far_it_went() -> None:
    (told,) = cut_short(read(1.0, *[None] * 19, reached=1, share=1 / 28), 0.05)

    assert told.startswith(
        "second look: there was time for 1 of the best 8 results (`rerank.deadlineMs` is 50)"
    )
    assert list(cut_short(read(1.0, None), 0.05)) == []
    assert [most_windows(results) for results in (2, 8, 24)] == [4, 16, 32]


def test_the_rest_is_read_of_the_first_results_alone_and_before_the_last_ones() -> None:
    hits = [hit(str(number), 0.3, "\n".join(LINES), best_line=10) for number in range(20)]

    assert let_read(Reader("line 11"), "?", hits, seconds=1) == read(*[5.0] * 8, *[-4.0] * 12)
    assert let_read(Reader("line 11", in_time=18), "?", hits, seconds=1) == read(
        *[5.0] * 2, *[-4.0] * 14, *[None] * 4, reached=16, share=18 / 28
    )


def test_a_look_is_cut_short_where_the_best_results_were_not_reached_and_not_where_later_ones_were_spared() -> (
    None
):
    hits = [hit(str(number), 0.3) for number in range(20)]

    def is_cut(in_time: int, of: int = 20) -> bool:
        return let_read(Reader("x", in_time), "?", hits[:of], seconds=1).is_cut

    assert [is_cut(in_time) for in_time in (2, 7, 8, 16, 99)] == [True, True, False, False, False]
    assert [is_cut(in_time, of=3) for in_time in (2, 3)] == [True, False]


def test_a_result_in_a_language_that_is_not_known_does_not_cut_a_look_short() -> None:
    assert not read(2.0, None, None, None).is_cut
    assert not read().is_cut
    assert let_read(Reader("x"), "?", [], seconds=1) == read()


def test_what_was_not_read_has_no_lead_that_could_make_it_surer() -> None:
    hits = [hit("a", 0.5), hit("b", 0.2), hit("c", 0.1)]
    unread, as_the_others = (look_again(hits, read(one, -1.0, -3.0))[0].score for one in (None, -1.0))

    assert unread < look_again(hits, read(3.0, -1.0, -3.0))[0].score
    assert unread == pytest.approx(as_the_others, abs=0.06)


def test_what_reads_like_no_answer_is_certain_only_where_the_first_look_was() -> None:
    others = [hit("b", 0.1), hit("c", 0.0)]

    def score(first_look: float, *said: float | None) -> float:
        return look_again([hit("a", 0.5, score=first_look), *others], read(*said))[0].score

    assert score(0.6, -1.0, -5.0, -5.0) < CERTAIN < score(0.6, 1.0, -5.0, -5.0)
    assert score(0.8, -1.0, -5.0, -5.0) > CERTAIN
    assert score(0.2, -4.0, 3.0, 3.0) < score(0.2, -1.0, -5.0, -5.0)  # it is no score of its own
    assert score(0.6, None, -9.0, -9.0) < CERTAIN  # it is expected to


def test_a_look_that_was_cut_short_is_less_sure_that_nothing_else_reads_as_well() -> None:
    hits = [hit("a", 0.4, score=0.6), hit("b", 0.3), hit("c", 0.25), hit("d", 0.2)]
    shares = [1.0, 0.5, 0.2, 0.1]
    scores = [look_again(hits, read(1.0, -1.0, None, None, share=share))[0].score for share in shares]

    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_the_first_result_is_surer_where_the_first_look_was_sure_too() -> None:
    said = read(2.0, 2.0, 1.0)
    sure, unsure = (
        look_again([hit("a", 0.4, score=score), hit("b", 0.3), hit("c", 0.2)], said)[0].score
        for score in (0.9, 0.2)
    )

    assert sure > CERTAIN > unsure


def test_the_first_result_is_surer_where_nothing_else_reads_like_an_answer() -> None:
    hits = [hit("a", 0.4), hit("b", 0.3), hit("c", 0.2)]
    alone, one_of_two = (
        look_again(hits, said)[0].score for said in (read(2.0, -3.0, -3.0), read(2.0, 2.0, -3.0))
    )

    assert alone > one_of_two


def test_an_identifier_that_stands_nowhere_makes_the_second_look_doubt_too():
    hits = [hit("a", 0.6), hit("b", 0.1), hit("c", 0.0)]

    assert look_again(hits, read(6.0, -6.0, -6.0))[0].score > CERTAIN
    assert look_again(hits, read(6.0, -6.0, -6.0), "what is HW-3001?")[0].score < CERTAIN


def test_what_a_second_look_says_of_a_result_is_explained_where_reasons_are_wanted() -> None:
    hits = [replace(hit(name, 0.3), explanation={"score": 0.3}) for name in "abcd"]

    assert [
        dict(one.explanation or {}) for one in with_reasons(hits, read(1.234, None, None, None, reached=2))
    ] == [
        {"score": 0.3, "secondLook": {"place": 1, "logOdds": 1.23}},
        {"score": 0.3, "secondLook": {"place": 2, "logOdds": None, "unread": "language"}},
        {"score": 0.3, "secondLook": {"place": 3, "logOdds": None, "unread": "time"}},
        {"score": 0.3, "secondLook": {"place": 4, "logOdds": None, "unread": "time"}},
    ]
    assert with_reasons([hit("a", 0.3)], read(2.0)) == [hit("a", 0.3)]


def test_what_was_read_is_told_in_a_sentence() -> None:
    told = what_was_read(read(2.0, None, None, reached=2), "reader", 41.6)

    assert told == (
        "second look: reader read 1 of 3 results in 42 ms;"
        " 1 is, or the question is, in a language that it does not know, for 1 there was no time"
    )
    assert what_was_read(read(2.0, 3.0), "reader", 41.6) == "second look: reader read 2 of 2 results in 42 ms"
