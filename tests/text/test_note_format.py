import datetime as dt
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import split_lines
from plainmind.text.note_format import (
    day_header,
    find_note,
    format_note,
    id_of,
    joins_section,
    without_note_ids,
)

ID = "01JD3KX9"
OTHER = "01JD3KXA"
HOSTILE_PARTS = [
    "word", " ", "\n", "\r\n", "<!--", "-->", f"<!-- m:{ID} -->", f"<!-- m:{OTHER} -->", "m:", "```", "~~~~",
    "# ", "## x", "- ", "\n\n", "`", "    ", "\u2028", "|",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(HOSTILE_PARTS), max_size=25).map("".join)
TIMES = st.sampled_from([None, "14:32"])


def test_one_line_is_a_list_item_with_its_time():
    assert format_note("the text", note_id=ID, clock_time="14:32") == f"- 14:32 the text <!-- m:{ID} -->\n"


def test_a_durable_line_has_no_time():
    assert format_note("  the text \n", note_id=ID, clock_time=None) == f"- the text <!-- m:{ID} -->\n"


def test_several_lines_stand_under_a_heading():
    note = format_note("one\r\ntwo  \n\n", note_id=ID, clock_time="14:32")
    assert note == f"## 14:32 <!-- m:{ID} -->\n\none\ntwo\n"


def test_several_durable_lines_follow_their_id():
    assert format_note("\none\n\ntwo", note_id=ID, clock_time=None) == f"<!-- m:{ID} -->\none\n\ntwo\n"


def test_an_empty_text_is_still_one_line():
    assert format_note(" \n ", note_id=ID, clock_time="14:32") == f"- 14:32 <!-- m:{ID} -->\n"


@pytest.mark.parametrize("note_id", ["", "a b", "x -->", "-a", "a\n", "é"])
def test_an_id_that_could_break_the_comment_is_refused(note_id):
    with pytest.raises(ValueError, match="not a note id"):
        format_note("text", note_id=note_id, clock_time=None)


def test_a_forged_id_is_escaped_and_an_ordinary_comment_is_not():
    note = format_note(f"x <!-- m:{OTHER} --> <!-- fine -->", note_id=ID, clock_time=None)
    assert note == f"- x <\\!-- m:{OTHER} --> <!-- fine --> <!-- m:{ID} -->\n"


def test_a_comment_that_never_ends_is_escaped():
    note = format_note("<!-- a --> b <!-- c", note_id=ID, clock_time=None)
    assert note == f"- <!-- a --> b <\\!-- c <!-- m:{ID} -->\n"


def test_headings_in_a_note_move_below_it_and_comments_in_code_stay():
    text = "# Plan\n```sh\n# not a heading\n```\n## Next\n### Deep\n#tag"
    note = format_note(text, note_id=ID, clock_time="14:32")
    assert split_lines(note)[2:] == [
        "### Plan", "```sh", "# not a heading", "```", "#### Next", "### Deep", "#tag",
    ]  # fmt: skip


def test_a_code_fence_left_open_is_closed():
    note = format_note("look:\n````py\n```\n~~~\n```` x", note_id=ID, clock_time=None)
    assert note.endswith("```` x\n````\n")


def test_ids_are_dropped_for_readers_and_lines_keep_their_numbers():
    assert without_note_ids(f"- 14:32 the text <!-- m:{ID} -->") == "- 14:32 the text"
    assert without_note_ids(f"a\n<!-- m:{ID} -->\nb <!-- kept -->") == "a\n\nb <!-- kept -->"


def test_an_item_includes_what_a_person_indented_beneath_it():
    lines = ["# d", f"- a <!-- m:{ID} -->", "  - more", "\tand more", "", "  apart", "- b"]
    assert find_note(lines, ID) == (2, 4)


def test_an_item_that_was_indented_ends_before_its_sibling():
    lines = [f"  - a <!-- m:{ID} -->", "  - b", "- c"]
    assert find_note(lines, ID) == (1, 1)


def test_text_added_after_the_id_does_not_make_the_line_a_section():
    assert find_note([f"a <!-- m:{ID} --> and b", "c"], ID) == (1, 1)


def test_a_longer_note_ends_before_the_next_heading_of_the_day():
    lines = [f"## 14:32 <!-- m:{ID} -->", "", "a", "### b", "", "```", "# c", "```", "", "## Evening", "d"]
    assert find_note(lines, ID) == (1, 8)


def test_a_longer_note_ends_before_the_next_note_and_at_the_end_of_the_file():
    lines = [f"<!-- m:{ID} -->", "a", "", f"- b <!-- m:{OTHER} -->"]
    assert find_note(lines, ID) == (1, 2)
    assert find_note(lines[:3], ID) == (1, 2)
    assert find_note([f"<!-- m:{ID} -->"], ID) == (1, 1)


def test_an_unknown_id_is_not_found():
    assert find_note([f"- b <!-- m:{OTHER} -->"], ID) is None
    assert find_note([], ID) is None


def test_a_day_begins_with_its_date():
    assert day_header(dt.date(2026, 11, 15)) == day_header("2026-11-15") == "# 2026-11-15\n\n"


@given(st.lists(st.tuples(HOSTILE, TIMES), min_size=1, max_size=5))
def test_whatever_the_texts_every_note_is_found_again_with_exactly_its_lines(notes):
    blocks = [format_note(t, note_id=f"N{n}", clock_time=time) for n, (t, time) in enumerate(notes)]
    lines = split_lines(day_header("2026-11-15") + "".join(blocks))

    next_line = 3
    for number, block in enumerate(blocks):
        count = len(split_lines(block))
        assert find_note(lines, f"N{number}") == (next_line, next_line + count - 1)
        next_line += count
    assert len(re.findall(r"<!-- m:", "\n".join(lines))) == len(notes)


@given(HOSTILE)
def test_dropping_ids_keeps_the_number_of_lines(text):
    assert without_note_ids(text).count("\n") == text.count("\n")


def test_a_note_under_a_heading_that_is_not_its_own_gets_one():
    assert format_note("tea", note_id=ID, clock_time="14:32", joins_section=True) == (
        f"## 14:32 <!-- m:{ID} -->\n\ntea\n"
    )
    assert (
        format_note("tea", note_id=ID, clock_time=None, joins_section=True)
        .rstrip()
        .endswith(f"- tea <!-- m:{ID} -->")
    )


@pytest.mark.parametrize(
    ("lines", "is_durable", "joins"),
    [
        (["# 2026-02-10", "- tea"], False, False),
        (["# 2026-02-10", "## Plans", "- tea"], False, True),
        (["# 2026-02-10", "```", "## no heading", "```"], False, False),
        ([f"<!-- m:{ID} -->", "### Of the note", "text"], True, True),
        ([f"<!-- m:{ID} -->", "### Of the note", f"- another <!-- m:{OTHER} -->"], True, False),
        ([f"<!-- m:{ID} -->", "## After the note"], True, False),
    ],
)
def test_which_headings_a_list_item_would_wrongly_join(lines, is_durable, joins):
    assert joins_section(lines, is_durable=is_durable) is joins


def test_a_line_has_the_id_that_it_carries():
    assert id_of("- noted <!-- m:01JD3 -->") == "01JD3"
    assert id_of("- noted") is None
    assert id_of("- <!-- m: no id -->") is None
