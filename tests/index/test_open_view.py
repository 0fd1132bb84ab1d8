"""A search reads the view of the index that has shown that nothing is to be done: it opens no second one."""

import os

import pytest

from plainmind import Memory
from plainmind.index.sync import OpenView


@pytest.fixture
def settled(desk):
    """A desk whose index is up to date, and whose files are old enough to be taken at their word."""
    desk.write("MEMORY.md", "the gateway runs on a Mac Studio")
    os.utime(desk.folder / "MEMORY.md", (1.7e9, 1.7e9))
    desk.indexer.sync()
    return desk


def count_views(store, monkeypatch):
    opened = []
    reading = store.reading

    def counting():
        opened.append(1)
        return reading()

    monkeypatch.setattr(store, "reading", counting)
    return opened


@pytest.mark.parametrize("thorough", [True, False])
def test_a_sync_that_has_nothing_to_do_leaves_its_view_open(settled, thorough):
    view = OpenView()
    settled.indexer.sync(thorough=thorough, view=view)

    assert view
    with view as reader:
        assert [path for _, path in reader.files()] == ["MEMORY.md"]
    assert not view


def test_a_sync_that_has_something_to_write_leaves_none(settled):
    settled.write("MEMORY.md", "the gateway moved to Hetzner")
    view = OpenView()
    report = settled.indexer.sync(thorough=False, view=view)

    assert report.indexed == ("MEMORY.md",)
    assert not view
    view.close()


def test_a_view_that_no_search_has_read_is_closed_by_hand(settled):
    view = OpenView()
    settled.indexer.sync(view=view)
    view.close()
    view.close()

    assert not view


@pytest.fixture
def memory(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("The gateway is a Mac Studio in the cellar.\n")
    os.utime(folder / "MEMORY.md", (1.7e9, 1.7e9))
    with Memory(folder, home=tmp_path / "home") as first:
        first.sync()
    with Memory(folder, home=tmp_path / "home") as memory:
        yield memory


def test_a_search_opens_one_view_of_the_index_the_first_time_and_later(memory, monkeypatch):
    opened = count_views(memory.index.store, monkeypatch)
    for times in range(1, 5):
        assert memory.search("gateway").hits
        assert len(opened) == times


def test_a_search_after_an_edit_finds_what_was_written(memory, tmp_path):
    assert not any("Hetzner" in hit.snippet for hit in memory.search("gateway").hits)
    (tmp_path / "notes" / "MEMORY.md").write_text("The gateway moved to Hetzner.\n")

    assert memory.search("gateway").hits[0].snippet == "The gateway moved to Hetzner."
