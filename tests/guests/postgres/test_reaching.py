"""How the server is reached, and what is said when it is not."""

from __future__ import annotations

import socket
import struct
import threading
import time
import traceback
from contextlib import contextmanager, suppress

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import (
    SCHEMA,
    open_postgres_store,
    running_server,
    server_of_its_own,
)

from plainmind.base.errors import ConfigError, IndexUnavailable, LockTimeout, PlainmindError
from plainmind.guests.postgres.config import other_hosts, safe_dsn
from plainmind.guests.postgres.store import PostgresStore
from plainmind.index.store import open_store


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
    facts = conninfo_to_dict(safe_dsn(dsn))
    assert facts.get("sslmode") == sslmode
    assert facts["connect_timeout"]


def test_a_host_from_the_environment_counts_too(monkeypatch):
    monkeypatch.setenv("PGHOST", "db.example.org")
    assert conninfo_to_dict(safe_dsn("dbname=notes"))["sslmode"] == "require"


@pytest.mark.parametrize(
    ("dsn", "hosts"),
    [
        ("postgresql://me@db.example.org/notes", ["db.example.org"]),
        ("host=one.example.org,localhost dbname=notes", ["one.example.org"]),
        ("hostaddr=10.0.0.7 dbname=notes", ["10.0.0.7"]),
        ("host=localhost hostaddr=10.0.0.7 dbname=notes", ["10.0.0.7"]),
        ("service=notes", ["the service `notes`"]),
        ("postgresql://me@127.0.0.2/notes", []),
        ("host=/run/postgresql dbname=notes", []),
    ],
)
def test_it_is_known_which_machines_the_text_goes_to(monkeypatch, dsn, hosts):
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    assert other_hosts(dsn) == hosts


def test_a_machine_that_only_the_environment_names_counts(monkeypatch):
    monkeypatch.setenv("PGHOST", "db.example.org")
    assert other_hosts("dbname=notes") == ["db.example.org"]


def test_a_dsn_that_cannot_be_read_is_not_quoted():
    with pytest.raises(ConfigError) as raised:
        PostgresStore("password=hunter2 gibberish", agent="a", workspace="w")
    assert "hunter2" not in f"{raised.value} {raised.value.hint}"


def test_of_several_hosts_the_one_that_takes_changes_is_chosen():
    several = "postgresql://me@one.example.org,two.example.org/notes"
    assert conninfo_to_dict(safe_dsn(several))["target_session_attrs"] == "read-write"
    assert "target_session_attrs" not in conninfo_to_dict(safe_dsn(several, key="store.readDsn"))
    assert "target_session_attrs" not in conninfo_to_dict(safe_dsn("postgresql://me@one.example.org/notes"))
    chosen = safe_dsn(f"{several}?target_session_attrs=any")
    assert conninfo_to_dict(chosen)["target_session_attrs"] == "any"


@pytest.mark.parametrize(
    "dsn",
    [
        "password=hunter2 gibberish",
        "postgresql://me:hunter2%zz@db.example.org/notes",
        "postgresql://me:hunter2@db.example.org:port/notes?sslmode=sometimes",
        "postgresql://me:hunter2@127.0.0.1:1/notes",
        "postgresql://me:hunter2@127.0.0.1:1,127.0.0.1:2/notes",
        "host=/nowhere-at-all dbname=notes user=me password=hunter2",
    ],
)
def test_a_password_is_in_no_error_however_deep_and_in_no_log(dsn, caplog):
    caplog.set_level(0)

    def use():
        store = PostgresStore(dsn, agent="a", workspace="w")
        assert "hunter2" not in repr(store)
        store.describe()

    with pytest.raises(PlainmindError) as raised:
        use()
    told = "".join(traceback.format_exception(raised.value))
    assert "hunter2" not in told
    assert "hunter2" not in caplog.text


def test_a_password_that_is_refused_is_not_told(tmp_path):
    if not (running_server().folder / "data").exists():
        pytest.skip("the socket of this server is not known")
    dsn = f"host={running_server().folder} user=nobody_at_all password=hunter2 dbname=postgres"
    store = PostgresStore(dsn, agent="a", workspace="w", schema=SCHEMA)
    with pytest.raises(IndexUnavailable, match="nobody_at_all") as raised:
        store.digest()
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@contextmanager
def refusing(answer):
    """A server that gives one answer to whoever connects; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_all():
            with suppress(OSError):
                while True:
                    caller, _ = listening.accept()
                    with caller:
                        caller.recv(10_000)
                        caller.sendall(answer)
                        caller.recv(10_000)

        thread = threading.Thread(target=answer_all, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def refusal(code, text):
    """How PostgreSQL says no."""
    fields = b"".join(
        kind + said.encode() + b"\0"
        for kind, said in ((b"S", "FATAL"), (b"V", "FATAL"), (b"C", code), (b"M", text))
    )
    return b"E" + struct.pack(">i", len(fields) + 5) + fields + b"\0"


@pytest.mark.parametrize(
    ("answer", "said", "advice"),
    [
        (b"R" + struct.pack(">ii", 8, 3), "asks for a password", ".pgpass"),
        (
            refusal("28P01", 'password authentication failed for user "me"'),
            "password authentication failed",
            "correct the password",
        ),
        (refusal("53300", "sorry, too many clients already"), "too many clients", "max_connections"),
        (
            refusal(
                "53300", "remaining connection slots are reserved for roles with the SUPERUSER attribute"
            ),
            "slots are reserved",
            "max_connections",
        ),
        (refusal("3D000", 'database "notes" does not exist'), "does not exist", "make it on the server"),
        (refusal("57P03", "the database system is starting up"), "starting up", "try again in a moment"),
        (refusal("28000", 'no pg_hba.conf entry for host "127.0.0.1"'), "pg_hba", "allow this host"),
        (refusal("XX000", "something else"), "something else", "start it, or correct the DSN"),
    ],
)
def test_a_server_that_lets_nobody_in_is_told_apart_from_one_that_is_down(answer, said, advice):
    with refusing(answer) as port:
        store = PostgresStore(
            f"postgresql://me@127.0.0.1:{port}/notes?sslmode=disable", agent="a", workspace="w"
        )
        with pytest.raises(IndexUnavailable, match=said) as raised:
            store.digest()
    assert advice in raised.value.hint


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


def test_the_agent_and_the_workspace_come_from_the_folder(tmp_path):
    store = open_store(
        "postgres",
        folder=str(tmp_path / "index" / "main" / "notes-1234"),
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
    with store.driver.changing("hold the index"), pytest.raises(LockTimeout):
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
