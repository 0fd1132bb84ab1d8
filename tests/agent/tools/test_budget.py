"""What reaches a model is never more than the limits say, and cites exactly what it shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plainmind.agent.answers import fit, reading_chars, shorten
from plainmind.agent.scope import Limits
from plainmind.base.model import SearchHit
from plainmind.base.value import replace


def hit(text: str, first: int = 3) -> SearchHit:
    return SearchHit("memory/a.md", first, first + text.count("\n"), 0.5, text, "memory")


def test_snippets_that_fit_are_left_alone():
    hits = (hit("one"), hit("two\nlines"))

    assert fit(hits, Limits()) == list(hits)


def test_a_long_snippet_loses_whole_lines_and_no_longer_cites_them():
    short = shorten(hit("one\ntwo\nthree"), 9)

    assert (short.snippet, short.start_line, short.end_line) == ("one\ntwo", 3, 4)


def test_a_line_that_is_too_long_by_itself_is_cut_and_says_so():
    short = shorten(hit("x" * 50 + "\nmore"), 10)

    assert (short.snippet, short.end_line) == ("x" * 9 + "…", 3)


def test_a_snippet_that_is_cut_goes_on_from_the_line_that_answers():
    found = replace(hit("one\ntwo\nthe answer\nmore"), best_line=5)

    assert shorten(found, 17) == replace(found, snippet="the answer\nmore", start_line=5)
    assert shorten(found, 12) == replace(found, snippet="the answer", start_line=5, end_line=5)
    assert shorten(replace(found, best_line=4), 8).snippet == "one\ntwo"


def test_the_lines_of_a_conversation_keep_their_numbers():
    said = SearchHit("sessions/a.jsonl", 3, 40, 0.5, "User: tea?\nAssistant: yes", "sessions")

    assert shorten(said, 12).end_line == 40


def test_all_snippets_together_keep_the_budget_and_the_best_come_first():
    hits = [hit("x" * 600) for _ in range(6)]

    taken = fit(hits, Limits(max_results=6, max_snippet_chars=700, max_injected_chars=1500))

    assert [len(one.snippet) for one in taken] == [600, 600, 300]


def test_there_are_never_more_hits_than_the_limit():
    assert len(fit([hit("x")] * 9, Limits(max_results=2))) == 2


lines = st.text(alphabet="ab <|", max_size=30)
hits_ = st.lists(st.lists(lines, min_size=1, max_size=8).map("\n".join).map(hit), max_size=9)
limits_ = st.builds(
    Limits,
    max_results=st.integers(1, 8),
    max_snippet_chars=st.integers(1, 120),
    max_injected_chars=st.integers(1, 400),
)


@given(hits_, limits_)
def test_no_limit_is_ever_passed(hits, limits):
    taken = fit(hits, limits)

    assert len(taken) <= limits.max_results
    assert sum(len(one.snippet) for one in taken) <= limits.max_injected_chars
    for one in taken:
        assert len(one.snippet) <= limits.max_snippet_chars
        assert one.end_line - one.start_line >= one.snippet.count("\n")


def test_reading_may_give_more_than_searching():
    assert reading_chars(Limits(max_injected_chars=4000)) == 12_000
