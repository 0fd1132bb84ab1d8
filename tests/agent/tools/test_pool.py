"""Nobody waits for longer than they said, and work that is late is finished all the same."""

from __future__ import annotations

import threading

import pytest

from plainmind.agent.tool_calls import Pool, TimedOut


@pytest.fixture
def pool(request):
    pool = Pool(most=2, name=request.node.name)
    yield pool
    pool.close()


def test_work_that_is_done_in_time_gives_its_result(pool):
    assert pool.run(lambda: 6 * 7, seconds=60) == 42


def test_what_the_work_raises_is_raised(pool):
    with pytest.raises(ZeroDivisionError):
        pool.run(lambda: 1 // 0, seconds=60)


def test_late_work_goes_on_and_closing_waits_for_it(pool):
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        go.wait(60)
        done.set()

    with pytest.raises(TimedOut):
        pool.run(work, seconds=0.01)
    go.set()
    pool.close()

    assert done.is_set()
    assert pool.wait(0)


def test_there_are_never_more_late_workers_than_the_limit(pool, request):
    go = threading.Event()
    try:
        for _ in range(5):
            with pytest.raises(TimedOut):
                pool.run(lambda: go.wait(60), seconds=0.01)
        assert [thread.name for thread in threading.enumerate()].count(request.node.name) == 2
    finally:
        go.set()
    pool.close()

    assert pool.run(lambda: "again", seconds=60) == "again"


def test_a_thread_stays_for_the_next_work(pool):
    first = pool.run(threading.get_ident, seconds=60)
    assert pool.wait(60)

    seen = {pool.run(threading.get_ident, seconds=60) for _ in range(20) if pool.wait(60)}

    assert first in seen
    assert len(seen) <= 3
