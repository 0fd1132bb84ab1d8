from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import split_lines


def test_the_three_line_breaks_of_editors_end_a_line():
    assert split_lines("a\nb\r\nc\rd") == ["a", "b", "c", "d"]


def test_other_separators_of_unicode_stay_inside_the_line():
    line = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"
    assert split_lines(line) == [line]


def test_a_final_line_break_makes_no_extra_line_but_a_blank_line_counts():
    assert split_lines("") == []
    assert split_lines("\n") == [""]
    assert split_lines("a\n") == ["a"]
    assert split_lines("a\r\n\r\n") == ["a", ""]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n"))), st.sampled_from(["\n", "\r\n", "\r"]))
def test_lines_that_were_ended_come_back(lines, line_break):
    assert split_lines("".join(line + line_break for line in lines)) == lines
