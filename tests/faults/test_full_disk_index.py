"""An index on a disk that is really full: it still answers, takes no room it cannot use, and says what is left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.small_disk import small_disk_at

from plainmind.base.errors import StorageFailure
from plainmind.index.drivers.sqlite import SqliteStore

SECRET = "kwisatzhaderach"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk_at(tmp_path / "disk", "6m") as mounted:
        yield mounted


@pytest.fixture
def store(disk: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(disk / "index"))
    with opened.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "secret.md", *(f"{SECRET} {number} {os.urandom(200).hex()}" for number in range(300)))
        put(fresh, "plain.md", *(f"plain words {number} {os.urandom(200).hex()}" for number in range(700)))
    yield opened
    opened.close()


def leave(disk: Path, free: int) -> None:
    """Fill the disk but for so many bytes."""
    (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - free))


def holds_secret(disk: Path) -> bool:
    return any(SECRET.encode() in entry.read_bytes() for entry in (disk / "index").iterdir())


@pytest.mark.parametrize("free", [20_000, 100_000, 400_000, 700_000, 900_000])
def test_an_erasure_that_finds_no_room_says_how_to_end_it(disk: Path, store: SqliteStore, free: int) -> None:
    found_texts(store, "plain")
    leave(disk, free)
    before = shutil.disk_usage(disk).free

    with pytest.raises(StorageFailure, match="some of it may be left") as failure:
        store.erase("memory", "secret.md")
    assert failure.value.hint is not None
    assert "plainmind sync --force" in failure.value.hint
    assert shutil.disk_usage(disk).free >= before - 100_000
    assert len(found_texts(store, "plain", limit=1_000)) == 700
    store.digest()

    (disk / "ballast").unlink()
    with store.rebuild(fingerprint(), reason="asked for") as fresh:
        put(fresh, "plain.md", "plain words")
    assert not holds_secret(disk)


def test_a_write_that_fills_the_disk_gives_the_room_back(disk: Path, store: SqliteStore) -> None:
    put(store, "other.md", "another note")
    leave(disk, 500_000)
    before = shutil.disk_usage(disk).free

    with pytest.raises(StorageFailure, match="the disk is full"):
        put(store, "large.md", *(os.urandom(1_000).hex() for _ in range(2_000)))

    assert shutil.disk_usage(disk).free >= before - 100_000
    put(store, "small.md", "there is room for this")
    assert found_texts(store, "room") == ["there is room for this"]
    store.digest()


def test_an_index_is_closed_on_a_disk_without_room_to_tidy_its_log(disk: Path, store: SqliteStore) -> None:
    put(store, "other.md", *(f"another note {number} {os.urandom(200).hex()}" for number in range(100)))
    leave(disk, 0)

    store.close()

    assert len(found_texts(store, "another", limit=1_000)) == 100, "what was written stays in the log"
    (disk / "ballast").unlink()
    put(store, "small.md", "there is room for this")
    store.close()
    assert found_texts(store, "room") == ["there is room for this"]
    store.digest()
