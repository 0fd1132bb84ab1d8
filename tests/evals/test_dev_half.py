"""The half of the larger questions that is looked at while working: answered as well as when the floors were set."""

from __future__ import annotations

from pathlib import Path

import pytest

from plainmind.base.model import CERTAIN
from plainmind.guests.evaluation.dataset import read_dataset
from plainmind.guests.evaluation.runner import Asking, evaluate, opened_memory, summarise
from plainmind.guests.evaluation.scoring import scores_of

SET = Path(__file__).resolve().parents[2] / "evals" / "plainmind"

# By kind: recall of six and how many are first, a question or two below what was measured.
FLOORS = {
    "across": (0.82, 0.46), "code": (0.96, 0.93), "date": (0.88, 0.72), "fact": (0.97, 0.79),
    "name": (0.90, 0.69), "now": (0.94, 0.72), "paraphrase": (0.59, 0.18), "title": (0.98, 0.95),
    "typo": (0.92, 0.68), "why": (0.97, 0.82),
}  # fmt: skip
MOST_CERTAIN_WITHOUT_AN_ANSWER = 0.15
CERTAIN_FLOOR = 0.52  # of right first answers


@pytest.fixture(scope="module")
def answers():
    return evaluate(read_dataset(str(SET), queries="dev"), opened_memory, Asking()).answers


@pytest.fixture(scope="module")
def summary(answers):
    return summarise(answers)


@pytest.mark.parametrize("kind", FLOORS)
def test_answers_of_each_kind_are_as_good_as_they_were(summary, kind):
    recall, first = FLOORS[kind]

    assert summary.by_category[kind][1]["recall6"] >= recall
    assert summary.by_category[kind][1]["hit1"] >= first


def test_every_kind_has_a_floor(summary):
    assert set(summary.by_category) == set(FLOORS)


def test_hardly_one_in_seven_questions_without_an_answer_gets_something_certain(summary):
    assert 1 - summary.silent <= MOST_CERTAIN_WITHOUT_AN_ANSWER


def test_most_right_first_answers_of_them_are_certain(answers):
    right = [one for one in answers if one.question.evidence and scores_of(one.question, one.shown)["hit1"]]

    assert sum(one.shown[0].score >= CERTAIN for one in right) >= CERTAIN_FLOOR * len(right)
