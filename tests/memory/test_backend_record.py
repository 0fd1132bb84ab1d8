"""Facts in one small file, which several processes learn at once."""

from __future__ import annotations

import threading

import pytest

from plainmind.memory.backend import Record


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "engine/record.json")


def test_what_one_process_learns_another_knows(path):
    first, second = Record(path), Record(path)
    assert second["version"] is None

    first.update(version="2.8.3")

    assert second["version"] == "2.8.3"


def test_facts_that_are_learned_at_the_same_time_are_all_kept(path):
    def learn(name):
        record = Record(path)
        for number in range(60):
            record.update(**{f"{name}{number}": number})

    threads = [threading.Thread(target=learn, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(Record(path).facts()) == 180


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b"\xff" * 10, b"[" * 100_000])
def test_a_file_that_cannot_be_read_has_no_facts_and_can_be_written_again(path, damage, tmp_path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine/record.json").write_bytes(damage)
    record = Record(path)
    assert record.facts() == {}

    record.update(failures=1)

    assert Record(path).number("failures") == 1


@pytest.mark.parametrize("odd", [None, "7", True, [1], 1e300])
def test_what_is_no_number_counts_as_none(path, odd):
    record = Record(path)
    record.update(failures=odd)

    assert record.number("failures") == 0
