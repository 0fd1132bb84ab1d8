"""The shipped questions: well made, and answered at least as well as when the floors were set."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from plainmind.base.model import CERTAIN
from plainmind.guests.evaluation.baselines import BASELINES
from plainmind.guests.evaluation.dataset import read_dataset
from plainmind.guests.evaluation.runner import Asking, evaluate, opened_memory, summarise
from plainmind.guests.evaluation.scoring import scores_of

SET = Path(__file__).resolve().parents[2] / "evals" / "plainmind"
CATEGORIES = {
    "absent", "code", "date", "ja", "ko", "log", "newest", "paraphrase", "several", "topic", "typo", "zh",
}  # fmt: skip

# Three points below what was measured. Raise them when ranking gets better; lower them only with a reason.
FLOORS = {"recall6": 0.95, "hit1": 0.857, "mrr10": 0.889, "ndcg10": 0.905}
SILENCE_FLOOR = 0.97
RECALL_FLOORS = {
    "code": 0.97, "date": 0.97, "ja": 0.97, "ko": 0.97, "log": 0.97, "newest": 0.87, "several": 0.97,
    "topic": 0.97, "typo": 0.97, "zh": 0.97,
}  # fmt: skip
FIRST_FLOORS = {
    "code": 0.97,
    "date": 0.97,
    "ja": 0.97,
    "ko": 0.97,
    "log": 0.97,
    "newest": 0.77,
    "typo": 0.97,
    "zh": 0.97,
}
CERTAIN_FLOOR = 0.64  # of right first answers


def rows():
    for file in sorted(SET.glob("*/queries.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield file.parent, json.loads(line)


@pytest.fixture(scope="module")
def answers():
    return evaluate(read_dataset(str(SET)), opened_memory, Asking()).answers


@pytest.fixture(scope="module")
def summary(answers):
    return summarise(answers)


def test_evidence_stands_where_the_questions_say():
    for workspace, row in rows():
        for gold in row["gold"]:
            lines = (workspace / gold["path"]).read_text(encoding="utf-8").splitlines()
            assert gold["quote"] in lines[gold["line_start"] - 1], row["id"]
            assert gold["line_start"] == gold["line_end"], row["id"]


def test_there_are_questions_of_every_kind():
    categories = [row["category"] for _, row in rows()]

    assert set(categories) == CATEGORIES
    assert len(categories) >= 60
    assert min(map(categories.count, CATEGORIES)) >= 6
    assert categories.count("absent") == 8


def test_only_questions_without_an_answer_have_no_evidence():
    assert {row["category"] for _, row in rows() if not row["gold"]} == {"absent"}
    assert all(row["gold"] == [] for _, row in rows() if row["category"] == "absent")


def test_the_notes_are_of_the_languages_that_the_questions_need():
    text = "".join(file.read_text(encoding="utf-8") for file in SET.rglob("*.md"))

    for script in ("[a-z]{4}", "[\u4e00-\u9fff]{4}", "[\u3040-\u309f]{2}", "[\uac00-\ud7a3]{2}"):
        assert len(re.findall(script, text)) > 50, script


@pytest.mark.parametrize("metric", FLOORS)
def test_answers_are_as_good_as_they_were(summary, metric):
    assert summary.overall[metric] >= FLOORS[metric]


@pytest.mark.parametrize("category", RECALL_FLOORS)
def test_what_is_always_found_stays_found(summary, category):
    assert summary.by_category[category][1]["recall6"] >= RECALL_FLOORS[category]


@pytest.mark.parametrize("category", FIRST_FLOORS)
def test_what_is_always_first_stays_first(summary, category):
    assert summary.by_category[category][1]["hit1"] >= FIRST_FLOORS[category]


def test_most_right_first_answers_are_certain(answers):
    right = [one for one in answers if one.question.evidence and scores_of(one.question, one.shown)["hit1"]]

    assert sum(one.shown[0].score >= CERTAIN for one in right) >= CERTAIN_FLOOR * len(right)


def test_questions_without_an_answer_get_nothing_that_is_certain(summary):
    assert summary.silent >= SILENCE_FLOOR


def test_ours_is_far_better_than_both_baselines(summary):
    for name in ("seed", "grep"):
        other = summarise(evaluate(read_dataset(str(SET)), BASELINES[name], Asking()).answers)
        assert summary.overall["recall6"] > other.overall["recall6"] + 0.2
        assert summary.overall["hit1"] > other.overall["hit1"] + 0.2
