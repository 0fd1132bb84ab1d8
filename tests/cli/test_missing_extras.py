"""Without LanceDB, commands that need it say what to install, and `doctor` still looks at everything else."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

INSTALL = "[lancedb]'"  # of the checkout that the tests run in; tests/base/test_extras.py has the whole line


@pytest.fixture(autouse=True)
def without_lancedb(monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setitem(sys.modules, "lancedb", None)
    monkeypatch.setattr(importlib.metadata, "version", version)


@pytest.mark.parametrize("command", [["search", "printer"], ["sync"], ["status"]])
def test_a_command_that_needs_the_index_says_what_to_install(cli, workspace, command):
    answer = cli(*command, "--config", "store.driver=lancedb")

    assert answer.status == 1
    assert [line.split(":")[0] for line in answer.err.splitlines()] == ["error", "hint"]
    assert INSTALL in answer.err


def test_doctor_names_it_among_its_findings(cli, workspace):
    answer = cli("doctor", "--json", "--config", "store.driver=lancedb")

    found = {check["name"]: check for check in answer.json["checks"]}
    assert answer.status == 1
    assert INSTALL in found["index"]["hint"]
    assert found["workspace"]["verdict"] == "ok"
