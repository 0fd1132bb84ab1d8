"""When what was taken out of an index is wiped from its bytes."""

import os

import pytest

from plainmind.index.remains import Remains


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def remains(tmp_path, clock):
    return Remains(str(tmp_path), clock)


def is_marked(tmp_path):
    return (tmp_path / "removed.json").exists()


def test_it_is_time_at_once_for_who_asks_and_after_an_hour_for_others(remains, clock):
    remains.note()

    assert remains.is_due(soon=True)
    assert not remains.is_due(soon=False)
    clock.now += 3_600
    assert remains.is_due(soon=False)


def test_a_later_note_does_not_begin_the_hour_anew(remains, clock):
    remains.note()
    clock.now += 3_000
    remains.note()
    clock.now += 700

    assert remains.is_due(soon=False)


def test_wiping_takes_a_twentieth_of_the_time_at_most(remains, clock):
    remains.note()
    remains.clear(remains.stamp(), seconds=2.0)
    clock.now += 39
    remains.note()

    assert not remains.is_due(soon=True)
    clock.now += 2
    assert remains.is_due(soon=True)


def test_what_was_taken_out_while_it_was_wiped_is_wiped_the_next_time(remains, tmp_path):
    remains.note()
    stamp = remains.stamp()
    os.utime(tmp_path / "removed.json", (1, 1))  # so that the next note is surely another moment
    remains.note()
    remains.clear(stamp, seconds=0.1)
    assert is_marked(tmp_path)

    remains.clear(remains.stamp(), seconds=0.1)
    assert not is_marked(tmp_path)


def test_a_clock_that_was_set_back_and_a_mark_that_cannot_be_read_mean_now(remains, clock, tmp_path):
    remains.note()
    clock.now -= 10_000
    assert remains.is_due(soon=False)

    (tmp_path / "removed.json").write_text("{")
    assert remains.is_due(soon=False)
