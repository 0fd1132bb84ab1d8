"""A sidecar that fails in every way it can, again and again: answers in time, and nothing left of it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
from tests.support.qmd_program import QmdProgram

from plainmind import Memory

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
CYCLES = 500 if FULL else 12
KILLS = 40 if FULL else 3
TIMEOUT_S = 2.0
LONG_S = 45.0  # no machine is so busy
MOST_S = TIMEOUT_S if FULL else LONG_S  # for an answer: the full run has a machine for itself
WITHOUT_ANSWER = ("hang", "crash", "refuse", "garbage", "flood", "ignore-term", "escaped", "launcher")
WITH_ANSWER = ("", "complain", "grandchild", "abort-after-answer", "noise")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600 if FULL else 180),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]


@pytest.fixture
def program(tmp_path):
    return QmdProgram(tmp_path / "program")


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# Ada\n\nthe gateway is called tern\n")
    return folder


def settings(program):
    return {
        "backend": "qmd",
        "qmd": {"command": str(program.path), "update": {"debounceMs": 0}},
        "limits": {"timeoutMs": int(TIMEOUT_S * 1000)},
    }


def descriptors() -> int:
    """How many are open, without those that the lookout has open for a moment."""
    count = 0
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            count += not os.readlink(f"/proc/self/fd/{number}").startswith("/proc/")
    return count


def our_children() -> set[int]:
    found = set()
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children") as file:
                found |= {int(number) for number in file.read().split()}
        except FileNotFoundError:
            continue
    return found


class Lookout:
    """Looks how many processes of the program's own kind there are at once."""

    def __init__(self, before: set[int]) -> None:
        self._before = before
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, len(our_children() - self._before))

    def close(self) -> None:
        self._over.set()
        self._thread.join()


def leave_it_no_pause(home) -> None:
    """As if the time had passed after which it is tried again."""
    for pause in home.rglob("pause.json"):
        pause.unlink()


def answers_in_the_end(memory, home) -> bool:
    """Whether it answers, on a machine that may be too busy for it at first."""
    for _ in range(20):
        leave_it_no_pause(home)
        if memory.search("gateway").provider == "qmd":
            return True
    return False


def test_hundreds_of_failures_leave_no_process_no_descriptor_and_no_question_unanswered(
    tmp_path, program, workspace
):
    chance = random.Random(7)
    with Memory(workspace, tmp_path / "home", settings(program)) as memory:
        memory.index.backend.upkeep.close()  # what runs in the background has longer deadlines of its own
        assert answers_in_the_end(memory, tmp_path / "home")
        open_files, children = [], our_children()
        lookout = Lookout(children)
        try:
            for cycle in range(CYCLES):
                faults = WITHOUT_ANSWER if cycle % 2 else WITH_ANSWER
                fault = faults[cycle // 2 % len(faults)]
                program.does(
                    fault, when=chance.choice(("search", "update")) if fault in WITHOUT_ANSWER else "search"
                )
                (workspace / "MEMORY.md").write_text(f"# Ada\n\nthe gateway is called tern {cycle}\n")
                leave_it_no_pause(tmp_path / "home")
                began = time.monotonic()

                result = memory.search("gateway")

                assert time.monotonic() - began < MOST_S, fault
                assert [hit.path for hit in result.hits] == ["MEMORY.md"], fault
                assert f"tern {cycle}" in result.hits[0].snippet, fault
                assert program.all_gone_within(2.0 if FULL else LONG_S), fault
                open_files.append(descriptors())
        finally:
            lookout.close()
        program.does("")
        assert answers_in_the_end(memory, tmp_path / "home")
        assert lookout.most <= 1
        # The first answers of the index open it, and the last of them may be about to be made anew.
        assert max(open_files[8:]) <= max(open_files[:8]), open_files
    assert our_children() <= children
    assert not program.alive()


KILLED = """
import sys
from plainmind import Memory
Memory(sys.argv[1], sys.argv[2], {"backend": "qmd", "qmd": {"command": sys.argv[3]}}).search("gateway")
"""


def test_when_we_are_killed_at_any_moment_the_program_does_not_survive_us(tmp_path, program, workspace):
    chance = random.Random(11)
    for fault in (WITHOUT_ANSWER[number % len(WITHOUT_ANSWER)] for number in range(KILLS)):
        program.does(fault)
        ours = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(workspace), str(tmp_path / "home"), str(program.path)],
            stderr=subprocess.DEVNULL,
        )
        leave_it_no_pause(tmp_path / "home")
        time.sleep(chance.uniform(0.1, 0.9))

        ours.kill()
        ours.wait()

        assert program.all_gone_within(3.0 if FULL else LONG_S), fault
