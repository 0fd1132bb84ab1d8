"""The page about speed is written from figures, with a picture beside it."""

from __future__ import annotations

import datetime as dt

import host_waits
import natural_questions
import performance_page
import pytest
import stores
from natural_questions import NaturalTimes
from speed.corpus import Corpus
from tests.support.speed_figures import figures, size, took

from plainmind.guests.evaluation.dataset import read_dataset


def test_the_page_has_targets_sizes_growth_and_what_a_person_waits_for():
    part = performance_page.part_of(
        figures(size(1_000, 1.0, 9.0), size(10_000, 2.0, 90.0)),
        [("`plainmind search`", took(80.0))],
        [NaturalTimes(1_000, 2_800_000, took(4.0), took(6.0))],
        dt.date(2026, 11, 1),
    )

    assert part.startswith("`make bench`, 2026-11-01, seed 7. 2 cores")
    assert "| hybrid search p50, 10,000 chunks | 2 ms | ≤ 4 ms | ≤ 1.5 ms | must |" in part
    assert "| hybrid search p50, 1,000,000 chunks | – | ≤ 80 ms | ≤ 25 ms | not measured |" in part
    assert "| chunks | 1,000 | 10,000 |" in part
    assert "| hybrid search | 0.30 |" in part
    assert "| `plainmind search` | 80 / 160 (40) |" in part
    assert "| notes | 1,000 files, 2.8 MB |" in part
    assert "| `Memory.search`, looking for changed files | 6 / 12 (3) |" in part
    assert "![Search time against the number of chunks](performance-search.svg)" in part


def test_without_a_second_size_nothing_is_said_about_growth():
    assert "**Growth**" not in performance_page.part_of(
        figures(size(1_000, 1.0)), [], [], dt.date(2026, 11, 1)
    )


def test_the_page_in_the_repository_has_the_marks_that_are_written_between():
    page = performance_page.PAGE.read_text(encoding="utf-8")

    for writer in (performance_page, host_waits, stores):
        assert (page.count(writer.START), page.count(writer.END)) == (1, 1)


def test_stores_stand_side_by_side_and_what_one_has_not_is_left_open():
    figures = {
        "sqlite": {"hybrid search": "1 / 2 (1)"},
        "lancedb": {"hybrid search": "3 / 4 (3)", "on disk": "2 MB"},
    }

    assert stores.table_of("100 chunks", figures) == [
        ("100 chunks", "SQLite", "LanceDB"),
        ("hybrid search", "1 / 2 (1)", "3 / 4 (3)"),
        ("on disk", "–", "2 MB"),
    ]


def test_a_store_is_filled_and_searched_by_processes_of_their_own(capfd, monkeypatch):
    few = "--chunks 100 --dims 32 --questions 12 --stores sqlite"
    monkeypatch.setattr("sys.argv", ["stores.py", *few.split()])

    assert stores.main() == 0

    said = capfd.readouterr().out
    assert "| 100 chunks | SQLite |" in said
    assert "| nearest 24 that are found | 1.0000 |" in said


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_commands_are_timed_in_a_workspace_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(performance_page, "REAL", performance_page.Corpus(30, fixed_per_file=6))

    rows = performance_page.at_a_prompt(tmp_path, runs=2)

    assert [measured.runs for _, measured in rows] == [1, 2, 2, 2, 2]
    times = {name: measured.cpu_p50_ms for name, measured in rows}  # the clock also counts who else works
    assert times["`plainmind search`"] > times["an empty Python process, for comparison"]
    assert (tmp_path / "home" / "index").is_dir()


@pytest.mark.timeout(120)
def test_what_hosts_wait_for_is_timed_by_really_doing_it(tmp_path, monkeypatch):
    monkeypatch.setattr(host_waits, "NOTES", Corpus(12, fixed_per_file=6))

    rows = dict(host_waits.measure(tmp_path, runs=1, starts=1, load=1))

    assert "slowest of 1:" in rows["the same while 1 other programs want a core all the time"]
    assert "before a prompt" in " ".join(rows)
    assert [
        path.name for path in (tmp_path / "home").rglob("sessions/*.jsonl")
    ]  # the hook has kept what was said
    assert not (tmp_path / "home" / "hosts" / "hook-failures.jsonl").exists()


def test_questions_of_every_workspace_are_asked_by_turns_and_never_the_unseen_ones(tmp_path):
    asked = natural_questions.gather(tmp_path)
    unseen = {
        question.text
        for workspace in read_dataset(str(natural_questions.EVALS), queries="unseen")
        for question in workspace.questions
    }

    assert len(asked) > 500
    assert unseen.isdisjoint(question.text for question in asked)
    assert len(list((tmp_path / "memory").iterdir())) >= 8


def test_natural_questions_are_timed_with_and_without_looking_for_changes(tmp_path, monkeypatch):
    workspaces = read_dataset(str(natural_questions.EVALS), queries="dev")[:1]
    monkeypatch.setattr(natural_questions, "read_dataset", lambda *_, **__: workspaces)
    measured = natural_questions.ask(tmp_path, Corpus(20, fixed_per_file=2), questions=3)

    assert (measured.quick.runs, measured.whole.runs) == (3, 3)
    assert measured.files > 10
    assert measured.quick.cpu_p50_ms > 0
