"""An operator asks the indexes of several agents at once."""

from __future__ import annotations

import os

import psycopg
import pytest
from tests.support.postgres_server import SCHEMA, running_server

from plainmind import Memory
from plainmind.base.errors import IndexUnavailable, NotFound
from plainmind.guests.postgres.migrations import prepare
from plainmind.memory.indexes import indexes

OPERATOR = "plainmind_tests_operator"


@pytest.fixture
def operator():
    server = running_server()
    with psycopg.connect(server.dsn, autocommit=True) as db:
        if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (OPERATOR,)).fetchone() is None:
            db.execute(f"CREATE ROLE {OPERATOR} LOGIN")
    prepare(server.dsn, schema=SCHEMA, role=OPERATOR, is_operator=True)
    return psycopg.conninfo.make_conninfo(server.dsn, user=OPERATOR)


def opened(tmp_path, agent, word, **config):
    workspace = tmp_path / agent
    workspace.mkdir(exist_ok=True)
    (workspace / "MEMORY.md").write_text(f"- The lighthouse of {agent} is painted {word}.\n")
    memory = Memory(workspace, home=tmp_path / "home", config={"agentId": agent, **config})
    memory.sync()
    return memory


def on_server(dsn, workspace):
    return {
        "store.driver": "postgres",
        "store.dsn": dsn,
        "store.schema": SCHEMA,
        "store.workspace": workspace,
    }


@pytest.mark.timeout(60)
def test_the_best_answers_of_all_come_together_with_their_agents(tmp_path, operator):
    place = on_server(operator, str(tmp_path)[-40:])
    agents = [f"{name}-{os.getpid()}" for name in ("ada", "bo")]
    memories = [
        opened(tmp_path, agent, word, **place) for agent, word in zip(agents, ("red", "white"), strict=True)
    ]
    result = memories[0].search_agents("which colour is the lighthouse?", agents)

    assert {hit.path.rpartition(":")[2] for hit in result.hits} == {"MEMORY.md"}
    assert {hit.path.split("/")[0] for hit in result.hits} == set(agents)
    assert {word for hit in result.hits for word in ("red", "white") if word in hit.snippet} == {
        "red",
        "white",
    }
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    assert {each.agent for each in indexes(memories[0].index, None)} >= set(agents)
    with pytest.raises(NotFound, match="nobody-at-all"):
        memories[0].search_agents("lighthouse", ["nobody-at-all"])
    for memory in memories:
        memory.close()


def test_whoever_is_no_operator_is_refused(tmp_path):
    place = on_server(running_server().app_dsn, str(tmp_path)[-40:])
    with opened(tmp_path, "ada", "red", **place) as memory, pytest.raises(IndexUnavailable):
        memory.search_agents("lighthouse", None)


def test_agents_of_one_machine_are_asked_for_the_same_workspace(tmp_path):
    workspace = tmp_path / "notes"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("- The lighthouse is painted red.\n")
    for agent in ("ada", "bo"):
        with Memory(workspace, home=tmp_path / "home", config={"agentId": agent}) as memory:
            memory.sync()
    with Memory(workspace, home=tmp_path / "home", config={"agentId": "ada"}) as memory:
        result = memory.search_agents("lighthouse", None)
        assert {hit.path.split("/")[0] for hit in result.hits} == {"ada", "bo"}
        assert [each.agent for each in indexes(memory.index, ["bo"])] == ["bo"]


def test_a_search_finds_its_file_though_another_agent_forgets_a_line_of_it_just_then(tmp_path, monkeypatch):
    workspace = tmp_path / "notes"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("- The gate code is 4711.\n- The lighthouse is red.\n")
    ada, bo = (Memory(workspace, home=tmp_path / "home", config={"agentId": name}) for name in ("ada", "bo"))
    with ada, bo:
        for memory in (ada, bo):
            memory.sync()
        bo.remember("The harbour master feeds the gulls.", durable=True)
        sync, forgotten = bo.index.indexer.sync, []

        def sync_and_be_overtaken(**options):
            report = sync(**options)
            if not forgotten:
                forgotten.append(ada.forget("The gate code is 4711."))
            return report

        monkeypatch.setattr(bo.index.indexer, "sync", sync_and_be_overtaken)
        hits = bo.search("who feeds the gulls?").hits
        assert forgotten[0].applied
        assert any("harbour master" in hit.snippet for hit in hits)
        assert not any("4711" in hit.snippet for hit in hits)
