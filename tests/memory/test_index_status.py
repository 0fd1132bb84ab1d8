"""What can be told while the index cannot be asked: everything else, and why."""

from __future__ import annotations

import json
import os

import pytest
from tests.support.postgres_server import SCHEMA, running_server

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER, SearchContext
from plainmind.agent.tools import ToolBox
from plainmind.base.errors import IndexUnavailable

PASSWORD = "hunter2-of-the-index"


def on_a_server_that_is_down(tmp_path):
    return {
        "store.driver": "postgres",
        "store.dsn": f"host={tmp_path}/nowhere dbname=notes user=me password={PASSWORD}",
        "scope.rules": [{"action": "allow"}],
    }


def on_a_bucket_that_is_gone(tmp_path, monkeypatch):
    pytest.importorskip("lancedb")
    for name, said in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": PASSWORD,
        "AWS_ENDPOINT": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "none",
        "AWS_MAX_RETRIES": "0",
    }.items():
        monkeypatch.setenv(name, said)
    return {"store.driver": "lancedb", "store.uri": "s3://nobody/notes", "store.workspace": "boats"}


@pytest.fixture
def memory(workspace, home, tmp_path):
    with Memory(workspace, home=home, config=on_a_server_that_is_down(tmp_path)) as memory:
        yield memory


def test_status_tells_all_that_needs_no_index_and_why_it_cannot_be_asked(memory, workspace):
    for deep in (False, True):
        facts = memory.status(deep=deep).as_dict()
        engine = facts["engine"]
        assert (engine["name"], engine["healthy"]) == ("postgres", False)
        assert "cannot be reached" in engine["problem"]
        assert "notes are safe" in engine["hint"]
        assert facts["workspaceDir"] == os.path.realpath(workspace)
        assert facts["provider"] == "builtin"
        assert facts["store"]["driver"] == "postgres"
        assert PASSWORD not in json.dumps(facts, default=str)


def test_an_index_that_cannot_be_asked_does_not_look_like_an_empty_one(memory):
    facts = memory.status()
    assert facts["files"] is None
    assert facts["chunks"] is None
    assert facts["dirty"] is None
    assert facts["pending"] is None
    assert facts["sourceCounts"] == []
    assert not facts["fts"]["available"]
    assert not facts["vector"]["available"]


def test_the_server_is_asked_once_for_a_status(memory, monkeypatch):
    asked = []
    reading = type(memory.index.store).reading
    monkeypatch.setattr(
        type(memory.index.store), "reading", lambda store: asked.append("reading") or reading(store)
    )
    monkeypatch.setattr(type(memory.index.store), "describe", lambda _: asked.append("describe"))
    memory.status()
    assert asked == ["reading"]


def test_the_tool_tells_an_agent_that_the_index_cannot_be_asked(memory):
    answer = ToolBox(memory.within(THE_OWNER)).call("memory_status", {})
    assert not answer.is_error
    assert answer.content["files"] is None
    assert "cannot be reached" in answer.content["problem"]


def test_who_is_no_owner_is_told_nothing_about_the_server(memory, tmp_path):
    group = memory.within(SearchContext("bo", "group", "agent:main:telegram:group:-100", group="-100"))
    facts = group.status()
    assert facts["files"] is None
    assert facts["store"] == {"problem": "the index cannot be asked just now"}
    assert str(tmp_path) not in json.dumps(facts)


def test_doctor_names_the_problem_and_looks_at_everything_else(memory):
    checks = {check.name: check for check in memory.doctor()}
    assert checks["index"].verdict == "problem"
    assert "cannot be reached" in checks["index"].detail
    assert "notes are safe" in checks["index"].hint
    assert checks["workspace"].verdict == checks["embedding"].verdict == checks["locks"].verdict == "ok"


def test_a_search_is_refused_and_files_are_still_read_and_written(memory):
    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        memory.search("gateway")
    assert "Mac Studio" in memory.get("MEMORY.md").text
    memory.remember("written while the server was down")
    assert any("written while" in memory.get(file.path).text for file in memory.list())


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_bucket_that_is_gone_is_told_the_same_way(workspace, home, tmp_path, monkeypatch):
    with Memory(workspace, home=home, config=on_a_bucket_that_is_gone(tmp_path, monkeypatch)) as memory:
        facts = memory.status()
    assert (facts["engine"]["name"], facts["engine"]["healthy"]) == ("lancedb", False)
    assert facts["engine"]["problem"]
    assert facts["files"] is None
    assert PASSWORD not in json.dumps(facts.as_dict(), default=str)


def on_the_server_of_the_tests(dsn, tmp_path):
    return {
        "store.driver": "postgres",
        "store.dsn": dsn,
        "store.schema": SCHEMA,
        "store.workspace": str(tmp_path)[-40:],
    }


@pytest.mark.timeout(60)
def test_a_server_that_works_is_named_with_its_version(workspace, home, tmp_path):
    config = on_the_server_of_the_tests(running_server().app_dsn, tmp_path)
    with Memory(workspace, home=home, config=config) as memory:
        memory.sync()
        facts = memory.status()
        engine = facts["engine"]
        assert (engine["name"], engine["healthy"]) == ("postgres", True)
        assert engine["version"] == facts["store"]["postgres"]
        assert facts["files"] == 3
        checks = [check for check in memory.doctor() if check.name == "engine"]
    assert [check.verdict for check in checks] == ["ok"]
    assert "pgvector" in checks[0].detail


@pytest.mark.timeout(60)
def test_a_role_that_passes_by_row_level_security_is_warned_of(workspace, home, tmp_path):
    config = on_the_server_of_the_tests(running_server().dsn, tmp_path)
    with Memory(workspace, home=home, config=config) as memory:
        memory.sync()
        checks = [check for check in memory.doctor() if check.name == "engine"]
    assert [check.verdict for check in checks] == ["ok", "warning"]
    assert "row-level security" in checks[1].detail
