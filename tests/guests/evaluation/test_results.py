"""Two runs are compared question by question, with what chance could have done."""

from __future__ import annotations

from datetime import date

import pytest

from plainmind.base.errors import PlainmindError
from plainmind.guests.evaluation.dataset import AskedWorkspace, Evidence, Question
from plainmind.guests.evaluation.scoring import METRICS, Shown, compare

RIGHT, WRONG = (Shown("a.md", 1, 1, 40),), (Shown("b.md", 1, 1, 40),)


EVIDENCE = (Evidence("a.md", 1, 1),)


def asked(count, evidence=EVIDENCE):
    questions = tuple(Question(f"q{n}", "?", "c", date(2026, 1, 1), evidence) for n in range(count))
    return [AskedWorkspace("w", "/nowhere", questions)]


def run(*shown):
    return {("w", f"q{number}"): one for number, one in enumerate(shown)}


def by_metric(differences):
    assert [one.metric for one in differences] == list(METRICS)
    return {one.metric: one for one in differences}


def test_a_clear_gain_is_certain():
    count, found = compare(asked(50), run(*[WRONG] * 40, *[RIGHT] * 10), run(*[RIGHT] * 50))

    recall = by_metric(found)["recall6"]
    assert (count, recall.before, recall.after, recall.gain) == (50, 0.2, 1.0, pytest.approx(0.8))
    assert 0.6 < recall.low < 0.8 < recall.high < 0.95
    assert recall.is_certain


def test_as_many_gains_as_losses_are_nothing():
    _, found = compare(asked(20), run(*[WRONG, RIGHT] * 10), run(*[RIGHT, WRONG] * 10))

    hit = by_metric(found)["hit1"]
    assert (hit.gain, hit.is_certain) == (0.0, False)
    assert hit.low < 0 < hit.high


def test_the_same_run_twice_differs_in_nothing():
    results = run(RIGHT, WRONG, RIGHT)

    assert all((one.gain, one.low, one.high) == (0, 0, 0) for one in compare(asked(3), results, results)[1])


def test_a_comparison_can_be_repeated():
    runs = run(*[WRONG, RIGHT, WRONG] * 101), run(*[RIGHT, RIGHT, WRONG] * 101)

    assert compare(asked(303), *runs) == compare(asked(303), *runs)
    assert compare(asked(303), *runs) != compare(asked(303), *runs, seed=1)


def test_runs_that_lack_answers_are_refused():
    with pytest.raises(PlainmindError, match="the second file has no answer for 1 of 2 questions"):
        compare(asked(2), run(RIGHT, RIGHT), run(RIGHT))


def test_a_dataset_without_evidence_cannot_be_compared():
    with pytest.raises(PlainmindError, match="no question has evidence"):
        compare(asked(1, evidence=()), run(RIGHT), run(RIGHT))
