"""Vectors side by side: as near as comparing each of them, right after every change, and never too many."""

from __future__ import annotations

import random
import sys
from array import array

import pytest
from tests.support.index_contents import DIMS, EVERYWHERE, WORDS, fingerprint, near_texts, put, vector
from tests.support.plain_store import PlainStore

from plainmind.index.drivers.sqlite import SqliteStore, vector_copies
from plainmind.index.protocol import vector_candidates
from plainmind.index.vectors import BYTES_PER_NUMBER, foremost


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(str(tmp_path / "index"))
    with opened.rebuild(fingerprint(), reason="there is no index yet"):
        pass
    yield opened
    opened.close()


@pytest.fixture
def copied(monkeypatch):
    """How many positions were copied, each time."""
    seen = []
    copy = vector_copies._Block.copy

    def noted(self, read, segment, width):
        seen.append(segment.used - self.copied)
        copy(self, read, segment, width)

    monkeypatch.setattr(vector_copies._Block, "copy", noted)
    return seen


def some_text(chance):
    return " ".join(chance.choices(WORDS, k=5))


def fill(store, files=3, chunks=100):
    chance = random.Random(1)
    for number in range(files):
        put(store, f"memory/{number}.md", *(some_text(chance) for _ in range(chunks)))


def stay(store):
    """Have read so many vectors that a block is worth it."""
    with store.reading() as reader:
        reader._cache.compared(10_000)
    near_texts(store, "gateway")


def test_it_is_made_once_as_many_vectors_were_read_as_there_are(store, copied):
    fill(store)
    near_texts(store, "gateway printer")
    assert not copied
    near_texts(store, "gateway printer")
    near_texts(store, "gateway printer")
    assert copied == [300]


def test_it_finds_what_comparing_each_vector_finds(store, copied):
    exact = PlainStore(fingerprint())
    fill(store)
    fill(exact)
    stay(store)
    chance = random.Random(2)
    for _ in range(20):
        asked = some_text(chance)
        assert near_texts(store, asked, limit=5) == near_texts(exact, asked, limit=5)
    assert copied


def test_a_change_copies_only_what_has_come_and_hides_what_has_gone(store, copied):
    fill(store)
    stay(store)
    copied.clear()
    put(store, "memory/0.md", "violin thunder")
    assert near_texts(store, "violin thunder")[0] == "violin thunder"
    store.remove_file("memory", "memory/0.md")
    assert "violin thunder" not in near_texts(store, "violin thunder")
    put(store, "memory/9.md", *(f"pepper {number}" for number in range(600)))
    assert near_texts(store, "pepper 599")[0] == "pepper 599"
    assert copied[0] == 1
    assert sum(copied) == 601


def test_a_view_from_before_a_removal_still_finds_what_was_removed(store, copied):
    fill(store)
    put(store, "memory/gone.md", *(f"gone {number}" for number in range(60)))
    with store.reading() as before:
        expected = vector_candidates(before, vector("gone 7"), where=EVERYWHERE, limit=5)
        assert expected[0].chunk.text == "gone 7"
        store.remove_file("memory", "memory/gone.md")
        stay(store)
        assert copied
        assert vector_candidates(before, vector("gone 7"), where=EVERYWHERE, limit=5) == expected


def test_chunks_without_a_vector_are_never_near(store):
    fill(store)
    put(store, "memory/words.md", "only words", without_vector=True)
    stay(store)
    assert "only words" not in near_texts(store, "only words", limit=500)


def test_more_than_fit_are_found_in_other_ways(store, copied, monkeypatch):
    monkeypatch.setattr(vector_copies, "MOST_BLOCK_BYTES", 299 * DIMS * BYTES_PER_NUMBER)
    fill(store)
    stay(store)
    assert near_texts(store, "gateway printer")
    assert not copied


def test_blocks_take_their_room_from_what_is_kept_beside_them(store):
    fill(store)
    stay(store)
    with store.reading() as reader:
        cache = reader._cache
        assert cache._blocks.size >= 300 * DIMS * BYTES_PER_NUMBER
        assert cache.kept.most_bytes == cache._most_bytes - cache._blocks.size


@pytest.fixture(params=["numpy", "plain"])
def arithmetic(request, monkeypatch):
    """With numpy, and as in a process that has not imported it."""
    if request.param == "plain":
        monkeypatch.delitem(sys.modules, "numpy")
    return request.param


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("seed", range(8))
def test_the_foremost_are_there_and_hardly_any_others(seed):
    chance = random.Random(seed)
    numbers = [chance.gauss(0.1, 0.15) for _ in range(2_000)]
    absent = bytes([255 if chance.random() < 0.1 else 0 for _ in numbers])
    present = [at for at in range(2_000) if not absent[at]]
    best = sorted(present, key=lambda at: -numbers[at])
    found = foremost(memoryview(array("d", numbers)), absent, 48)
    assert set(best[:48]) <= set(found) <= set(present)
    assert found == sorted(found)
    assert len(found) < 160


def test_where_few_are_near_others_may_be_foremost_but_none_that_is_absent(arithmetic):
    numbers, absent = array("d", [-0.5, 0.0, 0.3, -0.1, 1e-9, 0.9]), bytes([0, 0, 0, 255, 0, 255])
    assert foremost(memoryview(numbers), absent, 3) == ([1, 2, 4] if arithmetic == "numpy" else [0, 1, 2, 4])
    assert foremost(memoryview(numbers), absent, 5) == [0, 1, 2, 4]
    assert foremost(memoryview(numbers), absent, 10) == [0, 1, 2, 4]
    assert foremost(memoryview(numbers), absent, 1) == [2]
