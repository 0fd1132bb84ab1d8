"""Placing answers: a hit is made of lines that stand in the file now."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import Document
from plainmind.guests.qmd.answers import Answer, placed

TEXT = "# Network\n\n- gull: builds\n- tern: gateway\n\n## Hosted\n- skagen: tides\n"


def document(text=TEXT, **more):
    return Document("memory/network.md", "memory", text, **more)


def answer(first, *lines, line=None, cut=""):
    return Answer("memory-dir-main", "network.md", 0.5, line or first, first, lines, cut)


def place(found, doc=None, *, offset=0, snippet_chars=700):
    return placed(found, doc or document(), offset=offset, snippet_chars=snippet_chars)


def test_the_lines_of_a_hit_are_the_lines_of_its_snippet():
    hit = place(answer(3, "- gull: builds", "- tern: gateway", "", "## Hosted", line=4))

    assert (hit.start_line, hit.end_line) == (3, 6)
    assert hit.snippet == "- gull: builds\n- tern: gateway\n\n## Hosted"


def test_lines_that_have_moved_are_found_where_they_are_now():
    hit = place(answer(3, "- gull: builds", line=3), document("new\nnew\nnew\n" + TEXT))

    assert hit.start_line == 6


def test_of_equal_lines_the_nearest_is_meant():
    repeated = document("a\nsame\nb\nc\nd\nsame\n")

    assert place(answer(5, "same"), repeated).start_line == 6
    assert place(answer(3, "same"), repeated).start_line == 2


def test_text_that_the_file_does_not_have_any_more_is_no_hit():
    assert place(answer(3, "- gull: builds", "- secret: forgotten", line=4)) is None
    assert place(answer(3, "- secret: forgotten")) is None


def test_when_only_what_stood_around_it_has_changed_the_best_line_is_left():
    hit = place(answer(3, "- gull: tests", "- tern: gateway", line=4))

    assert (hit.start_line, hit.end_line, hit.snippet) == (4, 4, "- tern: gateway")


def test_without_any_text_the_line_counts_if_there_is_one():
    assert place(answer(4)).snippet == "- tern: gateway"
    assert place(answer(400)) is None
    assert place(answer(2)) is None  # an empty line says nothing


def test_a_long_snippet_keeps_the_best_line_and_what_fits_around_it():
    hit = place(answer(3, "- gull: builds", "- tern: gateway", "", "## Hosted", line=4), snippet_chars=30)

    assert (hit.start_line, hit.end_line, hit.snippet) == (4, 6, "- tern: gateway\n\n## Hosted")


def test_a_line_longer_than_a_snippet_is_cut():
    hit = place(answer(1, "x" * 100), document("x" * 100), snippet_chars=40)

    assert (hit.snippet, hit.start_line, hit.end_line) == ("x" * 40, 1, 1)


LONG = document("\n".join(["x" * 600, "the falcon " + "y" * 600, "z" * 600]))


def test_the_best_line_is_found_behind_a_long_one_that_is_all_that_was_shown():
    hit = place(answer(1, line=2, cut="x" * 497), LONG)

    assert (hit.start_line, hit.end_line, hit.snippet[:10]) == (2, 2, "the falcon")
    assert place(answer(1, line=2, cut="other"), LONG) is None


def test_a_line_that_was_shown_in_part_is_known_by_its_beginning():
    hit = place(answer(1, "x" * 600, line=2, cut="the fal"), LONG)
    alone = place(answer(1, "something else", line=2, cut="the fal"), LONG)

    assert (hit.start_line, alone.start_line) == (2, 2)
    assert place(answer(1, "something else", line=2, cut="the owl"), LONG) is None


def test_the_head_of_an_export_is_passed_over_and_lines_lead_back_to_the_transcript():
    talk = document("User: hello\nAssistant: the gateway\n", line_map=(4, 7))
    shown = ("# Session abc", "", "User: hello", "Assistant: the gateway")

    hit = place(answer(1, *shown, line=4), talk, offset=2)

    assert (hit.start_line, hit.end_line) == (4, 7)
    assert hit.snippet == "User: hello\nAssistant: the gateway"


LINES = st.lists(st.sampled_from(["", "a", "b", "c c", "  d"]), min_size=1, max_size=12)


@given(LINES, st.data())
def test_a_snippet_is_always_the_cited_lines_of_the_file(lines, data):
    first = data.draw(st.integers(1, len(lines) + 3))
    shown = data.draw(st.lists(st.sampled_from(["", "a", "b", "c c"]), max_size=4))
    best = data.draw(st.integers(1, len(lines) + 5))
    chars = data.draw(st.integers(1, 40))
    cut = data.draw(st.sampled_from(["", "a", "c"]))

    hit = place(answer(first, *shown, line=best, cut=cut), document("\n".join(lines)), snippet_chars=chars)

    if hit is not None:
        cited = "\n".join(lines[hit.start_line - 1 : hit.end_line])
        assert hit.snippet == cited[:chars]
        assert len(hit.snippet) == len(cited) or hit.start_line == hit.end_line


@given(LINES, st.data())
def test_lines_of_the_file_are_always_found_in_it(lines, data):
    first = data.draw(st.integers(0, len(lines) - 1))
    shown = tuple(line.rstrip() for line in lines[first : first + 3])
    moved = data.draw(st.integers(1, len(lines) + 3))

    hit = place(answer(moved, *shown, line=moved), document("\n".join(lines)))

    if any(line.strip() for line in shown):
        assert hit is not None


def test_the_ids_of_notes_are_not_shown():
    noted = "- 19:39 the ferry leaves at seven <!-- m:01M7GBJ900BG8D8JFH3F1Q88CW -->"
    hit = place(answer(1, noted), document(noted + "\n"))

    assert hit.snippet == "- 19:39 the ferry leaves at seven"
