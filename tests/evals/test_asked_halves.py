"""The questions in two halves about eight workspaces: well made, and as many of each kind as they must be.

Nothing is searched here: the half that is kept aside is read as text only.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.support.shared_words import content_keys, with_headings

from plainmind.guests.evaluation.dataset import read_dataset

SET = Path(__file__).resolve().parents[2] / "evals" / "plainmind"
HALVES = ("dev", "unseen")
LANGUAGES = {"en", "zh", "ja", "ko", "de", "es"}
LEAST = {
    "absent": 80, "across": 220, "code": 50, "date": 60, "fact": 90, "name": 60, "now": 60,
    "paraphrase": 240, "title": 110, "typo": 40, "why": 60,
}  # fmt: skip
WORKSPACES = sorted(file.parent.name for file in SET.glob("*/dev.jsonl"))
_SCRIPTS = {"zh": "[\u4e00-\u9fff]", "ja": "[\u3040-\u30ff\u4e00-\u9fff]", "ko": "[\uac00-\ud7a3]"}


@cache
def rows(half):
    files = [SET / name / f"{half}.jsonl" for name in WORKSPACES]
    return [
        (file.parent, json.loads(line))
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def everything():
    return [*rows("dev"), *rows("unseen")]


@cache
def lines_of(workspace, path):
    return (workspace / path).read_text(encoding="utf-8").splitlines()


def evidence_lines(workspace, row):
    for gold in row["gold"]:
        for number in range(gold["line_start"], gold["line_end"] + 1):
            yield workspace.name, gold["path"], number


def folded(text):
    return re.sub(r"[\W_]+", " ", unicodedata.normalize("NFKC", text).casefold()).strip()


def test_quotes_stand_where_the_questions_say():
    for workspace, row in everything():
        for gold in row["gold"]:
            lines = lines_of(workspace, gold["path"])
            assert 1 <= gold["line_start"] <= gold["line_end"] <= len(lines), row["id"]
            shown = lines[gold["line_start"] - 1 : gold["line_end"]]
            assert any(gold["quote"] in line for line in shown), row["id"]
            assert gold["quote"].strip(), row["id"]


def test_a_paraphrase_shares_no_word_with_its_evidence():
    shared = {
        row["id"]: found
        for workspace, row in everything()
        if row["category"] == "paraphrase"
        for _, path, number in evidence_lines(workspace, row)
        if (
            found := content_keys(row["query"])
            & content_keys(with_headings(path, lines_of(workspace, path), number))
        )
    }

    assert shared == {}


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("any allergic reactions?", "- allergies: penicillin"),
        ("¿qué canción cantamos?", "Las canciones del coro"),
        ("welche Größe", "die Grossen"),
        ("打印机坏了", "新打印机的墨粉"),
        ("カレーの作り方", "金曜カレー"),
        ("병원에 언제 갔지", "병원 전화번호"),
    ],
)
def test_a_shared_word_is_noticed_in_another_form(question, line):
    assert content_keys(question) & content_keys(line)


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("what do you have for me to do?", "what it is that we have to do for them"),
        ("wo ist das und was soll es", "es ist so, und das soll es auch"),
        ("¿qué es esto y para qué sirve?", "esto es lo que hay para todos"),
        ("什么时候", "我们什么时候"),
        ("それはどこにありますか", "ここにあります"),
        ("우리 지금 어디", "우리 지금"),
    ],
)
def test_words_that_carry_nothing_are_not_shared(question, line):
    assert not content_keys(question) & content_keys(line)


def test_headings_and_names_of_the_file_belong_to_a_line():
    lines = ["---", "aliases: [Atelier]", "---", "# House", "## Boiler", "## Wifi", "- unplug it"]

    assert with_headings("notes/cellar.md", lines, 7).split("\n") == [
        "cellar", " [Atelier]", "House", "Wifi", "- unplug it",
    ]  # fmt: skip


def test_there_are_enough_questions_of_every_kind():
    kinds = Counter(row["category"] for _, row in everything())

    assert set(kinds) == set(LEAST)
    assert {kind: count for kind, count in kinds.items() if count < LEAST[kind]} == {}
    assert kinds.total() >= 1100


def test_paraphrases_are_asked_in_at_least_five_languages():
    languages = Counter(row["language"] for _, row in everything() if row["category"] == "paraphrase")

    assert sum(count >= 30 for count in languages.values()) >= 5


def test_questions_across_languages_go_both_ways():
    pairs = Counter((row["language"], row["about"]) for _, row in everything() if row["category"] == "across")

    others = LANGUAGES - {"en"}
    assert set(pairs) == {(one, "en") for one in others} | {("en", one) for one in others}
    assert min(pairs.values()) >= 20


def test_questions_are_written_in_the_language_they_name():
    for _, row in everything():
        assert row["language"] in LANGUAGES, row["id"]
        if row["language"] in _SCRIPTS and row["category"] not in {"code", "typo"}:
            assert re.search(_SCRIPTS[row["language"]], row["query"]), row["id"]
        if row["language"] in {"en", "de", "es"}:
            assert not re.search("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]", row["query"]), row["id"]


def test_only_questions_without_an_answer_have_no_evidence():
    for _, row in everything():
        assert bool(row["gold"]) == (row["category"] != "absent"), row["id"]


def test_no_question_is_copied_from_the_line_that_answers_it():
    for workspace, row in everything():
        if row["category"] not in {"code", "title", "typo"}:
            for _, path, number in evidence_lines(workspace, row):
                assert folded(row["query"]) not in folded(lines_of(workspace, path)[number - 1]), row["id"]


def test_the_halves_have_nothing_in_common():
    for part in (lambda _, row: {row["id"]}, lambda folder, row: {(folder, row["query"])}):
        dev, unseen = (set().union(*(part(*pair) for pair in rows(half))) for half in HALVES)
        assert not dev & unseen


def test_a_line_that_answers_a_question_of_one_half_answers_none_of_the_other():
    """A question by title has the whole note as its evidence, which is only compared with others by title."""
    for by_title in (True, False):
        dev, unseen = (
            {
                line
                for workspace, row in rows(half)
                if (row["gold"] and row["gold"][0]["line_end"] > row["gold"][0]["line_start"]) == by_title
                for line in evidence_lines(workspace, row)
            }
            for half in HALVES
        )
        assert not dev & unseen


def test_the_halves_are_equally_large_in_every_kind():
    dev, unseen = (Counter(row["category"] for _, row in rows(half)) for half in HALVES)

    assert abs(dev.total() - unseen.total()) <= 20
    for kind in LEAST:
        assert abs(dev[kind] - unseen[kind]) <= max(4, 0.2 * dev[kind]), kind


@pytest.mark.parametrize("half", HALVES)
def test_both_halves_are_read_as_a_dataset(half):
    read = read_dataset(str(SET), queries=half)

    assert [workspace.name for workspace in read] == WORKSPACES
    assert sum(len(workspace.questions) for workspace in read) == len(rows(half))


@pytest.mark.parametrize("name", WORKSPACES)
def test_a_workspace_is_large_enough_to_search_in(name):
    files = list((SET / name).rglob("*.md"))

    assert len(files) >= 15
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) >= 130
