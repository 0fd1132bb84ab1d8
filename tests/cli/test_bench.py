"""`bench` prints figures for people and for programs, and compares two runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EVALS = Path(__file__).resolve().parents[2] / "evals" / "plainmind"


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "set" / "house"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "network.md").write_text("# Network\n\nThe gateway runs on a Mac Studio.\n")
    rows = [
        {
            "id": "a",
            "query": "where does the gateway run?",
            "category": "fact",
            "gold": [{"path": "memory/network.md", "line_start": 3, "line_end": 3}],
        },
        {"id": "b", "query": "zebrafish spectrometer", "category": "absent", "gold": []},
    ]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder.parent


def test_figures_are_printed_by_category(cli, dataset):
    answer = cli("bench", "eval", str(dataset))

    head, every, fact, absent, blank, last = answer.out.splitlines()
    assert head.split() == ["n", "recall@6", "hit@1", "MRR@10", "nDCG@10", "tokens", "of", "6", "recall@2400"]
    assert every.split()[:6] == ["all", "1", "1.0000", "1.0000", "1.0000", "1.0000"]
    assert fact.split()[:3] == ["fact", "1", "1.0000"]
    assert absent.split()[:2] == ["absent", "1"]
    assert (blank, last.split(":")[0]) == ("", "2 questions, 1 workspace")
    assert len({len(head), len(every), len(fact)}) == 1
    assert (answer.status, answer.err) == (0, "")


def test_programs_get_every_figure(cli, dataset):
    answer = cli("bench", "eval", str(dataset), "--json", "--provider", "none", "-n", "3").json

    assert list(answer) == [
        "schema_version", "workspaces", "baseline", "n", "all", "byCategory", "milliseconds", "absent",
        "indexSeconds", "notes",
    ]  # fmt: skip
    assert (answer["workspaces"], answer["baseline"], answer["n"]) == (["house"], None, 1)
    assert answer["all"] == {key: value for key, value in answer["byCategory"]["fact"].items() if key != "n"}
    assert set(answer["milliseconds"]) == {"mean", "p95"}
    assert answer["absent"] == {"n": 1, "silent": 1.0}


def test_questions_of_another_file_are_asked_and_compared_when_it_is_named(cli, dataset, tmp_path):
    first = (dataset / "house" / "queries.jsonl").read_text().splitlines()[0]
    (dataset / "house" / "kept.jsonl").write_text(first.replace('"a"', '"z"'))

    for name in ("before", "after"):
        answer = cli("bench", "eval", str(dataset), "--questions", "kept", "--out", str(tmp_path / name))
        assert answer.out.splitlines()[-1].startswith("1 question, 1 workspace")

    files = [str(tmp_path / name) for name in ("before", "after")]
    assert cli("bench", "compare", *files, str(dataset), "--questions", "kept").status == 0
    assert "no answer for 1 of 1" in cli("bench", "compare", *files, str(dataset)).err


def test_results_go_to_the_file_that_is_named(cli, dataset, tmp_path):
    for name in ("before", "after"):
        assert cli("bench", "eval", str(dataset), "--out", str(tmp_path / name)).status == 0

    rows = [json.loads(line) for line in (tmp_path / "before").read_text().splitlines()]
    assert [(row["ws"], row["id"]) for row in rows] == [("house", "a"), ("house", "b")]
    compared = cli("bench", "compare", str(tmp_path / "before"), str(tmp_path / "after"), str(dataset))
    lines = compared.out.splitlines()
    assert lines[1].split() == ["recall@6", "1.0000", "1.0000", "+0.0000", "+0.0000", "…", "+0.0000"]
    assert lines[-1].startswith("1 question; ")
    as_json = cli(
        "bench", "compare", str(tmp_path / "before"), str(tmp_path / "after"), str(dataset), "--json"
    ).json
    assert as_json["n"] == 1
    assert as_json["differences"][0] == {
        "metric": "recall6", "before": 1.0, "after": 1.0, "gain": 0.0, "low": 0.0, "high": 0.0, "certain": False,
    }  # fmt: skip


def test_a_baseline_and_one_workspace_can_be_chosen(cli, dataset):
    answer = cli("bench", "eval", str(dataset), "--workspace", "house", "--baseline", "grep", "--json").json

    assert (answer["baseline"], answer["all"]["recall6"]) == ("grep", 1.0)
    assert cli("bench", "eval", str(dataset), "--workspace", "shed").status == 1


def test_a_file_left_out_is_told_on_stderr(cli, dataset):
    (dataset / "house" / "memory" / "link.md").symlink_to("network.md")

    assert "house: not indexed: memory/link.md" in cli("bench", "eval", str(dataset)).err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["bench"], "required: WHAT"),
        (["bench", "eval"], "required: DIR"),
        (["bench", "eval", ".", "--baseline", "magic"], "invalid choice: 'magic'"),
        (["bench", "eval", ".", "-n", "0"], "must be a whole number"),
    ],
)
def test_wrong_usage_is_explained(cli, argv, message):
    answer = cli(*argv)

    assert answer.status == 2
    assert message in answer.err


def test_a_folder_without_questions_is_an_error_with_a_hint(cli, tmp_path):
    answer = cli("bench", "eval", str(tmp_path))

    assert answer.status == 1
    assert "there are no questions" in answer.err
    assert "queries.jsonl" in answer.err


def test_the_examples_in_the_help_name_a_workspace_that_is_there():
    assert (EVALS / "orchard" / "queries.jsonl").exists()


@pytest.mark.parametrize("more", [[], ["--chunks", "1000", "--json"]])
def test_speed_is_measured_in_a_checkout_and_the_command_says_so(cli, more):
    answer = cli("bench", "speed", *more)

    assert answer.status == 1
    said = answer.out + answer.err
    assert "speed is measured by a program of the repository, which is not installed" in said
    assert "`make bench`" in said
    assert "benchmarks/measure_speed.py" in said
