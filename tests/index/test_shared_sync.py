import threading

import pytest

from plainmind.base.model import SyncReport
from plainmind.index.sync import SharedSync


class SlowSync:
    def __init__(self):
        self.runs = 0
        self.thorough = []
        self.started = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, *, force=False, progress=None, thorough=True, view=None):
        self.runs += 1
        self.thorough.append(thorough)
        self.started.set()
        assert self.go_on.wait(60)
        return SyncReport(unchanged=self.runs)


def run(shared, sync, *, force=False, thorough=True):
    """Take a turn, as the index of a memory does."""
    with shared.turn(thorough=thorough, alone=force) as turn:
        if turn.report is None:
            turn.report = sync(force=force, thorough=thorough)
    return turn.report


def test_callers_who_wait_share_the_next_run():
    slow = SlowSync()
    shared = SharedSync()
    reports = []
    threads = [threading.Thread(target=lambda: reports.append(run(shared, slow))) for _ in range(6)]
    threads[0].start()
    assert slow.started.wait(60)
    for thread in threads[1:]:
        thread.start()
    while shared._arrived < 6:
        pass
    slow.go_on.set()
    for thread in threads:
        thread.join(60)

    assert len(reports) == 6
    assert slow.runs == 2


def test_a_run_that_began_before_the_call_does_not_count():
    slow = SlowSync()
    slow.go_on.set()
    shared = SharedSync()
    run(shared, slow)
    run(shared, slow)

    assert slow.runs == 2


def test_after_a_failure_the_next_caller_tries_again():
    calls = []

    def sometimes(*, force=False, progress=None, thorough=True, view=None):
        calls.append(force)
        if len(calls) == 1:
            raise OSError("disk")
        return SyncReport()

    shared = SharedSync()
    with pytest.raises(OSError, match="disk"):
        run(shared, sometimes)

    assert run(shared, sometimes, force=True) == SyncReport()
    assert calls == [False, True]


def test_a_thorough_caller_is_not_content_with_a_run_that_was_not():
    slow = SlowSync()
    shared = SharedSync()
    threads = [
        threading.Thread(target=run, args=(shared, slow), kwargs={"thorough": False}) for _ in range(2)
    ]
    threads.append(threading.Thread(target=run, args=(shared, slow)))
    threads[0].start()
    assert slow.started.wait(60)
    for thread in threads[1:]:
        thread.start()
        while shared._arrived < threads.index(thread) + 1:
            pass
    slow.go_on.set()
    for thread in threads:
        thread.join(60)

    assert slow.thorough.count(True) == 1
    assert slow.runs == len(slow.thorough)
