"""A standby answers searches as long as it knows what the asker has seen or written, and takes over when promoted."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

import psycopg
import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import SCHEMA, following, server_of_its_own

from plainmind.base.errors import IndexUnavailable
from plainmind.guests.postgres import store as postgres_store
from plainmind.guests.postgres.store import PostgresStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif("PLAINMIND_TEST_PG_DSN" in os.environ, reason="starts servers of its own"),
]


@pytest.fixture(scope="module")
def servers():
    with server_of_its_own() as server, following(server, max_standby_streaming_delay="1s") as standby:
        yield server, standby


@pytest.fixture
def opened(servers, tmp_path):
    """What opens one more host of an index that has been built."""
    server, standby = servers
    stores = []

    def open_one(**options):
        store = PostgresStore(
            server.app_dsn,
            agent=str(tmp_path),
            workspace="notes",
            schema=SCHEMA,
            read_dsn=standby.app_dsn,
            **options,
        )
        stores.append(store)
        return store

    with open_one().rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    caught_up(server, standby)
    yield open_one
    for store in stores:
        store.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(postgres_store, "_BEHIND_S", 0.0)


def asked(dsn, statement, *values):
    with psycopg.connect(dsn, autocommit=True) as db:
        return db.execute(statement, values).fetchone()[0]


def caught_up(server, standby):
    """Wait until a standby knows what a server knows."""
    newest = asked(server.dsn, "SELECT pg_current_wal_lsn()::text")
    until = time.monotonic() + 60
    while asked(standby.dsn, "SELECT pg_last_wal_replay_lsn() < %s::pg_lsn", newest):
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def standing_still(standby):
    """Let a standby learn nothing for a while."""
    with psycopg.connect(standby.dsn, autocommit=True) as db:
        db.execute("SELECT pg_wal_replay_pause()")
        try:
            while db.execute("SELECT pg_get_wal_replay_pause_state()").fetchone()[0] != "paused":
                time.sleep(0.02)
            yield
        finally:
            db.execute("SELECT pg_wal_replay_resume()")


def answered_by(store):
    """Whether it is a standby that answers now."""
    with store.reading() as reader:
        return reader._view._db.execute("SELECT pg_is_in_recovery()").fetchone()[0]


def test_searches_go_to_the_standby(opened):
    store = opened()
    assert found_texts(store, "gateway") == ["the gateway"]
    assert answered_by(store)


def test_whoever_writes_sees_it_at_once_though_the_standby_is_behind(opened, servers):
    store, other = opened(), opened()
    assert found_texts(other, "gateway") == ["the gateway"]
    with standing_still(servers[1]):
        put(store, "b.md", "another gateway")
        assert sorted(found_texts(store, "gateway")) == ["another gateway", "the gateway"]
        assert not answered_by(store)
        assert found_texts(other, "gateway") == ["the gateway"], "others may be behind, as the guide says"
    caught_up(*servers)
    assert answered_by(store)
    assert len(found_texts(store, "gateway")) == len(found_texts(other, "gateway")) == 2


def test_what_was_erased_is_not_shown_by_a_standby_that_still_has_it(opened, servers):
    store = opened()
    put(store, "b.md", "the password of the gateway")
    caught_up(*servers)
    assert answered_by(store)
    with standing_still(servers[1]):
        store.erase("memory", "b.md")
        assert found_texts(store, "password") == []


def test_a_rebuild_is_seen_at_once_by_whoever_made_it(opened, servers):
    store = opened()
    with standing_still(servers[1]):
        with store.rebuild(fingerprint(), reason="again") as fresh:
            put(fresh, "c.md", "the new gateway")
        assert found_texts(store, "gateway") == ["the new gateway"]
    caught_up(*servers)
    assert found_texts(store, "gateway") == ["the new gateway"]
    assert answered_by(store)


def test_nobody_sees_an_older_state_after_a_newer_one(opened, servers):
    store, other = opened(), opened()
    with standing_still(servers[1]):
        put(store, "b.md", "another gateway")
        other.driver.replica.rest()
        assert len(found_texts(other, "gateway")) == 2  # from the server itself
        other.driver.replica._resting_until = 0.0
        assert len(found_texts(other, "gateway")) == 2, "it went back in time"


def test_a_view_of_a_standby_never_sees_tables_that_are_written_anew_as_empty(opened, servers):
    store, other = opened(), opened()
    put(store, "b.md", "to be erased")
    caught_up(*servers)
    assert found_texts(other, "erased") == ["to be erased"]

    def look():
        with other.reading() as reader:
            assert reader._view._db.execute("SELECT pg_is_in_recovery()").fetchone()[0]
            store.erase("memory", "b.md")
            caught_up(*servers)  # the standby waits for the view a second, and ends it then
            return reader.chunks_between("memory", "a.md", 1, 1_000)

    with pytest.raises(IndexUnavailable, match=r"reached|meanwhile"):
        look()
    assert found_texts(other, "gateway") == ["the gateway"]


def test_a_standby_as_the_server_is_refused_in_words(servers, tmp_path, opened):
    store = PostgresStore(servers[1].app_dsn, agent=str(tmp_path), workspace="notes", schema=SCHEMA)
    assert found_texts(store, "gateway") == ["the gateway"]
    with pytest.raises(IndexUnavailable, match="takes no changes") as raised:
        put(store, "b.md", "lost")
    assert "store.readDsn" in raised.value.hint
    store.close()


def test_a_standby_that_was_down_is_asked_again_when_it_is_back(opened, servers, monkeypatch):
    store = opened()
    assert answered_by(store)
    servers[1].stop()
    try:
        assert found_texts(store, "gateway") == ["the gateway"]
        assert store.driver.replica.is_resting
    finally:
        servers[1].start()
    store.driver.replica._resting_until = 0.0
    assert answered_by(store)


@pytest.mark.slow
def test_after_a_failover_that_lost_changes_nothing_of_them_is_shown():
    # The standby has not seen the last changes: their ids and stamps must not mean something else now.
    with server_of_its_own() as server, following(server) as standby:
        hosts = f"host={server.folder},{standby.folder} user=plainmind_tests_app dbname=postgres"
        store = PostgresStore(hosts, agent="a", workspace="w", schema=SCHEMA)
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")
        caught_up(server, standby)
        standby.stop()
        put(store, "b.md", "lost in the failover")
        asleep = PostgresStore(hosts, agent="a", workspace="w", schema=SCHEMA)
        assert found_texts(store, "lost") == found_texts(asleep, "lost") == ["lost in the failover"]
        server.kill()
        standby.start()
        standby.promote()

        assert found_texts(store, "lost", "gateway") == ["the gateway"]
        put(store, "c.md", "written after the failover")
        for each in (store, asleep):
            found = sorted(found_texts(each, "failover", "gateway"))
            assert found == ["the gateway", "written after the failover"]
        assert store.digest() == asleep.digest()
        asleep.close()
        with store.rebuild(fingerprint(), reason="again") as fresh:
            put(fresh, "d.md", "built after the failover")
        assert found_texts(store, "failover") == ["built after the failover"]
        store.close()
