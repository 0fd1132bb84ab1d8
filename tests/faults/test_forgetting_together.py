"""Forgetting while other processes rebuild and write the same index, and `kill -9` strikes them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plainmind import Memory

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SECONDS = 120 if FULL else 5
WORKER = Path(__file__).parents[1] / "support" / "together.py"


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 120)
def test_what_is_forgotten_is_in_no_byte_while_others_rebuild_and_are_killed(tmp_path):
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    for number in range(20):
        (workspace / "memory" / f"{number}.md").write_text("# Topic\n\n" + "some plain words\n" * 20)
    with Memory(workspace, home=home) as memory:
        memory.sync()

    def start(role: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(WORKER), role, str(workspace), str(home), str(SECONDS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    seed = random.randrange(2**32)
    dice = random.Random(seed)
    forgetters = [start("forgetting"), start("forgetting")]
    others = {role: start(role) for role in ("syncing", "writing")}
    complaints = []
    while any(worker.poll() is None for worker in forgetters):
        time.sleep(dice.uniform(0.3, 1.5))
        role = dice.choice(list(others))
        others[role].kill()
        complaints.append(others[role].communicate()[1])
        others[role] = start(role)
    for worker in others.values():
        worker.kill()
        complaints.append(worker.communicate()[1])
    outcomes = [worker.communicate() for worker in forgetters]

    assert [errors for _, errors in outcomes if errors] == [], f"seed {seed}"
    assert [worker.returncode for worker in forgetters] == [0, 0], f"seed {seed}"
    assert [complaint for complaint in complaints if complaint] == [], f"seed {seed}"
    assert all(int(said.split()[1]) >= 2 for said, _ in outcomes), outcomes
    with Memory(workspace, home=home) as memory:
        memory.sync()
        lived = memory.index.store.digest()
        memory.sync(force=True)
        assert memory.index.store.digest() == lived, f"seed {seed}"


_ADDING = """
import sys
from plainmind import Memory

with Memory(sys.argv[1], home=sys.argv[2]) as memory:
    print("ready", flush=True)
    while True:
        memory.remember("a note of somebody else")
"""


@pytest.mark.slow
def test_forgetting_succeeds_while_others_add_to_the_same_file_without_a_pause(tmp_path):
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    places = (str(tmp_path / "workspace"), str(tmp_path / "home"))
    with Memory(places[0], home=places[1]) as memory:
        memory.remember("the first")
        command = [sys.executable, "-c", _ADDING, *places]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as adding:
            assert adding.stdout is not None
            adding.stdout.readline()
            try:
                for number in range(156 if FULL else 4):
                    note = memory.remember(f"canary-{number:04} is ripe")
                    assert memory.forget(f"canary-{number:04}").applied
                    assert f"canary-{number:04}" not in (tmp_path / "workspace" / note.path).read_text()
            finally:
                adding.kill()
