"""The page of promises: every test that it names is there, and the figures are those that runs have written down."""

from __future__ import annotations

import datetime as dt
import json
import re

import describe_proof
import pytest
from install import ROOT
from tests.support import results


def test_every_test_that_the_page_names_is_there():
    page = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")

    named = set(re.findall(r"`(tests/[\w/]+(?:\.py)?)`", page))

    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_what_a_run_writes_down_is_on_the_page(monkeypatch, tmp_path):
    monkeypatch.setattr(results, "RESULTS", tmp_path / "proof.json")
    monkeypatch.setattr(describe_proof, "RESULTS", tmp_path / "proof.json")
    results.write_down("fuzz", {"mcp": {"cases": 12_345, "lines": 9, "faults": 0}})
    results.write_down("fuzz", {"v1": {"cases": 77, "lines": 8, "faults": 2}})
    soak = {
        "minutes": 3,
        "operations": 5,
        "rest_s": 0.5,
        "processes": 2,
        "curves": 4,
        "rising": ["page: threads"],
    }
    results.write_down("soak", soak)

    results.write_down("upkeep", {"sequences": 10_000, "steps": 10, "faults": 0})

    page = describe_proof.proof_part()

    assert "10,000 sequences of 10 steps" in page
    assert "mcp: 12,345 cases, 9 lines reached | no fault" in page
    assert "v1: 77 cases, 8 lines reached | 2 faults" in page
    assert "3 minutes, 5 operations with a rest of 0.5 s behind each by 2 processes, 4 curves" in page
    assert "4 curves | 1 rise; page: threads" in page
    assert json.loads((tmp_path / "proof.json").read_text())["fuzz"]["mcp"]["day"] in page


def test_each_part_of_a_run_has_the_day_on_which_it_was_run(monkeypatch, tmp_path):
    monkeypatch.setattr(results, "RESULTS", tmp_path / "proof.json")
    monkeypatch.setattr(describe_proof, "RESULTS", tmp_path / "proof.json")
    results.write_down("fuzz", {"mcp": {"cases": 12, "lines": 9, "faults": 0}}, dt.date(2026, 11, 18))
    results.write_down("fuzz", {"v1": {"cases": 77, "lines": 8, "faults": 0}}, dt.date(2026, 11, 20))

    rows = [line for line in describe_proof.proof_part().splitlines() if line.startswith("| `make fuzz` |")]

    assert [(row.split(",")[0], row.split("| ")[3].split(",")[0]) for row in rows] == [
        ("| `make fuzz` | 2026-11-18", "mcp: 12 cases"),
        ("| `make fuzz` | 2026-11-20", "v1: 77 cases"),
    ]


def test_a_promise_whose_test_is_gone_stops_the_page(monkeypatch):
    monkeypatch.setattr(describe_proof, "PROMISES", (("words", ("tests/none.py",), ""),))

    with pytest.raises(AttributeError, match=r"tests/none\.py"):
        describe_proof.proof_part()
