"""Numbers and dates read as people say them."""

from __future__ import annotations

from datetime import date

import pytest

from plainmind.cli.console import (
    age_in_words,
    cells,
    duration_in_words,
    first_few,
    fitting,
    plural,
    size_in_words,
    wrapped,
)


def test_a_wide_letter_takes_two_columns():
    assert (cells("abc"), cells("日本"), cells("cafe\u0301")) == (3, 4, 4)


def test_what_does_not_fit_is_cut_and_says_so():
    assert fitting("short", 5) == "short"
    assert fitting("a longer one", 8) == "a longe…"
    assert fitting("日本語です", 7) == "日本語…"


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("fits", ["fits"]),
        ("- one two three four", ["- one two", "  three", "  four"]),
        ("x" * 20, ["x" * 10, "x" * 10]),
        ("- 上周五开会决定", ["- 上周五开", "  会决定"]),
    ],
)
def test_a_long_line_is_wrapped_below_its_beginning(line, parts):
    assert wrapped(line, 10) == parts


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (9_949, "9.9 kB"), (9_960, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"), (34_000_000, "34 MB"), (5_000_000_000, "5.0 GB"), (10**16, "10000 TB"),
    ],
)  # fmt: skip
def test_sizes(count, words):
    assert size_in_words(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0004, "0 ms"),
        (0.5, "500 ms"),
        (0.9996, "1.0 s"),
        (12.34, "12.3 s"),
        (59.96, "1 min 0 s"),
        (200, "3 min 20 s"),
    ],
)
def test_durations(seconds, words):
    assert duration_in_words(seconds) == words


@pytest.mark.parametrize(
    ("day", "words"),
    [
        ("2026-02-10", "today"), ("2026-02-09", "yesterday"), ("2026-02-01", "9 days old"),
        ("2025-11-01", "3 months old"),
        ("2023-02-10", "3 years old"), ("2026-02-11", "in 1 day"), ("2026-02-20", "in 10 days"), ("never", ""),
    ],
)  # fmt: skip
def test_ages(day, words):
    assert age_in_words(day, date(2026, 2, 10)) == words


def test_counts_and_lists():
    assert (plural(1, "file"), plural(1200, "file"), plural(2, "entry", "entries")) == (
        "1 file", "1,200 files", "2 entries",
    )  # fmt: skip
    assert first_few(["a", "b"]) == "a, b"
    assert first_few(["a", "b", "c", "d"]) == "a, b, c …"
