"""A program writes between its marks and nowhere else."""

from __future__ import annotations

import pytest
from page_parts import markdown_table, publish


def test_what_stands_between_the_marks_is_replaced_and_the_rest_is_kept(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n<from>\nold\n<to>\nend\n")

    publish(page, "new\nlines", start="<from>", end="<to>")
    publish(page, "newest", start="<from>", end="<to>")

    assert page.read_text() == "# Title\n<from>\nnewest\n<to>\nend\n"


def test_a_page_without_marks_is_left_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n")

    with pytest.raises(ValueError, match="not enough values"):
        publish(page, "new", start="<from>", end="<to>")
    assert page.read_text() == "# Title\n"


def test_rows_become_a_table_with_the_first_as_its_head():
    assert markdown_table([("a", "b"), ("  1", "2")]) == "| a | b |\n|---|---|\n| 1 | 2 |"
