"""Ids: unique, sortable, and never confused by a clock."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.files import ids as ids_of_files
from plainmind.files.ids import new_id, time_of

ALPHABET = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


@pytest.fixture(autouse=True, scope="module")
def _ids_of_other_tests_are_of_today() -> Iterator[None]:
    yield
    ids_of_files._start_anew()  # else they count on from the year 10889


def test_an_id_is_26_characters_that_cannot_be_misread() -> None:
    assert len(new_id()) == 26
    assert set(new_id()) <= ALPHABET


@given(st.lists(st.floats(-1e12, 1e13), min_size=2, max_size=30))
def test_ids_rise_whatever_the_clock_does(times: list[float]) -> None:
    ids = [new_id(lambda at=at: at) for at in times]  # type: ignore[misc]
    assert ids == sorted(set(ids))


def test_ids_rise_within_one_millisecond_and_with_bad_luck() -> None:
    ids = [new_id(lambda: 1e9, lambda count: b"\xff" * count) for _ in range(1000)]
    assert ids == sorted(set(ids))


def test_threads_never_get_the_same_id() -> None:
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.extend([new_id() for _ in range(500)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 2000


def test_an_id_tells_when_it_was_given() -> None:
    before = time.time()
    given = time_of(new_id())
    assert before - 0.001 <= given
    with pytest.raises(ValueError, match="invalid literal"):
        time_of("not an id!")


def test_a_forked_child_does_not_give_its_parents_next_ids() -> None:
    stopped = 1e13  # the latest possible time: both processes can only count on
    new_id(lambda: stopped)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, new_id(lambda: stopped).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 26).decode()
    os.close(read)
    os.close(write)
    assert theirs != new_id(lambda: stopped)
