"""Copies of vectors at a byte a number: made by a process that stays, right after every change, never without numpy."""

from __future__ import annotations

import random
import subprocess
import sys
from array import array

import numpy as np
import pytest
from tests.support.index_contents import (
    DIMS,
    EVERYWHERE,
    WORDS,
    embedded,
    file_state,
    fingerprint,
    near_texts,
    put,
    vector,
)
from tests.support.plain_store import PlainStore

from plainmind.base.model import EVERY_SCOPE, SearchFilter
from plainmind.base.value import replace
from plainmind.index.drivers.sqlite import SqliteStore, view
from plainmind.index.drivers.sqlite import vector_copies as rough
from plainmind.index.protocol import vector_candidates

assert np  # the copies are only used once a process has imported it

SOURCES = ("memory", "sessions")


@pytest.fixture(autouse=True)
def _too_many_for_a_block(monkeypatch):
    monkeypatch.setattr(rough, "MOST_BLOCK_BYTES", 0)


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(str(tmp_path / "index"))
    with opened.rebuild(fingerprint(), reason="there is no index yet"):
        pass
    yield opened
    opened.close()


@pytest.fixture
def copied(monkeypatch):
    """Which segments were copied, and how many positions of each."""
    seen = []
    copy = rough._Copy.copy

    def noted(self, db, segment):
        seen.append((segment.first_id, segment.used - self.copied))
        copy(self, db, segment)

    monkeypatch.setattr(rough._Copy, "copy", noted)
    return seen


def some_text(chance):
    return " ".join(chance.choices(WORDS, k=5))


def fill(store, files=6, chunks=250, seed=1):
    """Put in more than are compared one by one anyway."""
    chance = random.Random(seed)
    for number in range(files):
        put(store, f"memory/{number}.md", *(some_text(chance) for _ in range(chunks)))


def stay(store):
    """Have read so many vectors that copies are worth it."""
    with store.reading() as reader:
        reader._cache.compared(10_000)
    near_texts(store, "gateway")


def test_they_are_made_once_a_quarter_as_many_vectors_were_needed_as_there_are(store, copied):
    fill(store)
    with store.reading() as reader:
        reader._cache.compared(374)
    near_texts(store, "gateway printer")
    assert not copied
    near_texts(store, "gateway printer")
    assert sum(count for _, count in copied) == 1_500


def test_what_signs_have_chosen_is_compared_with_copies_before_these_choose(tmp_path, copied, monkeypatch):
    texts, vectors = _scattered(256)
    asked = array("f", vectors[texts[40]])
    opened = SqliteStore(str(tmp_path / "index"))
    with opened.rebuild(fingerprint(256), reason="none yet") as building:
        _put_vectors(building, texts, vectors)
    monkeypatch.setattr(view, "COPIED_AT_ONCE", 0)
    by_signs = _nearest(opened, asked)
    assert not copied
    monkeypatch.setattr(view, "COPIED_AT_ONCE", 10_000)
    monkeypatch.setattr(rough.Int8Copies, "nearest", None)
    assert _nearest(opened, asked) == by_signs
    assert copied
    opened.close()


def test_they_find_what_comparing_all_vectors_finds(store, copied):
    exact = PlainStore(fingerprint())
    fill(store)
    fill(exact)
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
    assert [count for _, count in copied] == [1]


def test_an_index_too_large_for_memory_goes_on_by_signs(store, copied, monkeypatch):
    monkeypatch.setattr(rough, "MOST_BYTES", 100)
    fill(store)
    stay(store)
    assert near_texts(store, "gateway printer")
    assert not copied


def test_the_copies_of_two_sources_have_one_limit(store, copied, monkeypatch):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for source in SOURCES:
            put(fresh, "a", *(f"{source} {number}" for number in range(2_000)), source=source)
    monkeypatch.setattr(rough, "MOST_BYTES", 3_000 * (DIMS + 5))
    stay(store)
    for source in SOURCES * 2:
        where = SearchFilter(sources=frozenset({source}), scopes=EVERY_SCOPE)
        assert near_texts(store, f"{source} 7", where=where, limit=1) == [f"{source} 7"]
    assert [count for _, count in copied] == [2_000]


@pytest.fixture
def reading_of_vectors():
    """Ask a store, and give the statements by which the vectors of single chunks were read."""

    def asked(store, numbers):
        seen = []
        with store.reading() as reader:
            reader._cache.compared(10_000)
            reader._view.db.exec_trace = lambda _db, said, _with: seen.append(said) or True
            found = vector_candidates(reader, numbers, where=EVERYWHERE, limit=5)
            cosines = reader.similarities(numbers, [each.id for each in found])
            reader._view.db.exec_trace = None
        assert cosines == [each.score for each in found]
        near = [(each.chunk.text, each.score) for each in found]
        return near, [said for said in seen if "FROM vectors WHERE id IN" in said]

    return asked


