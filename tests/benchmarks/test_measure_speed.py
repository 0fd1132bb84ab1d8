"""`measure_speed.py` measures what it is told to, says how far it has come, and fails only when asked to."""

from __future__ import annotations

import json
from functools import partial

import measure_speed
import pytest
from tests.support.speed_figures import figures, size


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_programs_get_every_figure_and_people_the_steps(tmp_path, monkeypatch, capsys):
    tiny = partial(measure_speed.Plan, files_to_sync=5, questions=12, cold_runs=3, budget_s=0.05)
    monkeypatch.setattr(measure_speed, "Plan", tiny)

    status = measure_speed.main(
        ["--chunks", "100", "--against", "none", "--keep", str(tmp_path / "kept"), "--json"]
    )

    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert status == 0
    assert answer["schema_version"] == 1
    assert [one["chunks"] for one in answer["sizes"]] == [100]
    assert {"machine", "versions", "dims", "seed", "growth", "targets", "seconds"} <= set(answer)
    reached = {target["figure"]: target["reached"] for target in answer["targets"]}
    assert reached["recall@24 of the nearest chunks, worst size"] == "goal"
    assert "100 chunks: building the index" in printed.err
    assert (tmp_path / "kept" / "100" / "workspace" / "memory").is_dir()


@pytest.mark.parametrize(("recall", "status"), [(0.995, 0), (0.5, 1)])
def test_a_missed_target_fails_only_when_it_is_checked(monkeypatch, capsys, recall, status):
    monkeypatch.setattr(measure_speed, "run", lambda *_, **__: figures(size(1_000, 1.0, recall=recall)))

    assert measure_speed.main(["-q"]) == 0
    assert measure_speed.main(["-q", "--check"]) == status

    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.splitlines()[0].split() == ["figure", "measured", "must", "goal", "reached"]
    assert ("missed" in printed.out) is bool(status)


def test_the_report_has_a_column_for_each_size():
    lines = list(measure_speed.report(figures(size(1_000, 1.0, 9.0), size(10_000, 2.0, 90.0))))

    (head,) = [line for line in lines if line.startswith("chunks")]
    assert head.split() == ["chunks", "1,000", "10,000"]
    assert any(line.split()[:2] == ["hybrid", "search"] and line.endswith("2 / 4 (1)") for line in lines)
    assert any(
        line.startswith("times faster than the seed's SQL") and line.endswith("45 ×") for line in lines
    )
    assert lines[-1].startswith("measured in ")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--chunks", "12"], "must be a whole number from 100"),
        (["--chunks", "1000,many"], "must be a whole number"),
        (["--dims", "4"], "must be a whole number from 8"),
        (["--against", "seed,lucene"], "`lucene` must be one of seed, tantivy, usearch, faiss, or none"),
    ],
)
def test_wrong_usage_is_explained(capsys, argv, message):
    with pytest.raises(SystemExit) as caught:
        measure_speed.main(argv)

    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_folder_with_something_in_it_is_not_worked_in(tmp_path, capsys):
    (tmp_path / "mine.md").write_text("keep me")

    assert measure_speed.main(["--keep", str(tmp_path)]) == 1

    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.md"]
