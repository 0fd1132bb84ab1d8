"""What is over is left out or stands lower, and the line that took a place is found wherever it went."""

from __future__ import annotations

from plainmind.base.model import CitedLines, NewerLine, SearchHit
from plainmind.base.value import replace
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


# --- a log that was taken for newer ---

FILES = {"a.md": ["lives in Freiburg"], "2026-05-18.md": ["moved to Leipzig"]}


def log_and_kept(*, older_line=1, with_kept=True):
    log = hit("2026-05-18.md", 1, "moved to Leipzig", 0.9)
    other, kept = hit("c.md", 1, "a third", 0.6), hit("a.md", 1, "lives in Freiburg", 0.5)
    log = replace(log, older=(CitedLines("a.md", older_line, older_line),))
    return [log, other, kept] if with_kept else [log, other]


def in_order(hits, days):
    seen = heed(
        hits,
        today=TODAY,
        lines_of=FILES.get,
        day_of_line=lambda path, _line: days.get(path),
        verdicts={},
        with_expired=True,
    )
    return [(each.path, each.score, [place.path for place in each.older]) for each in seen]


def test_what_was_kept_since_takes_the_place_of_the_log():
    days = {"2026-05-18.md": "2026-05-18", "a.md": "2026-11-01"}
    assert in_order(log_and_kept(), days) == [
        ("a.md", 0.9, ["2026-05-18.md"]),
        ("c.md", 0.6, []),
        ("2026-05-18.md", 0.5, []),
    ]


def test_of_the_same_day_neither_is_called_newer():
    days = {"2026-05-18.md": "2026-05-18", "a.md": "2026-05-18"}
    assert in_order(log_and_kept(), days)[0] == ("a.md", 0.9, [])


def test_a_log_that_is_newer_stays_where_it_is():
    for days in ({"2026-05-18.md": "2026-05-18", "a.md": "2026-01-01"}, {"2026-05-18.md": "2026-05-18"}, {}):
        assert in_order(log_and_kept(), days)[0] == ("2026-05-18.md", 0.9, ["a.md"])
    gone = log_and_kept(older_line=7)
    assert in_order(gone, {"2026-05-18.md": "2026-05-18", "a.md": "2026-11-01"})[0][2] == ["a.md"]


def test_a_log_is_not_called_newer_than_a_line_that_is_not_shown_and_was_kept_since():
    days = {"2026-05-18.md": "2026-05-18", "a.md": "2026-11-01"}
    assert in_order(log_and_kept(with_kept=False), days) == [("2026-05-18.md", 0.9, []), ("c.md", 0.6, [])]
