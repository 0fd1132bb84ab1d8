"""`migrate-store`: from SQLite to PostgreSQL and back, with the same answers."""

from __future__ import annotations

import psycopg
import pytest
from tests.support.postgres_server import APP_ROLE, running_server


@pytest.fixture
def schema(tmp_path, monkeypatch):
    """A schema of this test, named in its settings, on the server of the tests."""
    name = f"plainmind_cli_{abs(hash(str(tmp_path))) % 10**9}"
    server = running_server()
    monkeypatch.setenv("OWNER_DSN", server.dsn)
    monkeypatch.setenv("APP_DSN", server.app_dsn)
    yield name
    with psycopg.connect(server.dsn) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.mark.timeout(60)
def test_an_index_goes_to_a_server_and_back_and_answers_alike(cli, workspace, schema):
    cli("config", "set", "store.schema", schema)
    cli("sync")
    before = cli("search", "which host is the gateway?", "--json").json["results"]

    prepared = cli("migrate-store", "--prepare", "--dsn", "env:OWNER_DSN", "--role", APP_ROLE)
    assert prepared.status == 0
    assert f"{APP_ROLE} may use it" in prepared.out + prepared.err
    moved = cli("migrate-store", "--to", "postgres", "--dsn", "env:APP_DSN", "--json").json
    assert (moved["from"], moved["to"], moved["files"]) == ("sqlite", "postgres", 3)
    assert cli("config", "get", "store.driver").out.strip() == "postgres"
    status = cli("status", "--json").json
    assert status["store"]["driver"] == "postgres"
    assert status["store"]["role"] == APP_ROLE
    assert f"{schema} on " in cli("status").out
    assert f" as {status['store']['workspace']} (postgres" in cli("status").out
    assert cli("search", "which host is the gateway?", "--json").json["results"] == before
    assert cli("doctor").status == 0
    (workspace / "memory" / "late.md").write_text("The lighthouse keeper is called Bo.\n")
    assert "Bo" in cli("search", "who keeps the lighthouse?").out

    back = cli("migrate-store", "--to", "sqlite")
    assert back.status == 0
    assert cli("config", "get", "store.driver").out.strip() == "sqlite"
    assert "Bo" in cli("search", "who keeps the lighthouse?").out


def test_the_store_that_is_used_already_is_refused(cli, workspace):
    cli("sync")
    answer = cli("migrate-store", "--to", "sqlite")
    assert answer.status == 1
    assert "already" in answer.err


def test_a_server_must_be_named(cli, workspace):
    cli("sync")
    for command in (("--to", "postgres"), ("--prepare",)):
        answer = cli("migrate-store", *command)
        assert answer.status == 1
        assert "dsn" in answer.err.lower()
    assert cli("config", "get", "store.driver").out.strip() == "sqlite"


def test_a_server_that_is_down_changes_nothing(cli, workspace, tmp_path):
    cli("sync")
    answer = cli("migrate-store", "--to", "postgres", "--dsn", f"host={tmp_path} dbname=x")
    assert answer.status == 1
    assert "cannot be reached" in answer.err
    assert cli("config", "get", "store.driver").out.strip() == "sqlite"
    assert "Mac Studio" in cli("search", "gateway host").out


def test_a_search_while_the_server_is_down_says_so(cli, workspace, tmp_path):
    cli("config", "set", "store.driver", "postgres")
    cli("config", "set", "store.dsn", f"host={tmp_path} dbname=x")
    answer = cli("search", "gateway host")
    assert answer.status == 1
    assert "cannot be reached" in answer.err
    assert "notes are safe" in answer.err
    assert "Mac Studio" in cli("get", "memory/network.md").out


def test_status_and_doctor_answer_while_the_server_is_down(cli, workspace, tmp_path):
    cli("config", "set", "store.driver", "postgres")
    cli("config", "set", "store.dsn", f"host={tmp_path} dbname=x user=me password=hunter2")
    told = cli("status")
    assert told.status == 0
    assert str(workspace) in told.out
    assert "postgres does not work" in told.out
    assert "cannot be asked" in told.err
    assert "no notes yet" not in told.err
    facts = cli("status", "--json").json
    assert facts["engine"]["healthy"] is False
    assert facts["files"] is None
    examined = cli("doctor")
    assert examined.status == 1
    assert "cannot be reached" in examined.out + examined.err
    for answer in (told, cli("status", "--json"), cli("status", "--deep"), examined, cli("config", "list")):
        assert "hunter2" not in answer.out + answer.err
