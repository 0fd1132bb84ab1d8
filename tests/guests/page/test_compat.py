"""Other vendors' interfaces, asked by Anthropic's and OpenAI's own clients; and what QMD's and mem0's would ask."""

from __future__ import annotations

import hashlib
import json

import anthropic
import openai
import pytest
from tests.guests.page.conftest import write_notes
from tests.support.page_server import PageServer

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
STORE = "memstore_memory"
OPENED = []
GROUP = ("--principal", "anna", "--chat-type", "group", "--channel", "telegram", "--group", "7")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compat")
    environ = {
        "PLAINMIND_ENTRIES_ENABLED": "true",
        "PLAINMIND_ENTRIES_DRIVER": "sqlite",
        "PLAINMIND_SCOPE_DEFAULT": "allow",
    }
    with PageServer(write_notes(folder / "notes"), folder / "home", env=environ) as server:
        yield server
        for client in OPENED:
            client.close()


@pytest.fixture(scope="module")
def tokens(server):
    """Tokens by name: one that may do everything, one that may only read, one of a group."""

    def token(name, *more):
        return json.loads(server.run("tokens", "add", name, "--json", *more))["token"]

    return {
        "all": token("agent", "--rights", "read,write,forget"),
        "read": token("reader"),
        "group": token("group", "--rights", "read,write", *GROUP),
    }


def opened(server, kind, address, token):
    """A client of a vendor, pointed at us; it is closed with the server."""
    client = kind(base_url=server.url.rstrip("/") + address, api_key=token, max_retries=0)
    OPENED.append(client)
    return client


def stores(server, token):
    return opened(server, anthropic.Anthropic, "/compat/anthropic", token).beta.memory_stores


def open_ai(server, token):
    return opened(server, openai.OpenAI, "/compat/openai/v1", token)


# --- Anthropic's memory stores ---


def test_the_memory_is_one_store(server, tokens):
    ours = stores(server, tokens["all"])
    (store,) = ours.list()
    assert (store.id, store.type, store.archived_at) == (STORE, "memory_store", None)
    assert ours.retrieve(STORE).name == "memory"
    with pytest.raises(anthropic.NotFoundError, match="there is no memory store"):
        ours.retrieve("memstore_other")
    with pytest.raises(anthropic.BadRequestError, match="no more stores"):
        ours.create(name="another")


def test_memories_are_listed_by_path_and_by_depth(server, tokens):
    memories = stores(server, tokens["all"]).memories
    memories.create(STORE, path="/deep/er/one.md", content="deep\n")
    listed = list(memories.list(STORE, limit=2))  # every page is fetched
    paths = [one.path for one in listed]
    assert {"/MEMORY.md", "/2026-11-15.md", "/network.md", "/deep/er/one.md"} <= set(paths)
    assert paths == sorted(set(paths), key=lambda path: path)
    assert all(one.content is None for one in listed)
    top = {one.path: one.type for one in memories.list(STORE, depth=1)}
    assert top["/deep/"] == "memory_prefix"
    assert "/deep/er/one.md" not in top
    below = list(memories.list(STORE, path_prefix="/deep/", view="full"))
    assert [(one.path, one.content) for one in below] == [("/deep/er/one.md", "deep\n")]


