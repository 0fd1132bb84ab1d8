"""Forgetting reaches every index on a server that holds the text, whichever host has made it."""

from __future__ import annotations

import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import SCHEMA, running_server

from plainmind import Memory
from plainmind.guests.postgres.store import PostgresStore

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def name(tmp_path):
    """What all hosts call the workspace."""
    return str(tmp_path)[-40:]


@pytest.fixture
def memory(workspace, home, name):
    config = {
        "store.driver": "postgres",
        "store.dsn": running_server().app_dsn,
        "store.schema": SCHEMA,
        "store.workspace": name,
        "agentId": f"ada{abs(hash(name))}",
    }
    with Memory(workspace, home=home, config=config) as memory:
        yield memory


@pytest.fixture
def elsewhere():
    """What opens the index of an agent and a workspace as another host does."""
    stores = []

    def opened(agent, workspace, *texts, source="memory", path="MEMORY.md"):
        stores.append(
            PostgresStore(running_server().app_dsn, agent=agent, workspace=workspace, schema=SCHEMA)
        )
        with stores[-1].rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, path, *texts, source=source)
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


def test_what_agents_of_other_hosts_have_indexed_of_the_workspace_is_forgotten_too(memory, name, elsewhere):
    memory.sync()
    theirs = elsewhere(f"bo{abs(hash(name))}", name, "the gateway runs on a Mac Studio")
    unrelated = elsewhere(f"bo{abs(hash(name))}", f"{name}-2", "the gateway runs on a Mac Studio")

    assert memory.forget("Mac Studio").applied
    assert memory.search("Mac Studio").hits == ()
    assert found_texts(theirs, "studio") == []
    assert found_texts(unrelated, "studio") != [], "another workspace has files of its own"


def test_an_agent_may_be_called_as_its_workspace(name, elsewhere):
    store = elsewhere(f"cy{name}", name, "one")
    namesake = elsewhere(name, name, "two")
    assert found_texts(namesake, "two") == ["two"]
    (other,) = store.of_other_agents()
    assert found_texts(other, "two") == ["two"]
    other.close()


def test_the_other_workspaces_of_an_agent_are_known_whichever_host_has_made_them(name, elsewhere):
    agent = f"di{abs(hash(name))}"
    store = elsewhere(agent, name, "one")
    elsewhere(agent, f"{name}-2", "said before", source="sessions", path="sessions/a.jsonl")
    (other,) = store.of_other_workspaces()
    assert found_texts(other, "said") == ["said before"]
    other.close()
