"""The schema on the server: made once, brought up to date by numbers, refused where server or role will not do."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import APP_ROLE, OWNER, running_server

from plainmind.base.errors import IndexCorrupt, IndexUnavailable
from plainmind.base.model import SHARED
from plainmind.guests.postgres import migrations
from plainmind.guests.postgres.migrations import NEWEST, prepare
from plainmind.guests.postgres.store import PostgresStore

STRANGER = "plainmind_tests_nobody"


@pytest.fixture
def own_schema():
    name = f"plainmind_tests_{time.monotonic_ns() % 10**9}"
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
    name = f"plainmind_{time.monotonic_ns()}"
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


def versions(schema):
    with psycopg.connect(running_server().dsn) as db:
        return [n for (n,) in db.execute(f"SELECT number FROM {schema}.migrations ORDER BY number")]


def first_version(schema, monkeypatch, **options):
    """A schema as the first version of this program has made it."""
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "_NAMES", migrations._NAMES[:1])
        patched.setattr(migrations, "NEWEST", 1)
        patched.setattr(
            migrations,
            "_GRANTS",
            tuple(grant.replace(", {schema}.agents_of", "") for grant in migrations._GRANTS),
        )
        prepare(running_server().dsn, schema=schema, **options)
    assert versions(schema) == [1]


def test_an_index_of_the_first_version_answers_as_before_when_its_schema_was_brought_up_to_date(
    own_schema, monkeypatch
):
    first_version(own_schema, monkeypatch, role=APP_ROLE)
    dsn = running_server().app_dsn
    old = PostgresStore(dsn, agent="a", workspace="w", schema=own_schema)
    with monkeypatch.context() as patched:
        patched.setattr("plainmind.guests.postgres.store.NEWEST", 1)
        with old.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")
    digest = old.digest()

    new = PostgresStore(dsn, agent="a", workspace="w", schema=own_schema)
    with pytest.raises(IndexUnavailable, match="belongs to postgres, and this role may not") as raised:
        new.digest()
    assert "--prepare" in raised.value.hint
    assert "DSN of postgres" in raised.value.hint
    prepare(running_server().dsn, schema=own_schema)
    assert versions(own_schema) == list(range(1, NEWEST + 1))
    assert new.digest() == digest
    assert found_texts(new, "gateway") == ["the gateway"]
    assert new.of_other_agents() == []  # what is new is allowed to whom the rest was
    put(old, "b.md", "from a program that still runs")
    assert found_texts(new, "program") == ["from a program that still runs"]
    with psycopg.connect(running_server().dsn) as db:
        db.execute(f"DELETE FROM {own_schema}.postings_{new.describe()['generation']}")
    with pytest.raises(IndexCorrupt, match="another program"):  # its tables are watched from now on
        new.digest()
    old.close()
    new.close()


def test_hosts_that_bring_a_schema_up_to_date_at_once_do_it_once(own_schema, monkeypatch):
    first_version(own_schema, monkeypatch)
    failures = []

    def bring():
        try:
            prepare(running_server().dsn, schema=own_schema)
        except BaseException as error:  # noqa: BLE001 (told to the test below)
            failures.append(error)

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert versions(own_schema) == list(range(1, NEWEST + 1))


@pytest.mark.timeout(60)
def test_a_migration_that_is_interrupted_leaves_the_version_before_it(own_schema, monkeypatch):
    first_version(own_schema, monkeypatch)
    outcome = []

    def bring():
        try:
            prepare(running_server().dsn + " application_name=interrupted", schema=own_schema)
        except IndexUnavailable as error:
            outcome.append(error)

    with psycopg.connect(running_server().dsn) as holding:
        holding.execute(f"LOCK TABLE {own_schema}.migrations IN SHARE MODE")  # the last step has to wait
        thread = threading.Thread(target=bring)
        thread.start()
        with psycopg.connect(running_server().dsn, autocommit=True) as db:
            while not db.execute(
                """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE application_name = 'interrupted' AND wait_event_type = 'Lock'"""
            ).fetchone():
                time.sleep(0.02)
        thread.join()
    assert "cannot be reached" in str(outcome[0])
    assert versions(own_schema) == [1]
    with psycopg.connect(running_server().dsn) as db:
        assert db.execute("SELECT to_regproc(%s)", (f"{own_schema}.agents_of",)).fetchone() == (None,)
    prepare(running_server().dsn, schema=own_schema)
    assert versions(own_schema) == list(range(1, NEWEST + 1))


# --- servers and roles that will not do ------------------------------------------------------------------------


@contextmanager
def database(options=""):
    """A database without anything in it: the DSN of its administrator."""
    dsn, name = running_server().dsn, f"plainmind_{os.getpid()}_{time.monotonic_ns()}"
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} {options}")
    try:
        yield make_conninfo(dsn, dbname=name)
    finally:
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def stranger():
    with psycopg.connect(running_server().dsn, autocommit=True) as db:
        if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (STRANGER,)).fetchone() is None:
            db.execute(f"CREATE ROLE {STRANGER} LOGIN")
    return STRANGER


def refusal(dsn, **options):
    store = PostgresStore(dsn, agent="a", workspace="w", **options)
    with pytest.raises(IndexUnavailable) as raised:
        store.digest()
    store.close()
    assert "\n" not in raised.value.args[0]
    return raised.value


@pytest.mark.timeout(60)
def test_a_role_that_may_not_create_schemas_is_told_who_can(stranger, own_schema):
    told = refusal(make_conninfo(running_server().dsn, user=stranger), schema=own_schema)
    assert "permission denied" in str(told)
    assert "migrate-store --prepare" in told.hint


@pytest.mark.timeout(60)
def test_a_server_without_pgvector_is_said_to_need_it():
    with database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as db:
            if db.info.server_version < 180_000:
                pytest.skip("older servers look for extensions in one place only")
            db.execute(f"ALTER DATABASE {db.info.dbname} SET extension_control_path = '/nowhere'")
        told = refusal(dsn)
    assert "no pgvector" in str(told)
    assert "install pgvector" in told.hint


@pytest.mark.timeout(60)
def test_a_role_that_may_not_add_pgvector_is_told_who_can(stranger):
    with database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute(f"GRANT CREATE ON DATABASE {db.info.dbname} TO {stranger}")
        told = refusal(make_conninfo(dsn, user=stranger))
    assert "may not add it" in str(told)
    assert "CREATE EXTENSION vector" in told.hint


@pytest.mark.timeout(60)
@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_pgvector_that_is_too_old_is_refused_with_what_to_do(is_prepared):
    with database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute("CREATE EXTENSION vector")
            if is_prepared:
                prepare(dsn, schema="plainmind")
            db.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
        told = refusal(dsn)
    assert "0.7.4" in str(told)
    assert "ALTER EXTENSION vector UPDATE" in told.hint


@pytest.mark.timeout(60)
def test_a_database_that_cannot_hold_every_character_is_refused():
    with database("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0") as dsn:
        told = refusal(dsn)
    assert "LATIN1" in str(told)
    assert "UTF8" in told.hint


def test_a_role_that_nobody_knows_cannot_be_let_in(own_schema):
    with pytest.raises(IndexUnavailable, match="does not exist") as raised:
        prepare(running_server().dsn, schema=own_schema, role="nobody_has_made_me")
    assert "--role" in raised.value.hint


# --- roles as the guide makes them --------------------------------------------------------------------------------


@pytest.mark.timeout(60)
def test_an_owner_who_is_no_administrator_and_a_role_that_owns_nothing_can_do_everything():
    operator = "plainmind_tests_oncall"
    with database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as db:
            if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (operator,)).fetchone() is None:
                db.execute(f"CREATE ROLE {operator} LOGIN")
            db.execute(f"ALTER DATABASE {db.info.dbname} OWNER TO {OWNER}")
            db.execute("CREATE EXTENSION vector")
        prepare(make_conninfo(dsn, user=OWNER), schema="plainmind", role=APP_ROLE)
        # By an administrator: what is made later belongs to the owner all the same, and the operator may read it.
        prepare(dsn, schema="plainmind", role=operator, is_operator=True)
        app = make_conninfo(dsn, user=APP_ROLE)
        ada, bo = (PostgresStore(app, agent=agent, workspace="w") for agent in ("ada", "bo"))
        for store in (ada, bo):
            with store.rebuild(fingerprint(), reason="a test") as fresh:
                put(fresh, "a.md", "the gateway")
                put(fresh, "b.md", "a shared gateway", scope=SHARED)
                put(fresh, "c.md", "to be erased")
        with psycopg.connect(app) as db:  # one who sees a part must not write the rest away
            db.execute("SELECT set_config('plainmind.agent', 'ada', false)")
            db.execute("SELECT set_config('plainmind.scopes', '[\"shared\"]', false)")
            db.execute("SELECT plainmind.write_anew(%s)", (ada.describe()["generation"],))
        ada.erase("memory", "c.md")
        assert sorted(found_texts(ada, "gateway", "erased")) == ["a shared gateway", "the gateway"]
        ada.digest()
        (other,) = ada.of_other_agents()
        assert found_texts(other, "erased") == ["to be erased"]
        theirs = PostgresStore(make_conninfo(dsn, user=operator), agent="oncall", workspace="w")
        assert theirs.all_indexes() == [("ada", "w"), ("bo", "w")]
        of_bo = theirs.index_of("bo", "w")
        assert found_texts(of_bo, "erased") == ["to be erased"]
        for store in (ada, bo, other, theirs, of_bo):
            store.close()