def test_a_memory_is_made_read_changed_renamed_and_deleted(server, tokens):
    memories = stores(server, tokens["all"]).memories
    made = memories.create(STORE, path="/projects/hull.md", content="Larch for the hull.\n")
    on_disk = server.workspace / "memory" / "projects" / "hull.md"
    assert on_disk.read_text() == "Larch for the hull.\n"
    assert made.content is None
    assert made.content_sha256 == hashlib.sha256(on_disk.read_bytes()).hexdigest()
    read = memories.retrieve(made.id, memory_store_id=STORE)
    assert read.content == "Larch for the hull.\n"
    assert read.memory_version_id.startswith("memver_")
    precondition = {"type": "content_sha256", "content_sha256": read.content_sha256}
    changed = memories.update(
        made.id, memory_store_id=STORE, content="Oak for the hull.\n", precondition=precondition, view="full"
    )
    assert changed.content == on_disk.read_text() == "Oak for the hull.\n"
    with pytest.raises(anthropic.ConflictError, match="changed since it was read"):
        memories.update(made.id, memory_store_id=STORE, content="Pine.\n", precondition=precondition)
    assert on_disk.read_text() == "Oak for the hull.\n"
    moved = memories.update(made.id, memory_store_id=STORE, path="/projects/boat.md")
    assert moved.path == "/projects/boat.md"
    assert not on_disk.exists()
    with pytest.raises(anthropic.ConflictError):
        memories.delete(moved.id, memory_store_id=STORE, expected_content_sha256="0" * 64)
    gone = memories.delete(moved.id, memory_store_id=STORE, expected_content_sha256=moved.content_sha256)
    assert gone.type == "memory_deleted"
    with pytest.raises(anthropic.NotFoundError):
        memories.retrieve(moved.id, memory_store_id=STORE)


def test_a_path_that_is_taken_or_leads_out_is_refused(server, tokens):
    memories = stores(server, tokens["all"]).memories
    with pytest.raises(anthropic.ConflictError, match="already exists"):
        memories.create(STORE, path="/network.md", content="x")
    for path in ("/../outside.md", "/a/../../outside.md", "relative.md", "/", "/notes.txt", "/.hidden.md"):
        with pytest.raises((anthropic.BadRequestError, anthropic.PermissionDeniedError)):
            memories.create(STORE, path=path, content="x")
    assert not (server.workspace.parent / "outside.md").exists()
    with pytest.raises(anthropic.BadRequestError, match="102,400"):
        memories.create(STORE, path="/large.md", content="x" * 102_401)


def test_versions_are_listed_read_and_redacted(server, tokens):
    ours = stores(server, tokens["all"])
    made = ours.memories.create(STORE, path="/versions.md", content="the code is 471147\n")
    ours.memories.update(made.id, memory_store_id=STORE, content="nothing is said here\n")
    newest, oldest = ours.memory_versions.list(STORE, memory_id=made.id, view="full")
    assert (newest.operation, oldest.operation) == ("modified", "created")
    assert oldest.content == "the code is 471147\n"
    assert oldest.content_sha256 == hashlib.sha256(oldest.content.encode()).hexdigest()
    with pytest.raises(anthropic.ConflictError, match="what the memory is now"):
        ours.memory_versions.redact(newest.id, memory_store_id=STORE)
    redacted = ours.memory_versions.redact(oldest.id, memory_store_id=STORE)
    assert redacted.content is None
    assert redacted.redacted_at is not None
    again = ours.memory_versions.retrieve(oldest.id, memory_store_id=STORE)
    assert (again.content, again.path, again.content_sha256) == (None, None, None)
    kept = b"".join(path.read_bytes() for path in server.home.rglob("history/**/*") if path.is_file())
    assert b"471147" not in kept


def test_who_may_not_write_cannot_and_a_wrong_key_is_told(server, tokens):
    with pytest.raises(anthropic.PermissionDeniedError, match="no right to write"):
        stores(server, tokens["read"]).memories.create(STORE, path="/x.md", content="x")
    with pytest.raises(anthropic.AuthenticationError):
        stores(server, "pm_wrong").memories.list(STORE)
    assert list(stores(server, tokens["read"]).memories.list(STORE))


def test_a_group_has_a_store_of_its_own_notes_alone(server, tokens):
    memories = stores(server, tokens["group"]).memories
    memories.create(STORE, path="/hut.md", content="the key is under the stone\n")
    assert [one.path for one in memories.list(STORE)] == ["/hut.md"]
    with pytest.raises(anthropic.PermissionDeniedError):
        list(stores(server, tokens["group"]).memory_versions.list(STORE))