def test_vectors_that_are_kept_at_a_byte_a_number_are_compared_exactly_without_reading_them(
    tmp_path, reading_of_vectors
):
    texts, vectors = _scattered(256)
    opened, exact = SqliteStore(str(tmp_path / "index")), PlainStore(fingerprint(256))
    with opened.rebuild(fingerprint(256), reason="none yet") as building:
        for target in (building, exact):
            _put_vectors(target, texts, vectors)
    for asked in texts[::200]:
        numbers = array("f", vectors[asked])
        with exact.reading() as reader:
            candidates = vector_candidates(reader, numbers, where=EVERYWHERE, limit=5)
        expected = [(each.chunk.text, each.score) for each in candidates]
        assert reading_of_vectors(opened, numbers) == (expected, [])
    opened.close()


def test_of_those_that_are_kept_as_they_are_the_best_are_read(store, reading_of_vectors):
    fill(store)
    exact = PlainStore(fingerprint())
    fill(exact)
    near, read = reading_of_vectors(store, vector("copper violin"))
    assert ([text for text, _ in near], len(read)) == (near_texts(exact, "copper violin", limit=5), 1)


def test_one_that_is_kept_as_it_is_does_not_hide_the_others(tmp_path, reading_of_vectors):
    texts, vectors = _scattered(256)
    odd = np.zeros(256, dtype=np.float32)
    odd[7] = 1.0
    vectors[texts[3]] = odd  # a byte a number would be too rough for it
    opened = SqliteStore(str(tmp_path / "index"))
    with opened.rebuild(fingerprint(256), reason="none yet") as building:
        _put_vectors(building, texts, vectors)
    near, _ = reading_of_vectors(opened, array("f", odd))
    assert near[0] == (texts[3], 1.0)
    near, read = reading_of_vectors(opened, array("f", vectors[texts[40]]))
    assert near[0][0] == texts[40]
    assert not read
    opened.close()


def test_what_a_rebuild_or_a_move_has_left_behind_takes_no_room(store, copied):
    fill(store, files=8)
    stay(store)
    for number in range(5):
        store.remove_file("memory", f"memory/{number}.md")
        put(store, f"memory/new {number}.md", *(f"new {number} {part}" for part in range(250)))
    near_texts(store, "gateway")
    with store.reading() as reader:
        assert reader._cache._copies._copies.keys() == {
            each.first_id for each in reader._now.segments if each.used > each.dead
        }


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
    assert "only words" not in near_texts(store, "only words", limit=50)


def test_a_process_that_has_not_imported_numpy_is_not_made_to(tmp_path):
    program = f"""
import sys
from tests.support.index_contents import *
from plainmind.index.drivers.sqlite import SqliteStore, view
store = SqliteStore({str(tmp_path / "index")!r})
with store.rebuild(fingerprint(), reason="none yet"): pass
put(store, "memory/a.md", *(f"gateway {{number}}" for number in range(20)))
for _ in range(5): near_texts(store, "gateway")
sys.exit("numpy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("dims", [16, 64, 256])
def test_copies_keep_the_nearest_among_the_candidates(tmp_path, dims):
    opened = SqliteStore(str(tmp_path / "index"))
    exact = PlainStore(fingerprint(dims))
    texts, vectors = _scattered(dims)
    with opened.rebuild(fingerprint(dims), reason="none yet") as building:
        for target in (building, exact):
            _put_vectors(target, texts, vectors)
    found = wanted = 0
    for asked in texts[::40] * 2:
        near = _near(opened, vectors[asked])
        best = _near(exact, vectors[asked])
        found += len(near & best)
        wanted += len(best)
    opened.close()
    assert found / wanted > 0.99


def _scattered(dims):
    """Texts, and a vector for each around one of forty others."""
    chance = np.random.default_rng(5)
    centres = chance.standard_normal((40, dims))
    texts = [f"note {number}" for number in range(2_000)]
    vectors = {}
    for number, text in enumerate(texts):
        drawn = centres[number % 40] + 0.4 * chance.standard_normal(dims)
        vectors[text] = (drawn / np.linalg.norm(drawn)).astype(np.float32)
    return texts, vectors


def _put_vectors(store, texts, vectors):
    chunks = [
        replace(each, vector=array("f", vectors[each.chunk.text])) for each in embedded("memory/a.md", *texts)
    ]
    store.replace_file(file_state("memory/a.md"), chunks)


def _near(store, numbers):
    return {text for text, _ in _nearest(store, array("f", numbers))}


def _nearest(store, numbers):
    with store.reading() as reader:
        candidates = vector_candidates(reader, numbers, where=EVERYWHERE, limit=24)
    return [(candidate.chunk.text, candidate.score) for candidate in candidates]
