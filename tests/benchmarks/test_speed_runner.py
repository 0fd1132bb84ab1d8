"""A whole run at a tiny size: every figure is there, others are measured beside ours, and nothing is left behind."""

from __future__ import annotations

import json
import sys
from functools import partial

import pytest
from speed.corpus import Corpus
from speed.figures import as_json
from speed.others import NAMES, SEED, Course, compete, missing
from speed.recipe import extension_path
from speed.report import size_rows
from speed.runner import Plan, bytes_in, run
from speed.timing import lap, residency

from plainmind.base.errors import PlainmindError

TINY = partial(Plan, files_to_sync=10, questions=14, cold_runs=3, budget_s=0.1)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_an_engine_that_is_installed_finds_the_nearest(tmp_path):
    corpus = Corpus(200, dims=64)
    course = Course(corpus, corpus.questions(14), str(tmp_path), 0.1)
    installed = [name for name in NAMES if name not in (SEED, *missing(NAMES))]
    if not installed:
        pytest.skip("neither tantivy nor usearch nor faiss is installed")

    found = list(compete(installed, course))

    assert {one.name for one in found} == set(installed)
    assert all(one.recall > 0.9 for one in found if one.recall is not None)
    assert all((one.chunks, one.times.p50_ms > 0) == (200, True) for one in found)


@pytest.mark.skipif(extension_path() is None, reason="sqlite-vec is not installed")
def test_the_recipe_is_measured_with_all_words_and_with_any_and_removed(tmp_path):
    corpus = Corpus(200, dims=64)

    found = list(compete([SEED], Course(corpus, corpus.questions(14), str(tmp_path), 0.1)))

    assert [(one.name, one.does) for one in found] == [
        ("seed", "hybrid, all words"),
        ("seed", "hybrid, any word"),
    ]
    assert all(one.bytes > 200 * 2_000 for one in found)
    assert list(tmp_path.iterdir()) == []


def test_who_is_not_installed_is_left_out(tmp_path):
    corpus = Corpus(200, dims=64)
    course = Course(corpus, corpus.questions(11), str(tmp_path), 0.1)

    assert list(compete(missing(NAMES), course)) == []
    assert list(compete([], course)) == []


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_run_measures_every_size_and_leaves_nothing_behind(tmp_path):
    stages = []
    figures = run(
        TINY(chunks=(300, 150), against=("seed",)),
        str(tmp_path),
        progress=lambda one: stages.append(one.label),
    )

    assert [size.chunks for size in figures.sizes] == [150, 300]
    assert [size.files for size in figures.sizes] == [15, 30]
    assert all(size.recall > 0.98 for size in figures.sizes)
    assert all(0.5 < size.index_over_text < 20 for size in figures.sizes)
    assert all(size.cold.ratio > 1 for size in figures.sizes)
    assert all(size.resident.peak > 10_000_000 for size in figures.sizes)
    assert all(size.resident.facts["questions"] == 14 for size in figures.sizes)
    assert (figures.markdown_files, figures.markdown.chunks > 10) == (10, True)
    assert "hybrid" in figures.growth()
    assert any("150 chunks" in label for label in stages)
    json.dumps(as_json(figures))
    assert len(list(size_rows(figures))) > 15
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_other_dimensions_and_a_large_file_are_measured_and_kept(tmp_path):
    plan = TINY(chunks=(150,), dims=48, against=(), large_file_mb=2, keeps=True)
    figures = run(plan, str(tmp_path))

    (size,) = figures.sizes
    assert (figures.dims, size.others) == (48, ())
    assert size.recall > 0.98
    assert figures.large_file.facts["files"] == 1
    assert figures.large_file.facts["chunks"] > 1_000
    assert (tmp_path / "150" / "index").is_dir()
    assert (tmp_path / "large" / "workspace" / "memory" / "large.md").stat().st_size >= 2_000_000


def test_a_disk_that_is_too_small_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(PlainmindError, match="MB free, and this takes up to"):
        run(Plan(chunks=(10**12,)), str(tmp_path))

    assert list(tmp_path.iterdir()) == []


def test_a_process_that_fails_is_no_figure(tmp_path):
    with pytest.raises(PlainmindError, match="no such luck"):
        lap([sys.executable, "-c", "raise SystemExit('no such luck')"], {})
    with pytest.raises(PlainmindError, match="the process whose memory is measured failed"):
        residency({"workspace": str(tmp_path / "file" / "x"), "home": "\0"})


def test_what_lies_in_a_folder_is_added_up(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "deep" / "b").write_bytes(b"123")

    assert bytes_in(str(tmp_path)) == 8
