"""Every wait has an end: for a server that says nothing, and for a host that sleeps while others wait for it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import (
    APP_ROLE,
    SCHEMA,
    open_postgres_store,
    running_server,
    server_of_its_own,
)

from plainmind.base.errors import IndexUnavailable, LockTimeout
from plainmind.guests.postgres import connections
from plainmind.guests.postgres.connections import locks_of
from plainmind.guests.postgres.migrations import prepare
from plainmind.guests.postgres.store import PostgresStore


@pytest.fixture
def opened(tmp_path):
    stores = []

    def open_one(**options):
        stores.append(open_postgres_store(tmp_path, **options))
        return stores[-1]

    with open_one().rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    yield open_one
    for store in stores:
        store.close()


@contextmanager
def frozen(pid):
    """A process of the server that gets no time."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.timeout(60)
def test_a_server_that_does_not_answer_any_more_is_given_up(opened, monkeypatch):
    if not (running_server().folder / "data").exists():
        pytest.skip("the processes of this server are not here")
    store = opened()
    monkeypatch.setattr(connections, "_FOR_THE_ANSWER_S", 1 - connections.STATEMENT_S)

    def look():
        with store.reading() as reader:
            (pid,) = reader._view._db.execute("SELECT pg_backend_pid()").fetchone()
            with frozen(pid):
                reader.chunks_between("memory", "a.md", 1, 9)

    with pytest.raises(IndexUnavailable, match="does not answer any more"):
        look()
    assert found_texts(store, "gateway") == ["the gateway"]


@pytest.mark.timeout(60)
def test_a_host_that_sleeps_in_the_middle_of_a_change_keeps_the_others_waiting_only_so_long(opened):
    asleep, other = opened(), opened(wait_s=40)
    begin = partial(asleep.driver.session().lock, idle_s=1)

    def sleep():
        with asleep.driver.for_writing.transaction(begin, "index a file") as (db, _):
            put(other, "b.md", "written meanwhile")
            db.execute("SELECT 1")

    with pytest.raises(IndexUnavailable, match="took too long"):
        sleep()
    assert found_texts(other, "meanwhile") == ["written meanwhile"]


def test_no_transaction_may_idle_for_ever(opened):
    store = opened()
    with store.reading() as reader, store.driver.changing("look") as change:
        for each in (reader._view._db, change.db):
            (idle,) = each.execute("SHOW idle_in_transaction_session_timeout").fetchone()
            assert idle == "10min"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_whatever_isolation_the_server_prefers_a_waiting_writer_sees_what_the_other_wrote(
    opened, level, tmp_path
):
    role = f"plainmind_tests_{level.split()[0]}"
    with psycopg.connect(running_server().dsn, autocommit=True) as db:
        if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
            db.execute(f"CREATE ROLE {role} LOGIN")
        db.execute(f"ALTER ROLE {role} SET default_transaction_isolation = '{level}'")
    prepare(running_server().dsn, schema=SCHEMA, role=role)
    store, strict = opened(), opened(role=role)
    strict.describe()
    with store.driver.changing("hold the index") as change:
        waiting = threading.Thread(target=put, args=(strict, "b.md", "of the one who waited"))
        waiting.start()
        with psycopg.connect(running_server().dsn, autocommit=True) as admin:
            while not admin.execute(
                "SELECT 1 FROM pg_stat_activity WHERE usename = %s AND wait_event = 'advisory'", (role,)
            ).fetchone():
                pass
        change.db.execute(
            "UPDATE generations SET revision = revision + 1 WHERE id = %s", (change.tables.generation,)
        )
    waiting.join()
    assert found_texts(store, "waited") == ["of the one who waited"]


def test_whoever_waits_too_long_to_prepare_a_schema_is_told_so(monkeypatch):
    monkeypatch.setattr(
        "plainmind.guests.postgres.migrations._DEADLINES", ("SET LOCAL lock_timeout = '100ms'",)
    )
    name = f"plainmind_tests_wait_{os.getpid()}"
    with psycopg.connect(running_server().dsn) as db:
        db.execute("SELECT pg_advisory_xact_lock(%s, 0)", (locks_of(name).index,))
        with pytest.raises(LockTimeout) as raised:
            prepare(running_server().dsn, schema=name)
        assert raised.value.hint
        store = PostgresStore(running_server().dsn, agent="a", workspace="w", schema=name)
        with pytest.raises(LockTimeout):
            store.digest()
        store.close()


def test_an_encoding_of_the_environment_changes_nothing(opened, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    store = opened()
    put(store, "b.md", "a snowman ☃ and 雪")
    assert found_texts(store, "snowman") == ["a snowman ☃ and 雪"]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_over_a_network_the_server_soon_notices_that_a_host_is_gone():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with server_of_its_own(listen_addresses="127.0.0.1", port=port) as server:
        dsn = f"postgresql://{APP_ROLE}@127.0.0.1:{port}/postgres"
        store = PostgresStore(dsn, agent="a", workspace="w", schema=SCHEMA)
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")
        assert found_texts(store, "gateway") == ["the gateway"]
        with store.reading() as reader, store.driver.changing("look") as change:
            for each in (reader._view._db, change.db):
                idle, interval, count = (
                    each.execute(f"SHOW tcp_keepalives_{name}").fetchone()[0]
                    for name in ("idle", "interval", "count")
                )
                assert int(idle) + int(interval) * int(count) <= 30
        store.close()
        server.kill()
        with pytest.raises(IndexUnavailable, match="cannot be reached"):
            store.digest()
