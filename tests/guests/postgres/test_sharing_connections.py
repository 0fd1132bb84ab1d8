"""Many agents in one process: they share a few connections, wait for each other, and give back what they do not use."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack

import psycopg
import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import SCHEMA, running_server

from plainmind.base.errors import LockTimeout
from plainmind.guests.postgres import connections
from plainmind.guests.postgres.store import PostgresStore


@pytest.fixture
def agent(tmp_path):
    """Open the index of an agent, over connections that can be told from those of other tests."""
    dsn = psycopg.conninfo.make_conninfo(running_server().app_dsn, application_name=tmp_path.name[-60:])
    with ExitStack() as opened:

        def open_one(name):
            store = PostgresStore(dsn, agent=f"{tmp_path.name} {name}", workspace="notes", schema=SCHEMA)
            opened.callback(store.close)
            return store

        yield open_one


@pytest.fixture
def count(tmp_path):
    """How many connections the server counts."""

    def counted():
        with psycopg.connect(running_server().dsn, autocommit=True) as db:
            row = db.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (tmp_path.name[-60:],)
            ).fetchone()
            return row[0]

    return counted


def build(store, text):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", text)


def test_many_agents_of_a_process_share_a_few_connections_and_no_rows(agent, count):
    agents = [agent(number) for number in range(12)]
    for number, store in enumerate(agents):
        build(store, f"the gateway of agent {number}")
    for number, store in enumerate(agents):
        assert found_texts(store, "gateway") == [f"the gateway of agent {number}"]
    assert count() <= 6
    for store in agents[1:]:
        store.close()
    assert found_texts(agents[0], "gateway") == ["the gateway of agent 0"]
    assert count()
    agents[0].close()
    assert not wait_for_none(count)


def wait_for_none(count):
    """How many are left when the server has had time to see them go."""
    for _ in range(100):
        if not count():
            return 0
        threading.Event().wait(0.05)
    return count()


def test_more_threads_than_connections_wait_for_each_other(agent, count, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    agents = [agent(number) for number in range(4)]
    for store in agents:
        build(store, "the gateway")
    most, found = [], []

    def look(store):
        for _ in range(5):
            found.append(found_texts(store, "gateway"))
            most.append(count())

    threads = [threading.Thread(target=look, args=(store,)) for store in agents for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["the gateway"]] * 60
    assert (
        max(most) <= 8
    )  # three to read, three of the builds, and those that look whether the server is prepared


def test_who_has_a_connection_gets_another_though_no_more_are_free(agent, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(connections, "_WAIT_S", 0.1)
    ada, bo = agent("ada"), agent("bo")
    build(ada, "the gateway of ada")
    build(bo, "the gateway of bo")
    refused = []

    def look():
        try:
            found_texts(bo, "gateway")
        except LockTimeout as error:
            refused.append(error)

    with ada.reading():
        assert found_texts(bo, "gateway") == ["the gateway of bo"]
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert len(refused) == 1
    look()
    assert len(refused) == 1


def test_a_rebuild_keeps_no_other_agent_from_writing(agent, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(connections, "_WAIT_S", 0.1)
    ada, bo = agent("ada"), agent("bo")
    build(bo, "the gateway of bo")
    written = []
    with ada.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway of ada")
        thread = threading.Thread(target=lambda: written.append(put(bo, "b.md", "a second gateway")))
        thread.start()
        thread.join()
    assert len(written) == 1
    assert len(found_texts(bo, "gateway")) == 2


def test_connections_that_nobody_uses_are_given_back(agent, count, monkeypatch):
    store = agent("ada")
    build(store, "the gateway")
    with store.reading(), store.reading(), store.reading():
        pass
    before = count()
    monkeypatch.setattr(connections, "IDLE_S", -1.0)
    assert found_texts(store, "gateway") == ["the gateway"]
    put(store, "b.md", "another")
    for _ in range(100):  # the server takes a moment to see them go
        if count() < before:
            break
        threading.Event().wait(0.05)
    assert count() <= 2 < before


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_opens_connections_of_its_own(agent):
    store = agent("ada")
    build(store, "the gateway")
    assert found_texts(store, "gateway") == ["the gateway"]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = found_texts(agent("ada"), "gateway")
            os.write(writing, str(found).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as told:
        assert told.read() == b"['the gateway']"
    os.waitpid(child, 0)
    assert found_texts(store, "gateway") == ["the gateway"]
