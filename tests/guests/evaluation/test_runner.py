"""A run asks every question of an index of its own, and leaves the dataset as it was."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from plainmind.base.errors import ConfigError, PlainmindError
from plainmind.guests.evaluation.dataset import read_dataset
from plainmind.guests.evaluation.runner import Asking, evaluate, opened_memory, summarise
from plainmind.guests.evaluation.scoring import read_results, row_of, write_results


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home whose settings would spoil every answer, were they read."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "plainmind.json5").write_text("{query: {maxResults: 1, minScore: 0.99}}")
    monkeypatch.setenv("PLAINMIND_HOME", str(folder))
    monkeypatch.setenv("PLAINMIND_QUERY_MINSCORE", "0.98")
    return folder


def everything_beneath(folder):
    return {
        os.path.join(top, name): os.stat(os.path.join(top, name)).st_mtime_ns
        for top, folders, files in os.walk(folder)
        for name in [*folders, *files]
    }


def test_notes_and_transcripts_are_found_with_default_settings(dataset):
    evaluation = evaluate(read_dataset(str(dataset)), opened_memory, Asking())

    gateway, cellar, nowhere = evaluation.answers
    assert (gateway.workspace, gateway.question.id) == ("house", "gateway")
    assert gateway.shown[0].path == "memory/network.md"
    assert cellar.shown[0].path == "sessions/a.jsonl"
    assert cellar.shown[0].end_line == 2
    assert nowhere.question.evidence == ()
    assert evaluation.notes == ()
    assert evaluation.indexing_seconds > 0


def test_nothing_is_written_into_the_dataset_or_the_home(dataset, home):
    before = everything_beneath(dataset), everything_beneath(home)

    evaluate(read_dataset(str(dataset)), opened_memory, Asking())

    assert (everything_beneath(dataset), everything_beneath(home)) == before


def test_what_is_scored_is_what_is_shown(dataset):
    asking = Asking(max_results=1, snippet_chars=40, min_score=0.0)
    evaluation = evaluate(read_dataset(str(dataset)), opened_memory, asking)

    assert all(len(answer.shown) == 1 for answer in evaluation.answers if answer.question.evidence)
    lines = (dataset / "house" / "memory" / "network.md").read_text().split("\n")
    shown = evaluation.answers[0].shown[0]
    assert 0 < shown.chars <= 40
    assert shown.chars == len("\n".join(lines[shown.start_line - 1 : shown.end_line]).strip("\n"))


def test_settings_can_be_tried(dataset):
    keywords = Asking(settings={"provider": "none"})

    answers = evaluate(read_dataset(str(dataset)), opened_memory, keywords).answers

    assert answers[0].shown[0].path == "memory/network.md"
    with pytest.raises(ConfigError):
        evaluate(read_dataset(str(dataset)), opened_memory, Asking(settings={"provider": "nobody"}))


def test_a_file_that_cannot_be_indexed_is_told(dataset):
    link = dataset / "house" / "memory" / "twin.md"
    os.link(dataset / "house" / "memory" / "network.md", link)

    notes = evaluate(read_dataset(str(dataset)), opened_memory, Asking()).notes

    assert notes
    assert all(note.startswith("house: not indexed: memory/") for note in notes)


def test_progress_counts_questions(dataset):
    seen = []

    evaluate(read_dataset(str(dataset)), opened_memory, Asking(), progress=seen.append)

    assert [(one.completed, one.total, one.label) for one in seen] == [(n, 3, "house") for n in (1, 2, 3)]


def test_a_summary_keeps_questions_without_an_answer_apart(dataset):
    times = iter(range(100))
    evaluation = evaluate(
        read_dataset(str(dataset)), opened_memory, Asking(), clock=lambda: float(next(times))
    )

    *answered, absent = evaluation.answers
    shown, silent = (summarise([*answered, replace(absent, shown=what)]) for what in (answered[0].shown, ()))

    assert (silent.count, list(silent.by_category)) == (2, ["fact", "talk"])
    assert (silent.overall["recall6"], silent.absent_count) == (1.0, 1)
    assert (silent.silent, shown.silent) == (1.0, 0.0)
    assert (silent.mean_ms, silent.p95_ms, evaluation.indexing_seconds) == (1000, 1000, 1.0)


def test_a_summary_of_nothing_is_empty():
    summary = summarise([])

    assert (summary.count, summary.overall, summary.silent, summary.p95_ms) == (0, {}, None, 0.0)


def test_results_can_be_read_back(dataset, tmp_path):
    answers = evaluate(read_dataset(str(dataset)), opened_memory, Asking()).answers
    file = tmp_path / "results.jsonl"

    write_results(str(file), answers)

    first = json.loads(file.read_text().splitlines()[0])
    assert first == row_of(answers[0])
    assert set(first["results"][0]) == {"path", "startLine", "endLine", "chars", "score"}
    read = read_results(str(file))
    assert list(read) == [("house", "gateway"), ("house", "cellar"), ("house", "nowhere")]
    assert [(one.path, one.start_line, one.end_line, one.chars) for one in read["house", "gateway"]] == [
        (one.path, one.start_line, one.end_line, one.chars) for one in answers[0].shown
    ]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"ws": "a", "id": "b"}', '{"ws": "a", "id": "b", "results": [1]}']
)
def test_a_line_that_is_no_result_is_named(tmp_path, line):
    file = tmp_path / "results.jsonl"
    file.write_text(f'{{"ws": "a", "id": "b", "results": []}}\n{line}\n')

    with pytest.raises(PlainmindError, match="line 2: not a line of results"):
        read_results(str(file))
