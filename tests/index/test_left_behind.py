"""An index that another store has left in the folder holds no text once that is forgotten."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from tests.support.index_contents import fingerprint, found_texts, put

from plainmind.guests.lancedb.library import load
from plainmind.index.remains import erase_left_behind
from plainmind.index.store import open_store

load()  # before the clock of the first test starts

OTHER = {"sqlite": "lancedb", "lancedb": "sqlite"}


def filled(driver, folder):
    store = open_store(driver, folder=str(folder))
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "old-name.md", "the gateway runs on a Mac Studio")
        put(fresh, "other.md", "the harbour has a crane")
    return store


def files_of_indexes(folder):
    """All files but locks, as seen from the folder."""
    found = (
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in os.walk(folder)
        for name in names
    )
    return [name for name in found if not name.endswith(".lock")]


@pytest.mark.parametrize("driver", ["sqlite", "lancedb"])
def test_what_another_store_left_goes_as_a_whole_for_it_may_know_a_file_by_an_older_name(tmp_path, driver):
    filled(OTHER[driver], tmp_path).close()
    erase_left_behind(str(tmp_path), driver, "memory", ["new-name.md"])
    assert files_of_indexes(tmp_path) == []


@pytest.mark.parametrize("driver", ["sqlite", "lancedb"])
def test_the_index_of_the_store_in_use_stays(tmp_path, driver):
    with closing(filled(driver, tmp_path)) as store:
        erase_left_behind(str(tmp_path), driver, "memory", ["old-name.md"])
        assert found_texts(store, "studio") == ["the gateway runs on a Mac Studio"]


@pytest.mark.parametrize("driver", ["sqlite", "lancedb"])
def test_a_store_whose_index_was_deleted_begins_anew(tmp_path, driver):
    filled(OTHER[driver], tmp_path).close()
    erase_left_behind(str(tmp_path), driver, "memory", ["old-name.md"])
    with closing(open_store(OTHER[driver], folder=str(tmp_path))) as store:
        with store.reading() as reader:
            assert reader.fingerprint() is None
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "other.md", "the harbour has a crane")
        assert found_texts(store, "crane") == ["the harbour has a crane"]


def test_of_an_index_in_sqlite_that_a_process_has_open_only_the_files_go(tmp_path):
    with closing(filled("sqlite", tmp_path)) as store:
        assert found_texts(store, "studio") != []
        erase_left_behind(str(tmp_path), "lancedb", "memory", ["old-name.md"])
        assert found_texts(store, "studio") == []
        assert found_texts(store, "crane") == ["the harbour has a crane"]


def test_of_an_index_in_lancedb_that_a_process_reads_only_the_files_go(tmp_path):
    with closing(filled("lancedb", tmp_path)) as store:
        with store.reading():
            erase_left_behind(str(tmp_path), "sqlite", "memory", ["old-name.md"])
        assert found_texts(store, "studio") == []
        assert found_texts(store, "crane") == ["the harbour has a crane"]


def test_who_had_an_index_open_in_lancedb_that_is_deleted_makes_it_anew(tmp_path):
    with closing(filled("lancedb", tmp_path)) as store:
        erase_left_behind(str(tmp_path), "sqlite", "memory", ["old-name.md"])
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "other.md", "the harbour has a crane")
        assert found_texts(store, "crane") == ["the harbour has a crane"]
        assert found_texts(store, "studio") == []


def test_a_server_keeps_the_index_and_both_that_were_in_the_folder_go(tmp_path):
    for driver in OTHER:
        filled(driver, tmp_path).close()
    erase_left_behind(str(tmp_path), "postgres", "memory", ["old-name.md"])
    assert files_of_indexes(tmp_path) == []


def test_a_folder_that_was_never_made_is_no_trouble(tmp_path):
    erase_left_behind(str(tmp_path / "nowhere"), "postgres", "memory", ["old-name.md"])
    assert list(tmp_path.iterdir()) == []
