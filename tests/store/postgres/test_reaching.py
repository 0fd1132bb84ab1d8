"""How the server is reached, and what is said when it is not."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import (
    APP_ROLE,
    SCHEMA,
    open_postgres_store,
    running_server,
    server_of_its_own,
)

from commonplace.errors import ConfigError, IndexUnavailable, LockTimeout
from commonplace.store.opening import open_store
from commonplace.store.postgres.connection import checked_dsn
from commonplace.store.postgres.migrations import NEWEST, prepare
from commonplace.store.postgres.store import PostgresStore


@pytest.mark.parametrize(
    ("dsn", "sslmode"),
    [
        ("postgresql://me@db.example.org/notes", "require"),
        ("host=10.0.0.7 dbname=notes", "require"),
        ("host=10.0.0.7,localhost dbname=notes", "require"),
        ("postgresql://me@db.example.org/notes?sslmode=verify-full", "verify-full"),
        ("postgresql://me@db.example.org/notes?sslmode=disable", "disable"),
        ("postgresql://me@localhost.example.org/notes", "require"),
        ("postgresql://me@127.0.0.1.example.org/notes", "require"),
        ("host=localhost hostaddr=10.0.0.7 dbname=notes", "require"),
        ("service=notes", "require"),
        ("postgresql://me@[::1]/notes", None),
        ("postgresql://me@localhost/notes", None),
        ("postgresql://me@127.0.0.1:5433/notes", None),
        ("host=/run/postgresql dbname=notes", None),
        ("dbname=notes", None),
    ],
)
def test_text_goes_to_other_machines_only_through_tls_unless_the_dsn_says_otherwise(
    monkeypatch, dsn, sslmode
):
    monkeypatch.delenv("PGSSLMODE", raising=False)
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    facts = conninfo_to_dict(checked_dsn(dsn))
    assert facts.get("sslmode") == sslmode
    assert facts["connect_timeout"]


def test_a_host_from_the_environment_counts_too(monkeypatch):
    monkeypatch.setenv("PGHOST", "db.example.org")
    assert conninfo_to_dict(checked_dsn("dbname=notes"))["sslmode"] == "require"


def test_a_dsn_that_cannot_be_read_is_not_quoted():
    with pytest.raises(ConfigError) as raised:
        PostgresStore("password=hunter2 gibberish", agent="a", workspace="w")
    assert "hunter2" not in f"{raised.value} {raised.value.hint}"


def test_without_a_dsn_the_setting_is_named():
    with pytest.raises(ConfigError) as raised:
        open_store("postgres", folder="/nowhere/main/notes")
    assert raised.value.key == "store.dsn"


@pytest.mark.parametrize("schema", ["Robert'); DROP", "", "UPPER", "a-b", "x" * 60])
def test_a_schema_has_a_plain_name(schema):
    with pytest.raises(ConfigError):
        PostgresStore("dbname=x", agent="a", workspace="w", schema=schema)


def test_a_server_that_is_not_there_is_said_to_be_so_at_once(tmp_path):
    store = PostgresStore(f"host={tmp_path} dbname=x user=y", agent="a", workspace="w")
    begun = time.monotonic()
    for use in (store.digest, store.describe, lambda: put(store, "a.md", "x")):
        with pytest.raises(IndexUnavailable, match="cannot be reached") as raised:
            use()
        assert "notes are safe" in raised.value.hint
    assert time.monotonic() - begun < 5


def test_the_agent_and_the_workspace_come_from_the_folder():
    store = open_store(
        "postgres",
        folder="/home/me/.commonplace/index/main/notes-1234",
        dsn=running_server().app_dsn,
        schema=SCHEMA,
    )
    facts = store.describe()
    store.close()
    assert (facts["agent"], facts["workspace"]) == ("main", "notes-1234")
    assert facts["driver"] == "postgres"
    assert facts["generation"] is None


def test_two_hosts_with_the_same_workspace_share_one_index(tmp_path):
    first, second = open_postgres_store(tmp_path), open_postgres_store(tmp_path)
    with first.rebuild(fingerprint(), reason="a test"):
        pass
    put(second, "a.md", "from the other host")
    assert found_texts(first, "host") == ["from the other host"]
    first.close()
    second.close()


def cut_connections(name):
    with psycopg.connect(running_server().dsn, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", (name,)
        )


@pytest.fixture
def named(tmp_path):
    """A store whose connections can be told from those of other tests."""
    store = open_postgres_store(tmp_path, application_name=tmp_path.name[-60:])
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    yield store
    store.close()


def test_a_search_goes_on_after_its_connections_were_cut(named, tmp_path):
    assert found_texts(named, "gateway") == ["the gateway"]
    cut_connections(tmp_path.name[-60:])

    assert found_texts(named, "gateway") == ["the gateway"]
    put(named, "b.md", "another gateway")
    assert len(found_texts(named, "gateway")) == 2


def test_a_view_that_is_cut_says_so(named, tmp_path):
    def look():
        with named.reading() as reader:
            cut_connections(tmp_path.name[-60:])
            reader.files()

    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        look()
    assert found_texts(named, "gateway") == ["the gateway"]


def test_whoever_waits_too_long_for_another_writer_is_told_so(tmp_path):
    store, other = open_postgres_store(tmp_path), open_postgres_store(tmp_path, wait_s=0.2)
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    with store._changing("hold the index"), pytest.raises(LockTimeout):
        put(other, "a.md", "too late")
    put(other, "a.md", "in time")
    store.close()
    other.close()


def test_a_replica_that_is_down_is_replaced_by_the_server_itself(tmp_path):
    store = open_postgres_store(tmp_path)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    store.close()
    other = open_postgres_store(tmp_path, read_dsn=f"host={tmp_path} dbname=x")
    assert found_texts(other, "gateway") == ["the gateway"]
    other.close()


def test_searches_go_to_the_replica_until_this_process_writes(tmp_path):
    store = open_postgres_store(tmp_path, read_dsn=running_server().app_dsn)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    store.close()
    reader = open_postgres_store(tmp_path, read_dsn=running_server().app_dsn)
    assert found_texts(reader, "gateway") == ["the gateway"]
    assert reader._nearest() is not reader._reading
    put(reader, "b.md", "another gateway")
    assert reader._nearest() is reader._reading
    assert len(found_texts(reader, "gateway")) == 2
    reader.close()


# --- migrations ----------------------------------------------------------------------------------------------


@pytest.fixture
def own_schema():
    name = f"commonplace_tests_{time.monotonic_ns() % 10**9}"
    yield name
    with psycopg.connect(running_server().dsn) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def test_preparing_twice_and_at_once_is_preparing_once(own_schema):
    dsn = running_server().dsn
    threads = [
        threading.Thread(target=prepare, args=(dsn,), kwargs={"schema": own_schema, "role": APP_ROLE})
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    prepare(dsn, schema=own_schema)
    with psycopg.connect(dsn) as db:
        assert db.execute(f"SELECT array_agg(number) FROM {own_schema}.migrations").fetchone() == (
            list(range(1, NEWEST + 1)),
        )


def test_a_schema_of_a_newer_version_is_refused_in_words(own_schema):
    dsn = running_server().dsn
    prepare(dsn, schema=own_schema)
    with psycopg.connect(dsn) as db:
        db.execute(f"INSERT INTO {own_schema}.migrations VALUES (%s, 'of tomorrow')", (NEWEST + 1,))
    store = PostgresStore(dsn, agent="a", workspace="w", schema=own_schema)
    with pytest.raises(IndexUnavailable, match="knows up to") as raised:
        store.digest()
    assert "install" in raised.value.hint
    with pytest.raises(IndexUnavailable):
        prepare(dsn, schema=own_schema)
    store.close()


def test_a_role_that_may_create_schemas_needs_no_preparation(own_schema):
    store = PostgresStore(running_server().dsn, agent="a", workspace="w", schema=own_schema)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    assert found_texts(store, "gateway") == ["the gateway"]
    store.close()


@pytest.mark.timeout(60)
def test_a_database_without_anything_in_it_is_made_ready_by_whoever_may():
    server = running_server()
    name = f"commonplace_{time.monotonic_ns()}"
    with psycopg.connect(server.dsn, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    try:
        store = PostgresStore(
            psycopg.conninfo.make_conninfo(server.dsn, dbname=name), agent="a", workspace="w"
        )
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")
        assert found_texts(store, "gateway") == ["the gateway"]
        store.close()
    finally:
        with psycopg.connect(server.dsn, autocommit=True) as db:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_server_that_was_killed_is_used_again_when_it_is_back():
    with server_of_its_own() as server:
        store = PostgresStore(server.app_dsn, agent="a", workspace="w", schema=SCHEMA)
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")
        digest = store.digest()
        server.kill()
        with pytest.raises(IndexUnavailable):
            found_texts(store, "gateway")
        with pytest.raises(IndexUnavailable):
            put(store, "b.md", "lost")
        server.start()
        assert found_texts(store, "gateway") == ["the gateway"]
        assert store.digest() == digest
        store.close()
