"""The bar appears when work takes long and somebody watches, and leaves nothing behind."""

from __future__ import annotations

import io

import pytest
from tests.cli.terminal import at_a_terminal

from plainmind.base.model import Progress
from plainmind.cli.progress import ProgressBar, clip, line_of


class Clock:
    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def drawn(*moments, columns=60):
    """What a bar wrote when the work had come so far at these moments."""
    clock, stream = Clock(), io.StringIO()
    with ProgressBar(stream, "indexing", now=clock, columns=columns) as bar:
        for number, moment in enumerate(moments, 1):
            clock.time = moment
            bar(Progress(number, len(moments), f"file{number}.md"))
    return stream.getvalue()


def test_quick_work_shows_nothing():
    assert drawn(0.1, 0.2, 0.29) == ""


def test_long_work_is_drawn_and_wiped():
    written = drawn(0.1, 0.4, 0.41, 0.5)

    assert "2/4 file2.md" in written
    assert "3/4" not in written  # too soon after the last drawing
    assert "4/4 file4.md" in written
    assert written.endswith("\r\x1b[K")


def test_a_line_is_never_wider_than_the_terminal():
    line = line_of(Progress(3, 4, "memory/" + "文" * 40), "indexing", 50)

    assert sum(2 if sign == "文" else 1 for sign in line) <= 49
    assert "━" * 15 + "─" * 5 in line


def test_nothing_to_do_is_no_division_by_zero():
    assert "0/0" in line_of(Progress(0, 0), "indexing", 80)


def test_control_characters_are_not_drawn():
    assert clip("a\x1b[2Jb\n", 10) == "a[2Jb"


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_person_sees_the_bar_and_a_pipe_does_not(process, workspace):
    for number in range(300):
        (workspace / "memory" / f"topic-{number}.md").write_text(
            f"# Topic {number}\n\n" + f"Sentence {number}. " * 400
        )

    printed, status = at_a_terminal("sync")
    piped = process("sync", "--force")

    assert status == 0
    assert "indexing ━" in printed
    assert "indexed 303 files" in printed.rpartition("\x1b[K")[2]
    assert "━" not in piped.out + piped.err
