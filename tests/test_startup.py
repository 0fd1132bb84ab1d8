"""Start-up is a feature: every command imports what it needs and nothing else. A new command joins the table below."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

PROGRAM = """
import sys
before = set(sys.modules)
from plainmind.cli.main import main
status = main(sys.argv[1:])
print(*sorted(set(sys.modules) - before), file=sys.stderr)
sys.exit(status)
"""
BUILD = "import sys; from plainmind.cli.main import build_parser; build_parser(); print(*sys.modules)"

# What no short command may wait for: each takes from 1 to 65 ms to import.
NEVER = (
    "ast", "asyncio", "concurrent", "ctypes", "dataclasses", "difflib", "email", "hashlib", "importlib.metadata",
    "inspect", "json5", "logging", "multiprocessing", "numpy", "pathlib", "random", "secrets", "shutil", "socket",
    "ssl", "subprocess", "tempfile", "typing", "urllib", "watchfiles", "zipfile",
)  # fmt: skip
THE_MEMORY = (
    "plainmind.memory",
    "plainmind.config",
    "plainmind.index",
    "plainmind.search",
    "apsw",
    "simsimd",
)
WRITING = ("plainmind.notes.notebook", "plainmind.files.append", "plainmind.files.history")
# What changes an index, or reads text that is new.
CHANGING = (
    *(f"plainmind.index.{name}" for name in ("driver", "writer", "digest")),
    *(f"plainmind.index.drivers.sqlite.{name}" for name in ("build", "contents", "vector_copies", "writer")),
    *("plainmind.files.atomic", "plainmind.text.chunking", "plainmind.text.note_format", "unicodedata"),
)
LESSER = ("plainmind.memory.doctor", "plainmind.memory.forget", "plainmind.memory.status")


@dataclass(frozen=True)
class Command:
    """A command line, the most modules it may import, and what it has no use for."""

    argv: tuple[str, ...]
    ours: int
    others: int
    without: tuple[str, ...] = ()


COMMANDS = [
    Command(("--version",), ours=11, others=31, without=(*THE_MEMORY, "datetime", "json")),
    Command(("--help",), ours=11, others=31, without=(*THE_MEMORY, "datetime", "json")),
    Command(("search", "--help"), ours=13, others=34, without=(*THE_MEMORY, "datetime", "json")),
    Command(("sessions", "--help"), ours=16, others=34, without=(*THE_MEMORY, "json")),
    Command(("import", "--help"), ours=15, others=34, without=(*THE_MEMORY, "json")),
    Command(
        ("search", "gateway", "-n", "1"), ours=45, others=58, without=(*WRITING, *CHANGING, *LESSER, "json")
    ),
    Command(("search", "gateway", "--json"), ours=45, others=62, without=(*WRITING, *CHANGING, *LESSER)),
    Command(("get", "MEMORY.md"), ours=50, others=50, without=(*WRITING, *LESSER, "plainmind.index", "apsw")),
    Command(
        ("redact", __file__),
        ours=68,
        others=50,
        without=(*WRITING, *LESSER, "plainmind.index", "plainmind.search", "apsw"),
    ),
    Command(
        ("sync",),
        ours=100,
        others=60,
        without=(*WRITING, *CHANGING, *LESSER, "plainmind.search", "simsimd"),
    ),
]


@pytest.fixture
def indexed(tmp_path, monkeypatch):
    """A workspace whose index is up to date."""
    for name in [name for name in os.environ if name.startswith("PLAINMIND_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Memory\n\n- The printer is on VLAN 40.\n")
    (folder / "memory" / "network.md").write_text("# Network\n\nThe gateway is a Mac Studio in the cellar.\n")
    for path in folder.rglob("*.md"):
        os.utime(path, (1.7e9, 1.7e9))  # a file that was written just now is read once more to be sure
    monkeypatch.setenv("PLAINMIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PLAINMIND_WORKSPACE", str(folder))
    modules_of("sync")
    return folder


def modules_of(*argv):
    # Whatever measures this test run must not import its own modules over there.
    plain = {name: setting for name, setting in os.environ.items() if not name.startswith("COVERAGE")}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv], capture_output=True, text=True, check=False, env=plain
    )
    assert ended.returncode == 0, ended.stderr
    return set(ended.stderr.splitlines()[-1].split())


def of_packages(modules, packages):
    return sorted(
        name
        for name in modules
        if name.startswith(tuple(f"{package}." for package in packages)) or name in packages
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.argv))
def test_a_command_imports_what_it_needs_and_nothing_else(command, indexed):
    modules = modules_of(*command.argv)
    ours = {name for name in modules if name.split(".")[0] == "plainmind"}

    assert of_packages(modules, NEVER) == []
    assert of_packages(modules, command.without) == []
    assert len(ours) <= command.ours, sorted(ours)
    assert len(modules - ours) <= command.others, sorted(modules - ours)


def test_a_search_imports_the_modules_of_no_other_command(indexed):
    modules = modules_of("search", "gateway")

    used = {name.rpartition(".")[2] for name in of_packages(modules, ["plainmind.cli"])}
    assert used == {"cli", "console", "main", "options", "search"}


def test_a_search_right_after_an_edit_embeds_it_without_numpy(indexed):
    (indexed / "memory" / "network.md").write_text("# Network\n\nThe gateway moved to Hetzner on Friday.\n")

    assert of_packages(modules_of("search", "where is the gateway?"), ["numpy"]) == []


def test_remembering_needs_neither_the_index_nor_numpy(indexed):
    modules = modules_of("remember", "the gateway moved to Hetzner")

    assert of_packages(modules, ["numpy", "plainmind.search", "dataclasses", "typing", "subprocess"]) == []


def test_status_counts_entries_without_loading_what_finds_them(indexed, tmp_path):
    folder = tmp_path / "home" / "entries" / "main"
    folder.mkdir(parents=True)
    (folder / "entries.jsonl").write_text('{"id": "01TEA", "text": "Anna prefers tea"}\n')
    modules = modules_of("status")

    assert "plainmind.guests.entries.entry_file" in modules
    assert of_packages(modules, ["lancedb", "pyarrow", "numpy", "plainmind.guests.lancedb"]) == []


def test_status_loads_nothing_of_entries_where_there_are_none(indexed):
    assert of_packages(modules_of("status"), ["plainmind.guests.entries.memory", "lancedb"]) == []


def test_building_every_parser_needs_no_memory():
    ended = subprocess.run([sys.executable, "-c", BUILD], capture_output=True, text=True, check=True)

    assert of_packages(ended.stdout.split(), THE_MEMORY) == []