def test_secrets_are_hidden_and_survive_an_edit(server, tokens):
    (server.workspace / "memory" / "keys.md").write_text(f"deploy with {SECRET} on Fridays\n")
    memories = stores(server, tokens["all"]).memories
    found = next(one for one in memories.list(STORE, view="full") if one.path == "/keys.md")
    assert SECRET not in found.content
    memories.update(found.id, memory_store_id=STORE, content=found.content.replace("Fridays", "Mondays"))
    assert (server.workspace / "memory" / "keys.md").read_text() == f"deploy with {SECRET} on Mondays\n"


# --- OpenAI's vector stores ---


def test_a_vector_store_is_searched(server, tokens):
    client = open_ai(server, tokens["read"])
    assert client.vector_stores.retrieve("vs_memory").status == "completed"
    assert [one.id for one in client.vector_stores.list()] == ["vs_memory"]
    found = list(
        client.vector_stores.search("vs_memory", query="which VLAN is the printer on?", max_num_results=3)
    )
    best = found[0]
    assert "VLAN 40" in best.content[0].text
    assert best.filename == "MEMORY.md"
    assert best.attributes["source"] == "memory"
    assert 0 < best.score <= 1
    assert len(found) <= 3


def test_results_can_be_filtered_by_their_attributes(server, tokens):
    client = open_ai(server, tokens["read"])
    of_day = {"type": "eq", "key": "day", "value": "2026-11-15"}
    found = list(client.vector_stores.search("vs_memory", query="the gateway", filters=of_day))
    assert {one.filename for one in found} == {"memory/2026-11-15.md"}
    neither = {"type": "and", "filters": [of_day, {"type": "ne", "key": "source", "value": "memory"}]}
    assert not list(client.vector_stores.search("vs_memory", query="the gateway", filters=neither))
    with pytest.raises(openai.BadRequestError, match="no attribute `author`"):
        client.vector_stores.search(
            "vs_memory", query="x y", filters={"type": "eq", "key": "author", "value": 1}
        )


def test_what_is_wrong_is_said_as_openai_says_it(server, tokens):
    client = open_ai(server, tokens["read"])
    with pytest.raises(openai.NotFoundError, match="the memory is `vs_memory`"):
        client.vector_stores.search("vs_other", query="x")
    with pytest.raises(openai.BadRequestError, match="not empty"):
        client.vector_stores.search("vs_memory", query=" ")
    with pytest.raises(openai.AuthenticationError):
        open_ai(server, "pm_wrong").vector_stores.search("vs_memory", query="x")


def test_a_threshold_leaves_out_what_is_unsure(server, tokens):
    client = open_ai(server, tokens["read"])
    sure = client.vector_stores.search(
        "vs_memory", query="where is the printer?", ranking_options={"score_threshold": 0.99999}
    )
    assert list(sure) == []


# --- QMD ---


def bearer(token):
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def test_qmd_is_answered_for_a_token_and_its_health_for_anybody(server, tokens):
    assert server.ask("GET", "/compat/qmd/health").json["status"] == "ok"
    body = {"searches": [{"type": "lex", "query": "printer VLAN"}, {"type": "vec", "query": "where is it"}]}
    assert server.ask("POST", "/compat/qmd/query", body=body).status == 401
    answer = server.ask(
        "POST", "/compat/qmd/query", body={**body, "limit": 2}, headers=bearer(tokens["read"])
    )
    first = answer.json["results"][0]
    assert first["file"] == "qmd://memory/MEMORY.md"
    assert first["docid"].startswith("#")
    assert first["snippet"].startswith("@@ -")
    assert "VLAN 40" in first["snippet"]
    assert len(answer.json["results"]) <= 2
    refused = server.ask("POST", "/compat/qmd/query", body={}, headers=bearer(tokens["read"]))
    assert (refused.status, "searches" in refused.json["error"]) == (400, True)


# --- mem0: its requests; its own client is in tests/integration/test_mem0.py ---


def mem0(server, method, path, token, body=None):
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    return server.ask(method, f"/compat/mem0{path}", body=body, headers=headers)


