"""Whose notes an index on the server is of: folders that are called the same are not always the same notes."""

from __future__ import annotations

import json

import psycopg
import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import SCHEMA, running_server

from plainmind import Memory
from plainmind.base.errors import IndexUnavailable
from plainmind.index.store import open_store


@pytest.fixture
def machine(tmp_path):
    """Open the index of the notes in `/srv/notes` on a machine: all have that folder at the same place."""
    opened = []

    def open_on(home, key="notes-0a1b2c3d", **options):
        store = open_store(
            "postgres",
            folder=str(tmp_path / home / "index" / tmp_path.name / key),
            dsn=running_server().app_dsn,
            schema=SCHEMA,
            **options,
        )
        opened.append(store)
        return store

    yield open_on
    for store in opened:
        store.close()


def build(store, text):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", text)


def test_two_machines_with_folders_at_the_same_place_see_and_change_nothing_of_each_other(machine):
    ada, bo = machine("ada"), machine("bo")
    build(ada, "the safe opens with 4711")
    for use in (
        lambda: found_texts(bo, "safe"),
        lambda: build(bo, "the canteen opens at eight"),
        lambda: put(bo, "a.md", "the canteen opens at eight"),
        lambda: bo.remove_file("memory", "a.md"),
        lambda: bo.erase("memory", "a.md"),
        bo.digest,
        bo.describe,
        bo.sizes,
    ):
        with pytest.raises(IndexUnavailable, match="another machine's notes") as raised:
            use()
        assert "plainmind config set store.workspace" in raised.value.hint
        assert "notes-0a1b2c3d" in raised.value.hint
    assert found_texts(ada, "safe") == ["the safe opens with 4711"]
    assert found_texts(machine("ada"), "safe") == ["the safe opens with 4711"]


def test_machines_that_give_the_notes_one_name_share_an_index(machine):
    build(machine("ada", workspace="team"), "the safe opens with 4711")
    assert found_texts(machine("bo", workspace="team"), "safe") == ["the safe opens with 4711"]
    assert found_texts(machine("cy", "other-11111111", workspace="team"), "safe") == [
        "the safe opens with 4711"
    ]


def test_a_machine_may_name_the_index_that_another_has_begun(machine):
    build(machine("ada"), "the safe opens with 4711")
    assert found_texts(machine("bo", workspace="notes-0a1b2c3d"), "safe") == ["the safe opens with 4711"]


def test_an_index_from_before_belongs_to_the_machine_that_changes_it_first(machine, tmp_path):
    build(machine("ada"), "the safe opens with 4711")
    with psycopg.connect(running_server().dsn) as db:
        db.execute(f"UPDATE {SCHEMA}.indexes SET keeper = NULL WHERE agent = %s", (tmp_path.name,))
    ada, bo = machine("ada"), machine("bo")
    assert found_texts(ada, "safe") == found_texts(bo, "safe")
    put(bo, "b.md", "the canteen opens at eight")
    with pytest.raises(IndexUnavailable, match="another machine's notes"):
        found_texts(ada, "safe")
    assert found_texts(bo, "canteen") == ["the canteen opens at eight"]


def test_one_name_is_for_one_folder_of_a_machine(tmp_path):
    home = tmp_path / "home"
    dsn = running_server().app_dsn
    settings = {
        "agentId": tmp_path.name,
        "store": {"driver": "postgres", "dsn": dsn, "schema": SCHEMA, "workspace": "team"},
    }
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, text in ((first, "the safe opens with 4711"), (second, "the canteen opens at eight")):
        folder.mkdir()
        (folder / "MEMORY.md").write_text(text)
    for number in range(30):  # so many that they would be taken for unmounted, and answered for
        (first / f"memory-{number}.md").write_text("a safe")
    with Memory(first, home=home, config=settings) as memory:
        assert memory.search("safe").hits
    with Memory(second, home=home, config=settings) as memory:
        with pytest.raises(IndexUnavailable, match="another folder of yours, first-") as raised:
            memory.search("safe")
        assert "PLAINMIND_STORE_WORKSPACE" in raised.value.hint
        assert memory.remember("the canteen closes at two").path
        assert "another folder" in memory.status()["store"]["problem"]
        record = raised.value.hint.rpartition("delete ")[2]
    (home / record).unlink()  # as the hint says, for a folder that was moved
    with Memory(second, home=home, config=settings) as memory:
        assert "the canteen opens at eight" in memory.search("canteen opens").hits[0].snippet


def test_hosts_that_share_notes_do_not_share_what_was_said(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("- The salary is paid on the last Friday.\n")
    talk = tmp_path / "talk.json"
    talk.write_text(json.dumps([{"role": "user", "content": "My salary is 84213 kronor a month."}]))
    settings = {
        "agentId": tmp_path.name,
        "sources": ["memory", "sessions"],
        "store": {
            "driver": "postgres",
            "dsn": running_server().app_dsn,
            "schema": SCHEMA,
            "workspace": tmp_path.name,
        },
    }
    with (
        Memory(notes, home=tmp_path / "one", config=settings) as one,
        Memory(notes, home=tmp_path / "two", config=settings) as two,
    ):
        one.import_sessions("messages", str(talk))
        assert any("84213" in hit.snippet for hit in one.search("salary").hits)
        for found in (two.search("salary"), two.search("salary", sources=["sessions"])):
            assert not any("84213" in hit.snippet for hit in found.hits)
        assert any("last Friday" in hit.snippet for hit in two.search("salary").hits)
        assert any("84213" in hit.snippet for hit in one.search("salary").hits)
