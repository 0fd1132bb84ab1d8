"""A command imports what it needs and nothing else: start-up is a feature."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from commonplace.surfaces.cli.main import main
status = main(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(status)
"""
BUILD = (
    "import sys; from commonplace.surfaces.cli.main import build_parser; build_parser(); print(*sys.modules)"
)
HEAVY = {
    "numpy", "watchfiles", "json5", "asyncio", "logging", "subprocess", "difflib", "importlib.metadata", "zipfile",
}  # fmt: skip
OF_THE_MEMORY = ("commonplace.memory", "commonplace.config", "commonplace.store", "apsw")


def modules_of(*argv):
    # Whatever measures this test run must not import its own modules over there.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv], capture_output=True, text=True, check=True, env=plain
    )
    return set(ended.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["search", "--help"]])
def test_help_needs_no_memory(argv):
    modules = modules_of(*argv)

    assert modules & (HEAVY | {"dataclasses", "datetime", "json"}) == set()
    assert [name for name in modules if name.startswith(OF_THE_MEMORY)] == []


def test_a_search_imports_nothing_heavy_and_no_other_command(workspace):
    modules_of("sync")

    modules = modules_of("search", "gateway", "-n", "1")

    assert modules & (HEAVY | {"commonplace.memory.doctor", "commonplace.memory.forgetting"}) == set()
    assert {name for name in modules if name.startswith("commonplace.surfaces.cli.")} == {
        f"commonplace.surfaces.cli.{name}"
        for name in ("commands", "console", "hits", "main", "opening", "options", "searching", "wording")
    }


def test_building_every_parser_needs_no_memory():
    ended = subprocess.run([sys.executable, "-c", BUILD], capture_output=True, text=True, check=True)

    assert [name for name in ended.stdout.split() if name.startswith(OF_THE_MEMORY)] == []
