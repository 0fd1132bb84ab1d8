"""A process that dies, or a disk that fails, between any two steps leaves an index that answers."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.faulty_system import FaultySystem
from tests.support.index_contents import EVERYWHERE, fingerprint, found_texts, put
from tests.support.small_disk import small_disk_at

from plainmind.base.errors import IndexCorrupt, IndexUnavailable, PlainmindError
from plainmind.files.system import System
from plainmind.guests.lancedb import table
from plainmind.guests.lancedb.place import LocalPlace, LocalTurn
from plainmind.guests.lancedb.store import LanceStore
from plainmind.index.protocol import keyword_candidates

SECRET = "zanzibar"


@pytest.fixture
def always_tidying(monkeypatch):
    """Every change puts fragments together, and drops all versions but the newest."""
    monkeypatch.setattr(table, "_TIDY_AFTER", 1)
    monkeypatch.setattr(table, "_KEPT", table.timedelta(milliseconds=1))


def files_with(folder: Path, word: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def tables(folder: Path) -> Path:
    return folder / "lancedb" / "tables"


class Killed(BaseException):
    """Stands for the end of a process."""


def dying(
    monkeypatch, name: str, *, after: bool, owner: type = LocalTurn, how: type[BaseException] = Killed
) -> None:
    """Let whoever calls a method die before or after it."""
    method = getattr(owner, name)

    def call(*arguments):
        if after:
            method(*arguments)
        raise how

    monkeypatch.setattr(owner, name, call)


# --- between a table and its pointer -------------------------------------------------------------------------


@pytest.mark.usefixtures("always_tidying")
@pytest.mark.parametrize("step", ["write", "compact", "clean"])
@pytest.mark.parametrize("after", [False, True])
def test_a_writer_that_dies_around_a_step_leaves_what_answered_or_its_whole_change(
    store, tmp_path, monkeypatch, step, after
):
    put(store, "a.md", "the gateway")
    put(store, "b.md", "before gateway")
    with monkeypatch.context() as patched:
        dying(patched, step, after=after, owner=table.GenerationTable)
        with pytest.raises(Killed):
            put(store, "b.md", "after gateway")

    other = LanceStore(str(tmp_path))
    found = set(found_texts(other, "gateway"))
    assert found == {"the gateway", "before gateway" if step == "write" else "after gateway"}
    other.digest()
    put(other, "c.md", "another gateway")
    assert set(found_texts(store, "gateway")) == found | {"another gateway"}
    other.close()


@pytest.mark.usefixtures("always_tidying")
def test_a_view_of_a_version_that_was_cleaned_up_leaves_the_index_alone(store, tmp_path):
    put(store, "a.md", "the gateway")
    other = LanceStore(str(tmp_path))

    def look():
        with other.reading() as reader:
            for turn in range(3):
                put(store, "b.md", f"turn {turn}")
            keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=5)

    with pytest.raises(IndexUnavailable, match="replaced"):
        look()
    assert found_texts(other, "gateway") == found_texts(store, "gateway") == ["the gateway"]
    other.close()


@pytest.mark.usefixtures("always_tidying")
def test_cleaning_up_is_no_change_that_has_to_be_undone(store, tmp_path):
    for turn in range(3):
        put(store, "a.md", f"turn {turn}")

    place = LocalPlace(str(tmp_path))
    assert place.database().open_table(place.pointer().table).version == place.pointer().version


def test_a_rebuild_that_is_interrupted_just_after_it_was_published_answers(store, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        dying(patched, "publish", after=True)
        with pytest.raises(Killed), store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")

    assert found_texts(LanceStore(str(tmp_path)), "gateway") == ["the gateway"]
    store.digest()


def test_a_rebuild_that_could_not_be_published_leaves_no_table(store, tmp_path, monkeypatch):
    put(store, "a.md", "old gateway")

    def build():
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "new gateway")
            put(fresh, "b.md", "gone again")
            fresh.digest()
            fresh.remove_file("memory", "b.md")  # so that what lives is copied once more

    with monkeypatch.context() as patched:
        dying(patched, "publish", after=False)
        with pytest.raises(Killed):
            build()

    assert found_texts(store, "gateway") == ["old gateway"]
    assert len(list(tables(tmp_path).iterdir())) == 1


def test_a_build_of_which_a_part_could_not_be_written_is_never_published(store, monkeypatch):
    put(store, "a.md", "old gateway")

    def build():
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            with monkeypatch.context() as patched:
                patched.setattr("plainmind.guests.lancedb.store._MOST_BYTES", 0)
                dying(patched, "add", after=False, owner=table.GenerationTable, how=OSError)
                with pytest.raises(IndexUnavailable):
                    put(fresh, "a.md", "new gateway")
            put(fresh, "b.md", "another gateway")  # as a sync goes on with the next file

    with pytest.raises(IndexUnavailable):
        build()
    assert found_texts(store, "gateway") == ["old gateway"]


def test_a_copy_that_fails_half_way_leaves_no_table(store, tmp_path, monkeypatch):
    put(store, "a.md", f"the word is {SECRET}")
    put(store, "b.md", "the gateway")
    with monkeypatch.context() as patched:
        dying(patched, "add", after=True, owner=table.GenerationTable)
        with pytest.raises(Killed):
            store.erase("memory", "a.md")

    assert len(list(tables(tmp_path).iterdir())) == 1
    assert found_texts(store, "gateway") == ["the gateway"]
    store.erase("memory", "a.md")
    assert files_with(tmp_path, SECRET) == []


# --- building while others erase -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_written", [False, True])
def test_a_build_that_goes_on_after_somebody_erased_text_writes_none_of_it(
    store, tmp_path, monkeypatch, is_written
):
    other = LanceStore(str(tmp_path))
    seen = []

    def build():
        with other.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", f"the word is {SECRET}")
            if is_written:
                fresh.digest()
            store.erase("memory", "a.md")
            monkeypatch.setattr("plainmind.guests.lancedb.store._MOST_BYTES", 0)
            try:
                put(fresh, "b.md", "the gateway")
            finally:
                seen.extend(files_with(tmp_path, SECRET))

    with pytest.raises(IndexUnavailable, match="erased"):
        build()
    assert seen == []
    assert files_with(tmp_path, SECRET) == []
    assert found_texts(store, "gateway") == []
    other.close()


def test_a_build_that_ends_after_somebody_erased_text_is_not_published(store, tmp_path):
    other = LanceStore(str(tmp_path))

    def build():
        with other.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", f"the word is {SECRET}")
            store.erase("memory", "a.md")

    with pytest.raises(IndexUnavailable, match="erased"):
        build()
    assert files_with(tmp_path, SECRET) == []
    other.close()


def test_a_build_whose_table_was_dropped_never_writes_to_the_table_of_the_next(tmp_path):
    first, second, third = (LanceStore(str(tmp_path)) for _ in range(3))

    def build():
        with first.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", f"the word is {SECRET}")
            second.erase("memory", "a.md")  # of an index that was never built
            with third.rebuild(fingerprint(), reason="a test") as other:
                put(other, "b.md", "the gateway")

    with pytest.raises(IndexUnavailable, match="erased"):
        build()
    assert found_texts(second, "gateway", SECRET) == ["the gateway"]
    assert files_with(tmp_path, SECRET) == []
    for each in (first, second, third):
        each.close()


def test_a_table_is_dropped_from_under_somebody_who_writes_to_it(tmp_path):
    made = tables(tmp_path) / "gen_000001.lance" / "data"
    made.mkdir(parents=True)
    for name in range(300):
        (made / str(name)).write_text(SECRET)
    is_begun = threading.Event()

    def write():
        with suppress(FileNotFoundError):  # the folder is gone: as a builder finds it
            for number in range(20_000):
                (made / f"more {number}").write_text(SECRET)
                is_begun.set()
                time.sleep(0.001)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        assert is_begun.wait(60)
        LocalPlace(str(tmp_path)).drop(1)
        writing.result()
    assert list(tables(tmp_path).iterdir()) == []


# --- damage --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_searched", [True, False])
def test_rows_that_cannot_be_read_are_damage_that_a_sync_mends(store, tmp_path, is_searched):
    put(store, "a.md", "the gateway")
    store.close()
    before, after = (b'["", null]', b'["", null!') if is_searched else (b'"path"', b'"p:th"')
    for path in files_with(tmp_path, before.decode()):
        path.write_bytes(path.read_bytes().replace(before, after))

    def look():
        with store.reading() as reader:
            reader.files()
            keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=5)

    with pytest.raises(IndexCorrupt, match="damaged"):
        look()
    with store.reading() as reader:
        assert reader.fingerprint() is None


def test_text_in_a_damaged_index_is_erased_all_the_same(store, tmp_path):
    put(store, "a.md", f"the word is {SECRET}")
    put(store, "b.md", "the gateway")
    store.close()
    for path in tables(tmp_path).rglob("*.lance"):
        if path.is_file() and SECRET.encode() not in path.read_bytes():
            os.truncate(path, path.stat().st_size // 2)

    with pytest.raises(IndexCorrupt, match="damaged"):
        store.erase("memory", "a.md")
    assert files_with(tmp_path, SECRET) == []
    with store.reading() as reader:
        assert reader.fingerprint() is None


def test_what_a_caller_finds_damaged_is_not_this_index(store):
    def change():
        with store.joined():
            put(store, "a.md", "never written")
            raise IndexCorrupt("another index")

    with pytest.raises(IndexCorrupt, match="another"):
        change()
    with store.reading() as reader:
        assert reader.fingerprint() == fingerprint()


# --- the disk ------------------------------------------------------------------------------------------------


class Recording(System):
    """Remembers what was brought to the disk before the pointer was replaced."""

    def __init__(self) -> None:
        self.synced: set[int] = set()
        self.synced_at_replace: set[int] = set()

    def fsync(self, fd: int) -> None:
        self.synced.add(os.fstat(fd).st_ino)

    def replace(self, source: str, target: str) -> None:
        self.synced_at_replace = set(self.synced)
        super().replace(source, target)


def test_all_that_a_pointer_points_to_is_on_the_disk_before_it(tmp_path):
    store = LanceStore(str(tmp_path))
    system = Recording()
    store.driver.place = LocalPlace(str(tmp_path), system)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    for text in ("first", "second"):
        put(store, "b.md", text)

        table = next(tables(tmp_path).iterdir())
        assert {path.stat().st_ino for path in table.rglob("*") if path.is_file()} <= system.synced_at_replace
    store.close()


def test_a_disk_that_cannot_be_synced_keeps_the_old_state(store, tmp_path):
    put(store, "a.md", "the gateway")
    place = LocalPlace(str(tmp_path), FaultySystem(fail_at=1, code=5, only=frozenset({"fsync"})))
    failing = LanceStore(str(tmp_path))
    failing.driver.place = place

    with pytest.raises(PlainmindError, match="could not write"):
        put(failing, "a.md", "never published")
    assert found_texts(store, "gateway", "published") == ["the gateway"]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_full_disk_is_said_and_what_answered_answers_on(tmp_path):
    with small_disk_at(tmp_path / "disk", "3m") as disk:
        (disk / "something large").write_bytes(bytes(600_000))
        store = LanceStore(str(disk))
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")

        def fill():
            for number in range(200):
                put(store, f"{number}.md", *(f"{part} " * 40 for part in range(number, number + 100)))

        with pytest.raises(PlainmindError, match="No space left") as said:
            fill()
        assert "free some space" in (said.value.hint or "")
        assert found_texts(store, "gateway") == ["the gateway"]
        for _ in range(5):
            with pytest.raises(PlainmindError, match="No space left"):
                fill()
        store.digest()
        (disk / "something large").unlink()
        put(store, "a.md", "the gateway again")
        store.erase("memory", *(f"{number}.md" for number in range(200)))
        assert found_texts(store, "gateway") == ["the gateway again"]
        assert store.describe()["bytes"] < 100_000
        store.close()


def test_a_file_in_the_place_of_the_folder_is_said(tmp_path):
    (tmp_path / "lancedb").write_text("a note that somebody put here")

    with pytest.raises(PlainmindError, match="lancedb"), LanceStore(str(tmp_path)).reading():
        pass
