from datetime import date
from xml.etree import ElementTree as ET

import pytest
from score_curve import picture, reliability

from plainmind.guests.evaluation.dataset import Evidence, Question
from plainmind.guests.evaluation.scoring import Answer, Shown


def answer(*shown):
    question = Question(
        id="q",
        text="?",
        category="c",
        today=date(2026, 1, 1),
        evidence=(Evidence("memory/a.md", 3, 3),),
        any_line=False,
    )
    return Answer("ws", question, shown, 1.0)


def result(line, score):
    return Shown("memory/a.md", line, line, 10, score)


def test_results_are_sorted_by_score_and_counted_when_they_hold_evidence():
    steps = reliability([answer(result(3, 0.95), result(4, 0.91)), answer(result(3, 1.0), result(9, 0.05))])

    assert (steps[9].results, steps[9].with_evidence) == (3, 2)
    assert steps[9].share == pytest.approx(2 / 3)
    assert (steps[0].results, steps[0].share) == (1, 0.0)
    assert steps[5].share == 0.0


def test_the_picture_is_well_formed_and_has_a_bar_for_each_step():
    drawing = ET.fromstring(picture(reliability([answer(result(3, 0.5))])))

    assert sum(1 for part in drawing if part.tag.endswith("rect")) == 1 + 10
