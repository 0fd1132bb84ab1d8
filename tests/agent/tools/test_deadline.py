"""Nobody waits for longer than they said, and work that is late is finished all the same."""

from __future__ import annotations

import threading

import pytest

from plainmind.agent.pool import Deadlines, TimedOut


@pytest.fixture
def deadlines():
    deadlines = Deadlines(most=2)
    yield deadlines
    deadlines.close()


def test_work_that_is_done_in_time_gives_its_result(deadlines):
    assert deadlines.run(lambda: 6 * 7, seconds=60, name="work") == 42


def test_what_the_work_raises_is_raised(deadlines):
    with pytest.raises(ZeroDivisionError):
        deadlines.run(lambda: 1 // 0, seconds=60, name="work")


def test_late_work_goes_on_and_closing_waits_for_it(deadlines):
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        go.wait(60)
        done.set()

    with pytest.raises(TimedOut):
        deadlines.run(work, seconds=0.01, name="late work")
    go.set()
    deadlines.close()

    assert done.is_set()
    assert "late work" not in [thread.name for thread in threading.enumerate()]


def test_there_are_never_more_late_workers_than_the_limit(deadlines):
    go = threading.Event()
    try:
        for _ in range(5):
            with pytest.raises(TimedOut):
                deadlines.run(lambda: go.wait(60), seconds=0.01, name="late work")
        assert [thread.name for thread in threading.enumerate()].count("late work") == 2
    finally:
        go.set()
    deadlines.close()

    assert deadlines.run(lambda: "again", seconds=60, name="work") == "again"
