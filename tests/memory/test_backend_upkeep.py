"""Keeping an engine up to date in the background: not too early, not too often, and not after the end."""

from __future__ import annotations

import threading
import time

import pytest

from plainmind.base.model import SyncReport
from plainmind.memory.backend import Upkeep

pytestmark = pytest.mark.timeout(60)


class Engine:
    """Notes what it was asked, and is due when a test says so."""

    def __init__(self):
        self.synced = threading.Semaphore(0)
        self.looked = []
        self.wait = 100.0

    def sync(self, initiative):
        assert initiative == "background"
        self.wait = 100.0
        self.synced.release()
        return SyncReport()

    def seconds_until_due(self, *, changed):
        self.looked.append(changed)
        return self.wait


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def upkeep(engine):
    upkeep = Upkeep(engine, begins_after_s=60.0)
    yield upkeep
    upkeep.close()


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "plainmind-engine"]


def looked(engine, times):
    until = time.monotonic() + 30
    while len(engine.looked) < times:
        assert time.monotonic() < until
        time.sleep(0.005)
    return engine.looked


def test_nothing_is_done_before_it_is_clear_that_the_process_lives_on(engine, upkeep):
    engine.wait = 0.0
    upkeep.notice()

    assert not engine.synced.acquire(timeout=0.2)
    upkeep.begin()
    assert engine.synced.acquire(timeout=30)


def test_without_a_notice_there_is_no_thread(engine):
    before = len(threads())

    Upkeep(engine)

    assert len(threads()) == before


def test_many_notices_are_one_thread(engine, upkeep):
    before = len(threads())
    for _ in range(10):
        upkeep.notice()

    assert len(threads()) == before + 1


def test_a_notice_has_the_files_looked_at_and_what_is_due_is_done(engine, upkeep):
    upkeep.begin()
    assert looked(engine, 1)[0] is True
    engine.wait = 0.0

    upkeep.notice()

    assert engine.synced.acquire(timeout=30)
    assert looked(engine, 3) == [True, True, False]


def test_after_the_end_there_is_no_thread_and_no_other_begins(engine, upkeep):
    before = len(threads())
    upkeep.begin()
    looked(engine, 1)

    upkeep.close()
    upkeep.notice()

    assert len(threads()) == before
