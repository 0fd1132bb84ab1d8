"""The table of the public sets says truly what was reached, and is left alone where there are none."""

from __future__ import annotations

import json
import sys

import evaluate
import pytest

from plainmind.guests.evaluation.runner import Summary
from plainmind.guests.evaluation.scoring import METRICS


def row(name, recall, hit, budget=evaluate.DEFAULT):
    figures = {**dict.fromkeys(METRICS, 0.0), "recall6": recall, "hit1": hit}
    return evaluate.Row(name, budget, Summary(9, figures, {}, 0, None, 4.0, 8.0), ())


@pytest.mark.parametrize(
    ("recall", "hit", "verdict"),
    [(0.9, 0.72, "goal"), (0.95, 0.71, "floor"), (0.8396, 0.62, "floor"), (0.83, 0.9, "**below**")],
)
def test_a_figure_is_held_against_floor_and_goal(recall, hit, verdict):
    assert row("locomo", recall, hit).verdict == verdict


def test_a_set_without_a_target_for_the_first_hit_needs_none():
    assert row("cranfield", 0.33, 0.0).verdict == "floor"


def test_a_row_shows_figures_targets_and_times():
    assert row("locomo", 0.8449, 1.0).cells() == (
        "| locomo (9) | .845 / 1.000 | 0 | .840 / .620 | .900 / .720 | floor | 4.0 / 8.0 |"
    )
    assert row("other", 0.5, 0.5).cells() == "| other (9) | .500 / .500 | 0 | – | – |  | 4.0 / 8.0 |"


def test_both_budgets_have_targets_for_the_same_sets():
    assert list(evaluate.DEFAULT.targets) == list(evaluate.WIDE.targets)


def test_without_sets_it_says_so_and_changes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["evaluate.py", str(tmp_path / "none")])
    monkeypatch.setattr(evaluate, "PAGE", tmp_path / "page.md")

    assert evaluate.main() == 0

    assert capsys.readouterr().out.startswith("skipped: there are no question sets in ")
    assert list(tmp_path.iterdir()) == []


def test_a_set_is_measured_and_written_between_the_markers(tmp_path, monkeypatch, capsys):
    workspace = tmp_path / "sets" / "small" / "house"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory" / "a.md").write_text("The gateway runs on a Mac Studio.\n")
    gold = [{"path": "memory/a.md", "line_start": 1, "line_end": 1}]
    question = {"id": "q", "query": "where does the gateway run?", "category": "c", "gold": gold}
    (workspace / "queries.jsonl").write_text(json.dumps(question))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{evaluate.START}\nold\n{evaluate.END}\nafter\n")
    curve = tmp_path / "curve.svg"
    monkeypatch.setattr(evaluate, "PAGE", page)
    monkeypatch.setattr(evaluate, "CURVE", curve)
    monkeypatch.setattr(evaluate, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["evaluate.py", str(tmp_path / "sets")])

    assert evaluate.main() == 0

    text = page.read_text()
    assert text.startswith(f"before\n{evaluate.START}\n`make eval`, ")
    assert text.endswith(f"\n{evaluate.END}\nafter\n")
    assert text.count("| small (1) | 1.000 / 1.000 |") == 2
    assert "old" not in text
    assert "![What scores mean](curve.svg)" in text
    assert curve.read_text().startswith("<svg ")
