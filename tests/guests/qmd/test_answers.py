"""Reading answers: whatever a program prints, there are answers or there is a reason."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.guests.qmd.answers import Answer, read_answers
from plainmind.memory.backend import BackendFailed

REAL = {
    "docid": "#168867",
    "score": 0.61,
    "file": "qmd://memory-dir-main/network.md",
    "line": 7,
    "title": "Network and machines",
    "snippet": "@@ -6,4 @@ (5 before, 14 after)\n- gull\n- tern: gateway\n\n## Hosted",
}
READ = Answer("memory-dir-main", "network.md", 0.61, 7, 6, ("- gull", "- tern: gateway", "", "## Hosted"))


def printed(*items):
    return json.dumps(items).encode()


def test_an_answer_as_the_program_prints_it():
    assert read_answers(printed(REAL)) == (READ,)


def test_nothing_found_is_an_answer_in_each_of_its_forms():
    assert read_answers(b"[]\n") == ()
    assert read_answers(b"No results found.\n") == ()


def test_answers_are_found_among_other_things():
    noise = b"[1/2] loading [fast]\n" + printed(REAL) + b"\nggml_abort: [backtrace]"

    assert read_answers(noise) == (READ,)


@pytest.mark.parametrize(
    "output", [b"", b"   ", b"error: no such table", b"{}", b"[{ not json", b"\xff\xfe" * 100, b"[" * 100_000,
               b'[{"score": NaN, "file": "qmd://a/b.md"}]', b"[1, 2]", b'[{"title": "no file"}]']
)  # fmt: skip
def test_what_cannot_be_read_is_a_failure_and_never_no_results(output):
    with pytest.raises(BackendFailed, match="printed"):
        read_answers(output)


def test_a_collection_beside_a_path_is_understood():
    (answer,) = read_answers(printed({"file": "a/b.md", "collection": "docs", "start_line": 3, "body": "x"}))

    assert (answer.collection, answer.path, answer.first_line, answer.text) == ("docs", "a/b.md", 3, ("x",))


def test_the_name_of_an_index_is_no_part_of_a_path():
    (answer,) = read_answers(printed({**REAL, "file": "qmd://docs/a b.md?index=other"}))

    assert answer.path == "a b.md"


def test_a_line_that_was_cut_short_is_not_taken_for_a_line_of_the_file():
    (answer,) = read_answers(printed({**REAL, "snippet": "@@ -1,2 @@\nwhole line\nhalf a li..."}))

    assert (answer.text, answer.cut) == (("whole line",), "half a li")


def test_a_mark_at_the_very_beginning_of_a_file_is_no_part_of_its_first_line():
    (answer,) = read_answers(printed({**REAL, "line": 1, "snippet": "@@ -1,1 @@\n\ufefffirst"}))

    assert answer.text == ("first",)


@pytest.mark.parametrize("score", [None, "0.5", True, [], -1, 1e30])
def test_a_score_that_is_none_is_the_lowest(score):
    (answer,) = read_answers(printed({**REAL, "score": score}))

    assert answer.score == 0.0


def test_some_answers_that_cannot_be_read_do_not_cost_the_others():
    assert read_answers(printed({"file": 7}, REAL, {"file": "qmd://nothing"})) == (READ,)


@given(st.binary(max_size=300))
def test_any_bytes_are_answers_or_a_failure(output):
    with suppress(BackendFailed):
        assert isinstance(read_answers(output), tuple)


JSON = st.sampled_from(
    [None, True, False, 0, -1, 7, 10**30, 0.5, -0.0, 1e300, "", "7", "qmd://", "qmd://a", "qmd://a/b.md", "a/b.md",
     "@@ -0,0 @@", "@@ -999999999,1 @@\nx", "@@ -5 @@", "a\n\nb...", "\ud83d\ude00\n", [], [1], {}, {"a": []}]
)  # fmt: skip
ITEMS = st.dictionaries(
    st.sampled_from(["file", "collection", "score", "line", "start_line", "snippet", "body"]), JSON
)


@given(st.lists(ITEMS, max_size=4))
def test_any_objects_are_answers_or_a_failure(items):
    try:
        answers = read_answers(printed(*items))
    except BackendFailed:
        return
    for answer in answers:
        assert 0.0 <= answer.score <= 1.0
        assert answer.line >= 1
        assert answer.first_line >= 1
