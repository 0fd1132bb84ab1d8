"""What is over is left out or stands lower, and the line that took a place is found wherever it went."""

from __future__ import annotations

from plainmind.base.model import NewerLine, SearchHit
from plainmind.search.selection import heed

TODAY, PAST = "2026-11-16", "2020-01-31"


def hit(path, line, text, score, last=None):
    return SearchHit(path, line, last or line, score, text, "memory", best_line=line)


def heeded(hits, files, *, with_expired=True):
    return heed(hits, today=TODAY, lines_of=files.get, verdicts={}, with_expired=with_expired)


def test_what_is_over_is_left_out_unless_it_is_asked_for():
    files = {"a.md": [f"the network is called Linde (until {PAST})"], "b.md": ["the network is in the attic"]}
    hits = [hit(path, 1, lines[0], 0.5) for path, lines in files.items()]

    assert [each.path for each in heeded(hits, files, with_expired=False)] == ["b.md"]
    assert [each.path for each in heeded(hits, files)] == ["b.md", "a.md"]


def test_where_both_lines_are_shown_the_newer_one_is_the_best():
    old = f"~~the network is called Linde~~ (until {PAST}, now a.md#L3)"
    files = {"a.md": [old, "", "the network is called Buche"]}
    (shown,) = heeded([hit("a.md", 1, "\n".join(files["a.md"]), 0.5, last=3)], files)

    assert (shown.best_line, shown.newer, shown.score) == (3, None, 0.5)


def test_the_newer_line_comes_before_the_old_one_and_others_stay():
    old = f"~~the network is called Linde~~ (until {PAST}, now b.md#L1)"
    files = {"a.md": [old], "b.md": ["the network is called Buche"], "c.md": ["a network of friends"]}
    hits = [
        hit("a.md", 1, old, 0.9),
        hit("c.md", 1, files["c.md"][0], 0.4),
        hit("b.md", 1, files["b.md"][0], 0.3),
    ]
    shown = heeded(hits, files)

    assert [each.path for each in shown] == ["b.md", "a.md", "c.md"]
    assert shown[1].newer == NewerLine("b.md", 1, "the network is called Buche")


def test_lines_that_name_each_other_as_the_newer_one_come_to_an_end():
    files = {
        "a.md": [f"~~the network is called Linde~~ (until {PAST}, now b.md#L1)"],
        "b.md": [f"~~the network is called Buche~~ (until {PAST}, now a.md#L1)"],
    }
    shown = heeded([hit("a.md", 1, files["a.md"][0], 0.9)], files)

    assert [(each.path, each.best_line) for each in shown] == [("a.md", 1)]
