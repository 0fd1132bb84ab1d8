"""The workspace that we measure on is the same everywhere, or figures could not be compared."""

from __future__ import annotations

import datetime as dt

import synthetic_workspace

LAST_DAY = dt.date(2026, 11, 1)


def written(folder, seed=7):
    synthetic_workspace.write_workspace(folder, files=12, total_bytes=60_000, last_day=LAST_DAY, seed=seed)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.md")}


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    assert written(tmp_path / "one") == written(tmp_path / "two")


def test_another_seed_writes_others(tmp_path):
    assert written(tmp_path / "one") != written(tmp_path / "two", seed=8)


def test_it_has_the_files_and_the_size_that_were_asked_for(tmp_path):
    files = written(tmp_path)

    assert len(files) == 12
    assert "MEMORY.md" in files
    assert "memory/2026-10-31.md" in files
    assert 57_000 < sum(map(len, files.values())) < 66_000


def test_questions_are_the_same_each_time():
    assert synthetic_workspace.queries(20) == synthetic_workspace.queries(20)
