"""Questions are read as they are meant, and a malformed line is named."""

from __future__ import annotations

from datetime import date

import pytest

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.guests.evaluation.dataset import Evidence, read_dataset

GOOD = '{"id": "a", "query": "q", "category": "c", "gold": []}'


def test_a_dataset_is_read_with_its_days_and_evidence(dataset):
    (house,) = read_dataset(str(dataset))

    assert (house.name, house.folder) == ("house", str(dataset / "house"))
    gateway, cellar, nowhere = house.questions
    assert gateway.evidence == (Evidence("memory/network.md", 3, 3),)
    assert (gateway.today, cellar.today) == (date(2026, 2, 12), date(2026, 3, 1))
    assert (nowhere.evidence, nowhere.any_line) == ((), False)


def test_a_workspace_alone_is_a_dataset_too(dataset):
    assert read_dataset(str(dataset / "house")) == read_dataset(str(dataset))
    assert read_dataset(str(dataset / "house") + "/") == read_dataset(str(dataset))


def test_data_without_a_day_is_always_asked_on_the_same_one(dataset):
    (dataset / "house" / "meta.json").unlink()
    (dataset / "house" / "queries.jsonl").write_text(GOOD + "\n\n")

    assert read_dataset(str(dataset))[0].questions[0].today == date(2026, 1, 1)


def test_one_workspace_can_be_chosen(dataset):
    (dataset / "attic").mkdir()
    (dataset / "attic" / "queries.jsonl").write_text(GOOD)

    assert [one.name for one in read_dataset(str(dataset))] == ["attic", "house"]
    assert [one.name for one in read_dataset(str(dataset), only="house")] == ["house"]
    with pytest.raises(NotFound, match="no workspace `shed`") as refused:
        read_dataset(str(dataset), only="shed")
    assert refused.value.hint == "it has attic, house"


def test_another_file_of_questions_can_be_named(dataset):
    (dataset / "house" / "kept.jsonl").write_text(GOOD.replace('"a"', '"kept"'))
    (dataset / "attic").mkdir()
    (dataset / "attic" / "queries.jsonl").write_text(GOOD)

    (house,) = read_dataset(str(dataset), queries="kept")

    assert [question.id for question in house.questions] == ["kept"]
    assert read_dataset(str(dataset / "house"), queries="kept") == (house,)
    with pytest.raises(NotFound) as refused:
        read_dataset(str(dataset), queries="other")
    assert "other.jsonl" in (refused.value.hint or "")


@pytest.mark.parametrize("name", ["", "missing"])
def test_a_folder_without_questions_is_an_error(tmp_path, name):
    with pytest.raises(NotFound, match="there are no questions"):
        read_dataset(str(tmp_path / name))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"query": "q", "category": "c", "gold": []}', "`id` is missing"),
        ('{"id": 7, "query": "q", "category": "c", "gold": []}', "`id` is not a text"),
        ('{"id": "b", "query": "q", "category": "c", "gold": {}}', "`gold` is not a list"),
        ('{"id": "b", "query": "q", "category": "c", "gold": ["x"]}', "`gold` holds something"),
        (
            '{"id": "b", "query": "q", "category": "c", "gold": [{"path": "x", "line_start": true, "line_end": 2}]}',
            "`line_start` is not a whole number",
        ),
        (
            '{"id": "b", "query": "q", "category": "c", "gold": [{"path": "x", "line_start": 3, "line_end": 2}]}',
            "lines 3 to 2 of `x` are no range",
        ),
        (
            '{"id": "b", "query": "q", "category": "c", "now": "soon", "gold": []}',
            "`now` is not a date: 'soon'",
        ),
        ('{"id": "b", "query": "q", "category": "c", "now": 5, "gold": []}', "`now` is not a date: 5"),
        (GOOD, "the id `a` was used before"),
    ],
)
def test_a_malformed_line_is_named(dataset, line, problem):
    (dataset / "house" / "queries.jsonl").write_text(f"{GOOD}\n{line}\n")

    with pytest.raises(PlainmindError) as refused:
        read_dataset(str(dataset))

    assert "queries.jsonl, line 2: " in str(refused.value)
    assert problem in str(refused.value)
    assert refused.value.hint


def test_bytes_that_are_no_text_are_an_error(dataset):
    (dataset / "house" / "queries.jsonl").write_bytes(b"\xff\n")

    with pytest.raises(PlainmindError, match="not valid UTF-8"):
        read_dataset(str(dataset))
