"""`bench speed` measures what it is told to, says how far it has come, and fails only when asked to."""

from __future__ import annotations

from functools import partial

import pytest
from tests.support.speed_figures import figures, size

from plainmind.guests.evaluation import speed_command as bench_speed
from plainmind.guests.evaluation.speed import contestants, running


@pytest.fixture
def tiny(monkeypatch):
    """Let a run take seconds: everything is measured, on less."""
    plan = partial(running.Plan, files_to_sync=5, questions=12, cold_runs=3, budget_s=0.05)
    monkeypatch.setattr(running, "Plan", plan)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_programs_get_every_figure_and_people_the_steps(cli, tiny, tmp_path):
    answer = cli(
        "bench", "speed", "--chunks", "100", "--against", "none", "--keep", str(tmp_path / "kept"), "--json"
    )

    assert answer.status == 0
    assert answer.json["schema_version"] == 1
    assert [one["chunks"] for one in answer.json["sizes"]] == [100]
    assert {"machine", "versions", "dims", "seed", "growth", "targets", "seconds"} <= set(answer.json)
    reached = {target["figure"]: target["reached"] for target in answer.json["targets"]}
    assert reached["recall@24 of the nearest chunks, worst size"] == "goal"
    assert "100 chunks: building the index" in answer.err
    assert (tmp_path / "kept" / "100" / "workspace" / "memory").is_dir()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_missed_target_fails_only_when_it_is_checked(cli, tiny):
    # A hundred chunks fill a database whose pages are mostly empty: larger than its text by far.
    answer = cli("bench", "speed", "--chunks", "100", "--against", "none", "--check", "-q")

    missed = "missed" in answer.out
    assert answer.status == (1 if missed else 0)
    assert answer.err == ""
    assert answer.out.splitlines()[0].split() == ["figure", "measured", "must", "goal", "reached"]


def test_the_report_has_a_column_for_each_size():
    lines = list(bench_speed.report(figures(size(1_000, 1.0, 9.0), size(10_000, 2.0, 90.0))))

    (head,) = [line for line in lines if line.startswith("chunks")]
    assert head.split() == ["chunks", "1,000", "10,000"]
    assert any(line.split()[:2] == ["hybrid", "search"] and line.endswith("2 / 4 (1)") for line in lines)
    assert any(
        line.startswith("times faster than the seed's SQL") and line.endswith("45 ×") for line in lines
    )
    assert lines[-1].startswith("measured in ")


def test_the_names_on_the_command_line_are_those_that_can_compete():
    assert bench_speed.AGAINST == contestants.NAMES


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--chunks", "12"], "must be a whole number from 100"),
        (["--chunks", "1000,many"], "must be a whole number"),
        (["--dims", "4"], "must be a whole number from 8"),
        (["--against", "seed,lucene"], "`lucene` must be one of seed, tantivy, usearch, faiss, or none"),
    ],
)
def test_wrong_usage_is_explained(cli, argv, message):
    answer = cli("bench", "speed", *argv)

    assert answer.status == 2
    assert message in answer.err


def test_a_folder_with_something_in_it_is_not_worked_in(cli, tmp_path):
    (tmp_path / "mine.md").write_text("keep me")

    answer = cli("bench", "speed", "--keep", str(tmp_path))

    assert answer.status == 1
    assert "is not empty" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.md"]
