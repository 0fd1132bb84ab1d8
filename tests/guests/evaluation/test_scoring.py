"""Figures computed by hand, and the same as those of the program that scores the public sets."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from plainmind.base.value import replace
from plainmind.guests.evaluation.dataset import Evidence, Question
from plainmind.guests.evaluation.runner import summarise
from plainmind.guests.evaluation.scoring import METRICS, Answer, Shown, means, scores_of, write_results

SCORE = Path(__file__).resolve().parents[3].parent / "shared" / "evals" / "score.py"


def question(*evidence, any_line=False, category="c", name="q"):
    return Question(name, "?", category, date(2026, 1, 1), tuple(evidence), any_line)


def test_every_figure_of_an_answer_that_was_scored_by_hand():
    asked = question(Evidence("a.md", 1, 2), Evidence("b.md", 7, 7), Evidence("a.md", 2, 2))
    shown = [
        Shown("c.md", 1, 9, 400),
        Shown("a.md", 2, 5, 200),
        *[Shown("d.md", 1, 1, 40)] * 4,
        Shown("b.md", 7, 7, 80),
    ]

    figures = scores_of(asked, shown)

    assert list(figures) == list(METRICS)
    assert figures == {
        "recall6": 1 / 3,  # of lines a:1, a:2 and b:7 the first six show a:2
        "full6": 0.0,
        "hit1": 0.0,
        "hit6": 1.0,
        "mrr10": 1 / 2,
        "ndcg10": pytest.approx((1 / math.log2(3) + 1 / 3) / (1 + 1 / math.log2(3) + 1 / 2)),
        "tok6": (400 + 200 + 4 * 40) / 4,
        "rB2400": 2 / 3,
    }


def test_one_line_proves_an_item_where_any_line_will_do():
    asked = question(Evidence("a.md", 1, 9), Evidence("b.md", 1, 9), any_line=True)

    figures = scores_of(asked, [Shown("a.md", 5, 5, 10)])

    assert (figures["recall6"], figures["full6"], figures["hit1"]) == (0.5, 0.0, 1.0)
    assert scores_of(asked, [Shown("a.md", 5, 5, 10), Shown("b.md", 9, 9, 10)])["full6"] == 1.0


def test_one_place_is_the_whole_answer_where_all_places_say_the_same():
    asked = replace(question(Evidence("a.md", 1, 2), Evidence("b.md", 7, 7)), one_piece=True)

    figures = scores_of(asked, [Shown("c.md", 1, 9, 10), Shown("b.md", 6, 7, 10), Shown("a.md", 1, 2, 10)])

    assert (figures["recall6"], figures["full6"], figures["hit1"], figures["mrr10"]) == (1.0, 1.0, 0.0, 0.5)
    assert scores_of(asked, [Shown("a.md", 3, 9, 10)])["recall6"] == 0.0


def test_nothing_shown_is_nothing_found():
    assert set(scores_of(question(Evidence("a.md", 1, 1)), []).values()) == {0.0}


def test_reading_stops_when_the_budget_is_spent_but_never_before_the_first_result():
    asked = question(Evidence("a.md", 1, 1), Evidence("b.md", 1, 1))
    first, second = Shown("a.md", 1, 1, 9_700), Shown("b.md", 1, 1, 4)

    assert scores_of(asked, [first, second])["rB2400"] == 0.5
    assert scores_of(asked, [second, first])["rB2400"] == 0.5
    assert scores_of(asked, [Shown("a.md", 1, 1, 9_596), second])["rB2400"] == 1.0


def test_many_results_on_one_line_never_count_more_than_the_ideal():
    asked = question(*(Evidence("a.md", line, line) for line in range(1, 31)))

    assert scores_of(asked, [Shown("a.md", 1, 30, 10)])["ndcg10"] == 1.0


def test_means_have_four_places():
    rows = [dict.fromkeys(METRICS, value) for value in (0.0, 0.0, 1.0)]

    assert means(rows) == dict.fromkeys(METRICS, 0.3333)


def any_answer(chance, number):
    paths = [f"memory/{name}.md" for name in "abcd"]

    def lines():
        first = chance.randint(1, 30)
        return first, first + chance.choice([0, 0, 1, 4])

    evidence = [Evidence(chance.choice(paths), *lines()) for _ in range(chance.choice([1, 1, 2, 14]))]
    shown = [
        Shown(chance.choice(paths), *lines(), chance.randint(0, 3000)) for _ in range(chance.randint(0, 14))
    ]
    asked = question(
        *evidence, any_line=chance.random() < 0.3, category=chance.choice(["one", "two"]), name=f"q{number}"
    )
    return Answer(chance.choice(["x", "y"]), asked, tuple(shown), 1.0)


@pytest.mark.skipif(not SCORE.exists(), reason="the public sets are not there")
def test_figures_are_those_of_the_program_that_scores_the_public_sets(tmp_path):
    chance = random.Random(7)
    answers = sorted((any_answer(chance, number) for number in range(300)), key=lambda one: one.workspace)
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        rows = [
            {
                "id": one.question.id,
                "query": "?",
                "category": one.question.category,
                "gold": [
                    {"path": item.path, "line_start": item.first_line, "line_end": item.last_line}
                    for item in one.question.evidence
                ],
                **({"gold_mode": "any"} if one.question.any_line else {}),
            }
            for one in answers
            if one.workspace == name
        ]
        (tmp_path / name / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    results = tmp_path / "results.jsonl"
    write_results(str(results), answers)

    scored = subprocess.run(
        [sys.executable, str(SCORE), str(tmp_path), str(results), "--by-category"],
        capture_output=True,
        text=True,
        check=True,
    )

    ours = summarise(answers)
    assert json.loads(scored.stdout) == {
        "n": ours.count,
        "all": ours.overall,
        "by_category": {name: {"n": count, **row} for name, (count, row) in ours.by_category.items()},
    }
