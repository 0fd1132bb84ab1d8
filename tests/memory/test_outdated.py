"""What is forgotten leaves no word in an index that knows its file by an older name, or as it was before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plainmind import Memory

FILES_WITH = Path(__file__).parents[1] / "support" / "files_with.py"
SECRET = "the quokkaberry is in room 12"


@pytest.fixture
def indexed(workspace, home):
    """The home of an agent that has indexed a file with the secret."""

    def by(agent):
        (workspace / "memory" / "old.md").write_text(f"# Old\n\n- {SECRET}\n- the harbour has a crane\n")
        with Memory(workspace, home=home, config={"agentId": agent}) as memory:
            memory.sync()
        return workspace / "memory" / "old.md"

    return by


def renamed(file):
    file.rename(file.with_name("new.md"))


def moved_within_and_rewritten(file):
    file.with_name("new.md").write_text(file.read_text())
    file.write_text("# Old\n\nnothing any more\n")


@pytest.mark.parametrize("change", [renamed, moved_within_and_rewritten])
@pytest.mark.parametrize("agent", ["ada", "bo"])
@pytest.mark.parametrize(
    "what", ["quokkaberry", "memory/new.md#L3", f"- {SECRET}\n- the harbour has a crane"]
)
def test_a_file_that_changed_without_a_sync_is_erased_too(workspace, home, indexed, change, agent, what):
    change(indexed(agent))
    with Memory(workspace, home=home, config={"agentId": "ada"}) as memory:
        assert memory.forget(what).applied

    seen = subprocess.run(  # the index has it without its ending
        [sys.executable, str(FILES_WITH), "quokkaberr", str(home), str(workspace)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert seen.stdout.splitlines() == []


def test_other_files_that_changed_stay_in_the_index_until_they_are_read_anew(workspace, home, indexed):
    indexed("ada")
    (workspace / "memory" / "other.md").write_text("the lighthouse is white\n")
    with Memory(workspace, home=home, config={"agentId": "ada"}) as memory:
        memory.sync()
        (workspace / "memory" / "other.md").write_text("the lighthouse is red\n")
        memory.forget("quokkaberry")
        assert memory.search("lighthouse").hits[0].snippet == "the lighthouse is red"
