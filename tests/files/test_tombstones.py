"""Tombstones: forgotten texts stay away for a day, in every process, by hash alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from plainmind.base.errors import PlainmindError
from plainmind.files import tombstones as module
from plainmind.files.tombstones import Tombstones

HOUR = 3600.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "tombstones.jsonl"


def test_what_is_buried_is_buried_in_every_process_at_once(file: Path, clock: Clock) -> None:
    here, there = Tombstones(str(file), clock=clock), Tombstones(str(file), clock=clock)
    assert not there.is_buried("aa")

    here.bury(["aa", "bb", "aa"])
    assert there.is_buried("aa")
    there.bury(["cc"])

    assert [here.is_buried(text_hash) for text_hash in ("aa", "bb", "cc", "dd")] == [True, True, True, False]


def test_burying_nothing_writes_nothing(file: Path) -> None:
    Tombstones(str(file)).bury([])
    assert not file.exists()


def test_a_tombstone_stands_for_a_day_even_if_the_clock_goes_back(file: Path, clock: Clock) -> None:
    stones = Tombstones(str(file), clock=clock)
    stones.bury(["aa"])
    clock.now -= 100 * HOUR
    assert stones.is_buried("aa")
    clock.now += 100 * HOUR + 23 * HOUR
    assert stones.is_buried("aa")
    clock.now += 2 * HOUR
    assert not stones.is_buried("aa")


def test_the_later_of_two_burials_counts(file: Path, clock: Clock) -> None:
    stones = Tombstones(str(file), clock=clock)
    stones.bury(["aa"])
    clock.now -= 10 * HOUR
    stones.bury(["aa"])
    clock.now += 25 * HOUR
    assert stones.is_buried("aa")


def test_a_file_that_has_grown_is_rid_of_what_expired(
    file: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMPACT_ABOVE_BYTES", 2_000)
    stones = Tombstones(str(file), clock=clock)
    stones.bury(f"{number:064}" for number in range(100))
    clock.now += 20 * HOUR
    stones.bury(["kept"])
    clock.now += 5 * HOUR
    stones.bury(["new"])

    assert file.stat().st_size < 1_000
    assert stones.is_buried("kept")
    assert stones.is_buried("new")
    assert not stones.is_buried(f"{1:064}")


def test_lines_that_cannot_be_read_hide_no_others(file: Path, clock: Clock) -> None:
    stones = Tombstones(str(file), clock=clock)
    stones.bury(["aa"])
    with file.open("ab") as lines:
        lines.write(b'no json\n[]\n{"at": 1}\n{"at": "x", "hashes": []}\n')
    stones.bury(["bb"])
    assert stones.is_buried("aa")
    assert stones.is_buried("bb")


def test_a_file_that_cannot_be_read_is_an_error_and_not_an_empty_one(file: Path) -> None:
    file.mkdir(parents=True)
    with pytest.raises(PlainmindError, match="could not read"):
        Tombstones(str(file)).is_buried("aa")


def test_a_removed_file_means_that_nothing_is_buried(file: Path, clock: Clock) -> None:
    stones = Tombstones(str(file), clock=clock)
    stones.bury(["aa"])
    assert stones.is_buried("aa")
    file.unlink()
    assert not stones.is_buried("aa")
