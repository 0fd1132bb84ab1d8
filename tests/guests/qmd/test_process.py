"""Running a program that misbehaves: it is over when its time is, and nothing of it stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import UserDict
from contextlib import suppress

import pytest
from tests.support.qmd_program import QmdProgram

from plainmind.guests.qmd.program import Sidecar, TookTooLong
from plainmind.memory.backend import BackendBusy, BackendFailed

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    pytest.mark.timeout(60),
]
LONG = 45.0  # seconds that nothing here takes, but for a program that sleeps for ten minutes


@pytest.fixture
def program(tmp_path):
    return QmdProgram(tmp_path / "program")


@pytest.fixture
def sidecar():
    sidecar = Sidecar()
    yield sidecar
    sidecar.close()


def run(sidecar, program, *argv, timeout_s=LONG, max_output=1_000_000):
    return sidecar.run(
        [str(program.path), *argv],
        environ={"PATH": os.environ["PATH"]},
        cwd="/",
        timeout_s=timeout_s,
        max_output=max_output,
    )


def failing(sidecar, program, timeout_s):
    with pytest.raises(BackendFailed):
        run(sidecar, program, "search", timeout_s=timeout_s)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_what_a_program_says_and_how_it_ended_is_told(sidecar, program):
    outcome = run(sidecar, program, "--version")

    assert (outcome.status, outcome.output) == (0, b"qmd 9.8.7 (abcdef0)\n")


def test_a_status_and_the_last_words_are_told(sidecar, program):
    program.does("refuse")

    outcome = run(sidecar, program, "search")

    assert outcome.status == 1
    assert "malformed" in outcome.complaints


def test_a_crash_is_a_status_as_a_shell_tells_it(sidecar, program):
    program.does("crash")

    assert run(sidecar, program, "search").status == 128 + signal.SIGSEGV


def test_a_program_that_is_not_there_says_so(sidecar, tmp_path):
    outcome = sidecar.run([str(tmp_path / "none")], environ={}, cwd="/", timeout_s=LONG, max_output=100)

    assert outcome.status == 127
    assert "No such file" in outcome.complaints


def test_arguments_arrive_as_they_are_whatever_a_shell_would_make_of_them(sidecar, program):
    hostile = ["search", "$(touch x)", "; rm -rf /", "-c", "--", "a\nb", "'\"`", "ü 桥"]

    run(sidecar, program, *hostile)

    assert program.calls[-1]["argv"] == hostile


@pytest.mark.parametrize("fault", ["hang", "ignore-term", "launcher", "escaped"])
def test_a_program_that_hangs_is_given_up_in_time_and_gone_soon_after(sidecar, program, fault):
    program.does(fault)
    began = time.monotonic()

    with pytest.raises(TookTooLong):
        run(sidecar, program, "search", timeout_s=1.0)

    assert time.monotonic() - began < LONG
    assert program.all_gone_within()


def test_what_a_program_leaves_behind_is_ended_and_its_answer_counts(sidecar, program):
    program.does("grandchild")
    began = time.monotonic()

    outcome = run(sidecar, program, "--version")

    assert outcome.output == b"qmd 9.8.7 (abcdef0)\n"
    assert time.monotonic() - began < LONG
    assert program.all_gone_within()


def test_a_gigabyte_is_not_taken_in(sidecar, program):
    program.does("flood")

    with pytest.raises(BackendFailed, match="said more than 1,000,000 bytes"):
        run(sidecar, program, "search")

    assert program.all_gone_within()


def test_nobody_needs_to_listen(sidecar, program):
    program.does("complain")

    assert run(sidecar, program, "--version", max_output=None).output == b""


def test_endless_complaints_do_not_stop_an_answer_and_only_the_last_are_kept(sidecar, program):
    program.does("complain")

    outcome = run(sidecar, program, "--version")

    assert outcome.output.startswith(b"qmd")
    assert len(outcome.complaints) <= 2000


def test_only_one_runs_at_a_time_and_who_cannot_wait_is_told(sidecar, program):
    program.does("hang")
    first = threading.Thread(target=failing, args=(sidecar, program, LONG))
    first.start()
    while not program.alive():
        time.sleep(0.01)

    with pytest.raises(BackendBusy):
        run(sidecar, program, "search", timeout_s=0.2)

    assert len(program.alive()) == 1
    sidecar.close()
    first.join()


def test_the_next_one_does_not_start_before_the_last_is_gone(sidecar, program):
    program.does("ignore-term")
    with pytest.raises(TookTooLong):
        run(sidecar, program, "search", timeout_s=0.3)
    program.does("")

    outcome = run(sidecar, program, "--version")

    assert outcome.status == 0
    assert not program.alive()


def test_closing_ends_what_runs_and_nothing_runs_afterwards(sidecar, program):
    program.does("ignore-term")
    runs = threading.Thread(target=failing, args=(sidecar, program, LONG))
    runs.start()
    while not program.alive():
        time.sleep(0.01)

    sidecar.close()
    runs.join(LONG)

    assert not runs.is_alive()
    assert program.all_gone_within()
    with pytest.raises(BackendFailed, match="closed"):
        run(sidecar, program, "--version")


class ClosingMeanwhile(UserDict):
    """An environment that takes its time to be copied: meanwhile another thread closes the sidecar."""

    def __init__(self, sidecar):
        super().__init__({"PATH": os.environ["PATH"]})
        self._sidecar = sidecar
        self.closing = threading.Thread(target=sidecar.close)

    def keys(self):
        self.closing.start()
        self.closing.join(0.5)  # a close that does not wait is over by now
        return self.data.keys()


@pytest.mark.timeout(60)
def test_what_is_being_started_while_it_is_closed_is_ended_too(sidecar, program):
    program.does("hang")
    environ = ClosingMeanwhile(sidecar)

    with pytest.raises(BackendBusy):
        sidecar.run([str(program.path), "search"], environ=environ, cwd="/", timeout_s=LONG, max_output=100)

    environ.closing.join()
    assert program.all_gone_within()


def test_descriptors_are_given_back(sidecar, program):
    run(sidecar, program, "--version")
    before = descriptors()

    for fault in ("", "hang", "garbage", "flood", "crash"):
        program.does(fault)
        with suppress(BackendFailed):
            run(sidecar, program, "--version", timeout_s=0.3 if fault == "hang" else LONG)

    assert descriptors() == before


KILLED = """
import json, os, sys
from plainmind.guests.qmd.program import Sidecar
Sidecar().run([sys.argv[1], "search"], environ={}, cwd="/", timeout_s=60, max_output=100)
"""


@pytest.mark.parametrize("fault", ["ignore-term", "launcher", "escaped"])
def test_when_we_are_killed_the_program_is_gone_too(program, fault):
    program.does(fault)
    ours = subprocess.Popen([sys.executable, "-c", KILLED, str(program.path)])
    wanted = {"ignore-term": 1, "launcher": 2, "escaped": 2}[fault]
    until = time.monotonic() + LONG
    while len(program.alive()) < wanted and time.monotonic() < until:
        time.sleep(0.01)
    assert len(program.alive()) == wanted

    ours.kill()
    ours.wait()

    assert program.all_gone_within()


def test_what_it_writes_is_for_its_owner_alone(sidecar, program):
    run(sidecar, program, "--version")

    assert program.calls[-1]["umask"] == 0o077


def test_nothing_of_ours_is_handed_to_it(sidecar, program, tmp_path):
    with (tmp_path / "open.txt").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        outcome = sidecar.run(
            [sys.executable, "-IS", "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))"],
            environ={}, cwd="/", timeout_s=LONG, max_output=1000,
        )  # fmt: skip

    handed = json.loads(outcome.output.decode().replace("'", '"'))
    assert str(file.name) not in {os.path.realpath(f"/proc/self/fd/{number}") for number in handed}
    assert set(handed) <= {"0", "1", "2", "3"}