def test_memories_of_users_are_kept_apart(server, tokens):
    key = tokens["all"]
    assert mem0(server, "GET", "/v1/ping/", key).json["status"] == "ok"
    said = [{"role": "user", "content": "I prefer oolong tea"}, {"role": "assistant", "content": "Noted."}]
    added = mem0(server, "POST", "/v3/memories/add/", key, {"messages": said, "user_id": "anna"}).json
    (memory,) = added["results"]
    assert (memory["event"], memory["memory"], memory["user_id"]) == ("ADD", "I prefer oolong tea", "anna")
    again = mem0(server, "POST", "/v3/memories/add/", key, {"messages": said, "user_id": "anna"}).json
    assert [one["event"] for one in again["results"]] == ["NONE"]
    other = [{"role": "user", "content": "I prefer coffee to tea"}]
    mem0(server, "POST", "/v3/memories/add/", key, {"messages": other, "user_id": "bo"})
    question = {"query": "which tea?", "filters": {"AND": [{"user_id": "anna"}]}}
    found = mem0(server, "POST", "/v3/memories/search/", key, question).json["results"]
    assert [one["memory"] for one in found] == ["I prefer oolong tea"]
    listed = mem0(server, "POST", "/v3/memories/", key, {"filters": {"user_id": "bo"}}).json
    assert (listed["count"], listed["next"]) == (1, None)
    users = mem0(server, "GET", "/v1/entities/", key).json["results"]
    assert {one["name"] for one in users} >= {"anna", "bo"}


def test_a_memory_is_read_changed_and_forgotten(server, tokens):
    key = tokens["all"]
    said = [{"role": "user", "content": "My bicycle is red"}]
    memory = mem0(server, "POST", "/v3/memories/add/", key, {"messages": said, "user_id": "cleo"}).json[
        "results"
    ][0]
    path = f"/v1/memories/{memory['id']}/"
    assert mem0(server, "GET", path, key).json["memory"] == "My bicycle is red"
    assert mem0(server, "GET", f"{path}history/", key).json[0]["event"] == "ADD"
    changed = mem0(server, "PUT", path, key, {"text": "My bicycle is blue"}).json
    assert changed["memory"] == "My bicycle is blue"
    assert mem0(server, "GET", path, key).status == 404
    assert mem0(server, "DELETE", f"/v1/memories/{changed['id']}/", tokens["read"]).status == 403
    assert mem0(server, "DELETE", f"/v1/memories/{changed['id']}/", key).status == 200
    mem0(server, "POST", "/v3/memories/add/", key, {"messages": said, "user_id": "cleo"})
    assert mem0(server, "DELETE", "/v1/memories/", key).status == 400
    assert mem0(server, "DELETE", "/v1/memories/?user_id=cleo", key).status == 200
    assert mem0(server, "POST", "/v3/memories/", key, {"filters": {"user_id": "cleo"}}).json["count"] == 0


def test_filters_by_what_is_not_kept_are_refused(server, tokens):
    refused = mem0(server, "POST", "/v3/memories/", tokens["read"], {"filters": {"agent_id": "x"}})
    assert refused.status == 400
    assert "kept by user alone" in refused.json["detail"]


# --- all of them ---


def test_what_agents_are_given_by_these_is_in_the_recall_log(server, tokens):
    open_ai(server, tokens["read"]).vector_stores.search("vs_memory", query="what about the recall log?")
    recalls = json.loads(server.run("recalls", "list", "-n", "200", "--json"))["recalls"]
    mine = next(one for one in recalls if one["question"] == "what about the recall log?")
    assert (mine["surface"], mine["host"]) == ("openai", "reader")


def test_other_pages_and_hosts_get_nothing(server, tokens):
    body = {"searches": [{"type": "lex", "query": "printer"}]}
    for foreign in (
        {"Origin": "http://evil.example"},
        {"Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        answer = server.ask(
            "POST", "/compat/qmd/query", body=body, headers={**bearer(tokens["read"]), **foreign}
        )
        assert answer.status == 403
    assert server.ask("GET", "/compat/unknown/thing").status == 404
    assert server.ask("GET", "/compat/openai/v1/vector_stores/vs_memory/search").status == 405
