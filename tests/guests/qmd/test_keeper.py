"""The process that watches over a program, by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from tests.support.qmd_program import QmdProgram

pytestmark = pytest.mark.timeout(60)

START = "from plainmind.guests.qmd.keeper import main; main()"


@pytest.fixture
def program(tmp_path):
    return QmdProgram(tmp_path / "program")


def keeper(program, *argv, parent=None, seconds=60.0, grace=60.0):
    arguments = [str(parent or os.getpid()), str(seconds), str(grace), str(program.path), *argv]
    return subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def running(program):
    until = time.monotonic() + 30
    while not program.alive():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_it_ends_with_the_program_and_with_its_status(program):
    with keeper(program, "--version") as kept:
        assert kept.stdout.read() == b"qmd 9.8.7 (abcdef0)\n"
        assert kept.wait() == 0
    with keeper(program, "unknown") as kept:
        assert kept.wait() == 1


@pytest.mark.parametrize("fault", ["hang", "ignore-term", "escaped"])
def test_it_ends_the_program_when_its_time_is_over(program, fault):
    program.does(fault)

    with keeper(program, "search", seconds=0.4, grace=0.2) as kept:
        assert kept.wait(30) in {128 + signal.SIGTERM, 128 + signal.SIGKILL}

    assert program.all_gone_within()


def test_it_ends_the_program_when_its_input_is_closed(program):
    program.does("hang")
    with keeper(program, "search") as kept:
        running(program)

        kept.stdin.close()

        assert kept.wait(30) == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_the_program_when_it_is_told_to(program, number):
    program.does("hang")
    with keeper(program, "search") as kept:
        running(program)

        kept.send_signal(number)

        assert kept.wait(30) == 128 + signal.SIGTERM
    assert program.all_gone_within()


def test_it_starts_nothing_for_long_for_a_parent_that_is_gone(program):
    program.does("hang")

    with keeper(program, "search", parent=1) as kept:
        assert kept.wait(30) >= 128

    assert program.all_gone_within()


def test_when_it_is_killed_itself_the_program_goes_with_it(program):
    program.does("hang")
    with keeper(program, "search") as kept:
        running(program)

        kept.kill()

    assert program.all_gone_within()
