"""The example workspace shows what the demo promises."""

from __future__ import annotations

import re
from pathlib import Path

import check_wheel
import pytest

from plainmind import Memory

ROOT = Path(__file__).resolve().parent.parent
WORKSPACE = ROOT / "examples" / "workspace"
QUESTION = "who feeds the cats while we travel?"


def notes() -> dict[str, str]:
    files = sorted(WORKSPACE.rglob("*.md"))
    return {file.relative_to(WORKSPACE).as_posix(): file.read_text(encoding="utf-8") for file in files}


def test_the_error_string_that_is_searched_by_word_stands_in_one_note():
    assert [path for path, text in notes().items() if check_wheel.BY_WORD in text] == [
        check_wheel.BY_WORD_FILE
    ]


def test_the_question_that_is_answered_by_meaning_too_shares_one_word_with_its_answer():
    (answer,) = [line for line in notes()["MEMORY.md"].splitlines() if "kittens" in line]

    assert QUESTION in (ROOT / "scripts" / "demo.sh").read_text(encoding="utf-8")
    assert set(re.findall(r"\w+", QUESTION.lower())) & set(re.findall(r"\w+", answer.lower())) == {"feeds"}
    assert not re.search(r"\bcats?\b", "".join(notes().values()), re.IGNORECASE)


def test_every_question_of_the_recorded_first_run_has_an_answer():
    recorded = (ROOT / "README.md").read_text(encoding="utf-8").split("```console\n# Read")[1].split("```")[0]
    answers = re.findall(
        r"^\$ plainmind (?:sessions )?search .*\n(?:note: .*\n)*(.*)", recorded, re.MULTILINE
    )

    assert len(answers) >= 5
    assert all(re.match(r"[01]\.\d\d  \S+:\d+-\d+", answer) for answer in answers), answers
    assert recorded.count("nothing certain") == 1  # the one in other words


def test_the_workspace_is_of_a_size_that_one_likes_to_read():
    assert 12_000 < sum(len(text.encode()) for text in notes().values()) < 25_000
    assert len([path for path in notes() if re.match(r"memory/2026-\d\d-\d\d", path)]) >= 14


def test_it_speaks_three_languages():
    text = "".join(notes().values())

    assert re.search("[\u3040-\u30ff]", text), "no Japanese"
    assert sum(bool(re.search("[\u4e00-\u9fff]{4}", note)) for note in notes().values()) >= 3


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("which allergies do I have", "penicillin"),
        ("any drug allergy?", "penicillin"),
        ("what medicine must I avoid?", "penicillin"),
        ("medication I cannot take", "penicillin"),
        ("who looks after our pets when we are away?", "feeds them"),
    ],
)
def test_a_question_in_other_words_finds_the_line(question, answer, tmp_path):
    with Memory(str(WORKSPACE), home=str(tmp_path)) as memory:
        assert answer in memory.search(question).hits[0].snippet


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("ERR_LEDGER_SKEW", "gateway's clock"),
        ("外壳为什么进水？", "密封圈"),
        ("what was agreed on 2026-10-20?", "eight berths"),
        ("which VLAN is the printer on", "VLAN 40"),
        ("what did we decide about venture capital", "no venture capital"),
        ("传感器多久测量一次", "每五分钟"),
    ],
)
def test_a_right_answer_is_certain(question, answer, tmp_path):
    with Memory(str(WORKSPACE), home=str(tmp_path)) as memory:
        result = memory.search(question)

    assert answer in result.hits[0].snippet
    assert result.is_certain


@pytest.mark.parametrize(("question", "answer"), [(QUESTION, "feeds them"), ("电池可以用多久？", "十四个月")])
def test_a_right_answer_in_other_words_comes_first_and_is_called_the_nearest(question, answer, tmp_path):
    with Memory(str(WORKSPACE), home=str(tmp_path)) as memory:
        result = memory.search(question)

    assert answer in result.hits[0].snippet
    assert not result.is_certain


@pytest.mark.parametrize(
    "question",
    [
        "what is my blood type",
        "who is our dentist",
        "when is Jonas's birthday",
        "who cuts the hedge",
        "ERR_PAYMENT_TIMEOUT",
    ],
)
def test_what_nobody_wrote_down_is_not_certain(question, tmp_path):
    with Memory(str(WORKSPACE), home=str(tmp_path)) as memory:
        assert not memory.search(question).is_certain
