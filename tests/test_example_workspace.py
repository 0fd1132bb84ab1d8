"""The example workspace shows what the demo promises."""

from __future__ import annotations

import re
from pathlib import Path

import check_wheel

ROOT = Path(__file__).resolve().parent.parent
WORKSPACE = ROOT / "examples" / "workspace"
QUESTION = "who looks after our cats when we travel?"


def notes() -> dict[str, str]:
    files = sorted(WORKSPACE.rglob("*.md"))
    return {file.relative_to(WORKSPACE).as_posix(): file.read_text(encoding="utf-8") for file in files}


def test_the_error_string_that_is_searched_by_word_stands_in_one_note():
    assert [path for path, text in notes().items() if check_wheel.BY_WORD in text] == [
        check_wheel.BY_WORD_FILE
    ]


def test_the_question_that_is_answered_by_meaning_shares_no_word_with_its_answer():
    (answer,) = [line for line in notes()["MEMORY.md"].splitlines() if "kittens" in line]

    assert QUESTION in (ROOT / "scripts" / "demo.sh").read_text(encoding="utf-8")
    assert not set(re.findall(r"\w+", QUESTION.lower())) & set(re.findall(r"\w+", answer.lower()))


def test_the_workspace_is_of_a_size_that_one_likes_to_read():
    assert 12_000 < sum(len(text.encode()) for text in notes().values()) < 25_000
    assert len([path for path in notes() if re.match(r"memory/2026-\d\d-\d\d", path)]) >= 14


def test_it_speaks_three_languages():
    text = "".join(notes().values())

    assert re.search("[\u3040-\u30ff]", text), "no Japanese"
    assert sum(bool(re.search("[\u4e00-\u9fff]{4}", note)) for note in notes().values()) >= 3
