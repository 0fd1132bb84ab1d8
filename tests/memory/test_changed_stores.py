"""Who has changed the store and forgets something finds it in no index, not even in the one that was used before."""

from __future__ import annotations

import pytest
from tests.support.index_contents import found_texts

from plainmind import Memory
from plainmind.guests.lancedb.library import load
from plainmind.index.store import open_store

load()  # before the clock of the first test starts
pytestmark = pytest.mark.timeout(60)

SECRET = "the quokkaberry is in room 12"


def left_in(driver, folder):
    store = open_store(driver, folder=folder)
    try:
        return found_texts(store, "quokkaberri")
    finally:
        store.close()


@pytest.mark.parametrize(("before", "now"), [("sqlite", "lancedb"), ("lancedb", "sqlite")])
def test_a_note_is_forgotten_by_the_store_that_was_used_before(workspace, home, before, now):
    with Memory(workspace, home=home, config={"store.driver": before}) as memory:
        memory.remember(SECRET)
        memory.sync()
        folder = memory.places.index
    assert left_in(before, folder)

    with Memory(workspace, home=home, config={"store.driver": now}) as memory:
        assert memory.forget("quokkaberry").applied
    assert left_in(before, folder) == []


@pytest.mark.parametrize(("before", "now"), [("sqlite", "lancedb"), ("lancedb", "sqlite")])
def test_so_is_what_it_has_of_another_agent(workspace, home, before, now):
    with Memory(workspace, home=home, config={"store.driver": before, "agentId": "bo"}) as memory:
        memory.remember(SECRET)
        memory.sync()
        folder = memory.places.index
    assert left_in(before, folder)

    with Memory(workspace, home=home, config={"store.driver": now, "agentId": "ada"}) as memory:
        assert memory.forget("quokkaberry").applied
    assert left_in(before, folder) == []


@pytest.mark.parametrize(("before", "now"), [("sqlite", "lancedb"), ("lancedb", "sqlite")])
def test_a_conversation_is_deleted_from_it_for_every_workspace(workspace, home, tmp_path, before, now):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folders = []
    for place in (workspace, elsewhere):
        config = {"store.driver": before, "sources": ["memory", "sessions"]}
        with Memory(place, home=home, config=config) as memory:
            talk = memory.sessions.open_or_create("agent:main:main")
            talk.append({"type": "message", "message": {"role": "user", "content": SECRET}})
            memory.sync()
            folders.append(memory.places.index)
    assert all(left_in(before, folder) for folder in folders)

    with Memory(workspace, home=home, config={"store.driver": now}) as memory:
        memory.delete_session("agent:main:main")
    assert [left_in(before, folder) for folder in folders] == [[], []]
