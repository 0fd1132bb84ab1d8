"""The entry memory as the settings want it: where it is, what it does, and what it leaves nowhere."""

from __future__ import annotations

import importlib.util
import json
from array import array

import pytest
from tests.guests.entries.conftest import files_with
from tests.support.providers.server import KEY, Provider, serving

from plainmind import Memory
from plainmind.agent.recalls import Asker
from plainmind.agent.scope import THE_OWNER
from plainmind.base.errors import ConfigError
from plainmind.base.model import EVERY_SCOPE, PRIVATE, EmbedderIdentity, sha256_text
from plainmind.guests.chat.access import open_conversation
from plainmind.guests.entries.access import entry_memory_of, tools_within
from plainmind.memory.status import open_cache


def memory_with(tmp_path, **entries):
    (tmp_path / "notes").mkdir(exist_ok=True)
    config = {"entries": {"driver": "sqlite", **entries}, "chat": {"model": "m", "apiKey": "k"}}
    return Memory(tmp_path / "notes", home=tmp_path / "home", config=config)


def test_entries_are_kept_where_the_settings_say(tmp_path):
    with memory_with(tmp_path, path="{home}/elsewhere/{agentId}") as memory:
        entries = entry_memory_of(memory)
        entries.store("the gateway runs", scope=PRIVATE)
        entries.close()
    assert (tmp_path / "home" / "elsewhere" / "main" / "entries.jsonl").exists()


def test_what_counts_as_said_already_can_be_set(tmp_path):
    said = ("my sister lives in the old town of the city", "my sister works in the old town of the city")
    with memory_with(tmp_path, duplicateFrom=0.5) as memory:
        entries = entry_memory_of(memory)
        assert entries.store(said[0], scope=PRIVATE).entry is not None
        assert entries.store(said[1], scope=PRIVATE).entry is None
        entries.close()
    with memory_with(tmp_path, duplicateFrom=1) as memory:
        entries = entry_memory_of(memory)
        assert entries.store(said[1], scope=PRIVATE).entry is not None
        entries.close()


def test_a_recalled_entry_is_in_the_recall_log_until_it_is_forgotten(tmp_path):
    with memory_with(tmp_path, enabled=True, recallMinScore=0) as memory:
        box, hooks = tools_within(memory, THE_OWNER, Asker("chat", "m", "talk"))
        stored = box.call("memory_store", {"text": "the door code is 471147"}).content["id"]
        box.call("memory_recall", {"query": "which code has the door?"})
        hooks._box.recalled_for("I am at the door, is it 471147?")
        for recall in memory.recalls.each():
            assert (recall.surface, recall.session) == ("chat", "talk")
            assert [one.path for one in recall.given] == [f"entries/{stored}"]
        assert len(list(memory.recalls.each())) == 2
        memory.forget(stored)
        assert list(memory.recalls.each()) == []
        assert files_with(tmp_path, "471147") == []
        box.close()


def test_the_limits_of_what_comes_by_itself_are_those_of_the_settings(tmp_path):
    with memory_with(
        tmp_path, enabled=True, recallMaxResults=1, recallMinScore=0, captureMaxChars=100
    ) as memory:
        box, hooks = tools_within(memory, THE_OWNER)
        for text in ("the gateway runs in the cellar", "the gateway is old and grey"):
            box.call("memory_store", {"text": text})
        assert hooks is not None
        assert hooks._box.recalled_for("gateway").count("the gateway") == 1
        assert hooks._box.capture(["I prefer " + "tea " * 30]) == ()
        box.close()


def test_a_vector_that_another_provider_made_goes_from_the_cache_too(tmp_path):
    with memory_with(tmp_path) as memory:
        entries = entry_memory_of(memory)
        entry = entries.store("the word is zanzibar", scope=PRIVATE).entry
        assert entry is not None
        identity = EmbedderIdentity("openai", "a-model", "an-address", dims=2)
        digest = sha256_text(entry.text)
        with open_cache(memory.index.values.cache) as cache:
            cache.insert(identity, {digest: array("f", [1.0, 0.0])})
            assert cache.lookup(identity, [digest])
        entries.forget([entry.id], scopes=EVERY_SCOPE)
        with open_cache(memory.index.values.cache) as cache:
            assert not cache.lookup(identity, [digest])
        entries.close()
    assert files_with(tmp_path, "zanzibar") == []


def test_without_lancedb_it_is_said_what_to_do_before_anything_is_begun(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "lancedb" else found(name))
    with memory_with(tmp_path, driver="lancedb", enabled=True) as memory:
        with pytest.raises(ConfigError, match="LanceDB") as refused:
            entry_memory_of(memory)
        assert "entries.driver sqlite" in (refused.value.hint or "")
        with pytest.raises(ConfigError):
            open_conversation(memory, is_new=True)
        assert memory.sessions.list() == []


@pytest.mark.parametrize("name", ["enabled", "autoCapture", "autoRecall", "path", "driver"])
def test_a_project_file_can_neither_switch_entries_on_nor_have_anything_captured(tmp_path, name):
    value = {"path": "'/tmp/x'", "driver": "'sqlite'"}.get(name, "true")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / ".plainmind.json5").write_text(f"{{entries: {{{name}: {value}}}}}")
    with pytest.raises(ConfigError, match="a project file may not set"):
        memory_with(tmp_path)


@pytest.fixture
def provider():
    with serving(Provider("openai")) as served:
        yield served


def remote_memory(tmp_path, provider, *, sends=False):
    (tmp_path / "notes").mkdir(exist_ok=True)
    remote = {"baseUrl": provider.base_url, "apiKey": KEY, "sendSessions": sends, "queryTimeoutMs": 60_000}
    config = {
        "entries": {"enabled": True, "driver": "sqlite"},
        "provider": "openai",
        "model": "m",
        "remote": remote,
    }
    return Memory(tmp_path / "notes", home=tmp_path / "home", config=config)


def test_a_remote_provider_gives_entries_similarity_and_its_vectors_go_with_them(tmp_path, provider):
    with remote_memory(tmp_path, provider) as memory:
        entries = entry_memory_of(memory)
        entry = entries.store("the gateway runs on a Mac Studio", scope=PRIVATE).entry
        assert entry is not None
        (found,) = entries.recall("the gateway runs on what", scopes=EVERY_SCOPE).found
        assert found.similarity > 0.5
        entries.forget([entry.id], scopes=EVERY_SCOPE)
        entries.close()
        with open_cache(memory.index.values.cache) as cache:
            assert [held for held in cache.contents() if held.entries] == []


@pytest.mark.parametrize("sends", [False, True])
def test_what_people_say_is_sent_to_a_provider_only_when_that_is_allowed(tmp_path, provider, sends):
    with remote_memory(tmp_path, provider, sends=sends) as memory:
        box, hooks = tools_within(memory, THE_OWNER)
        box.call("memory_store", {"text": "the gateway runs on a Mac Studio"})
        assert hooks is not None
        assert "Mac Studio" in hooks._box.recalled_for("the gateway runs where in zanzibar? on a Mac Studio?")
        box.close()
    assert any("zanzibar" in text for text in provider.texts) is sends


@pytest.mark.parametrize("hides", [True, False])
def test_an_entry_is_recalled_with_marks_for_its_secrets_and_stored_again_with_the_secrets(tmp_path, hides):
    secret = "kX9!mQ2#vT"
    (tmp_path / "notes").mkdir()
    config = {"entries": {"driver": "sqlite", "enabled": True}, "redaction": {"notes": hides}}
    with Memory(tmp_path / "notes", home=tmp_path / "home", config=config) as memory:
        box, hooks = tools_within(memory, THE_OWNER)
        box.call("memory_store", {"text": f"The admin password of the router is {secret} since May."})
        recalled = box.call("memory_recall", {"query": "router in May"})
        shown = recalled.content["entries"][0]
        forgetting = box.call("memory_forget", {"what": shown["id"]})
        by_itself = hooks._box.recalled_for("when was the router set up?")
        told = recalled.text + str(recalled.content) + forgetting.text + str(forgetting.content) + by_itself
        box.call(
            "memory_store",
            {"text": shown["text"].replace("May", "June"), "replaces": shown["id"], "anyway": True},
        )
        box.close()
        entries = entry_memory_of(memory)
        kept = [entry.text for entry in entries.list(scopes=EVERY_SCOPE)]
        entries.close()

    assert (secret in told) is not hides
    assert ("[redacted:password#" in told) is hides
    assert kept == [f"The admin password of the router is {secret} since June."]


def test_an_entry_that_is_deleted_by_hand_leaves_the_index_with_the_next_question(tmp_path):
    with memory_with(tmp_path) as memory:
        entries = entry_memory_of(memory)
        entries.store("the zephyrkumquat gateway runs in the cellar", scope=PRIVATE)
        entries.store("my sister lives in the old town", scope=PRIVATE)
        entries.close()
    (kept,) = (tmp_path / "home").rglob("entries.jsonl")
    kept.write_text("".join(line for line in kept.read_text().splitlines(True) if "zephyr" not in line))
    assert files_with(tmp_path / "home", "zephyrkumquat")

    with memory_with(tmp_path) as memory:
        entries = entry_memory_of(memory)
        found = entries.recall("town", scopes=EVERY_SCOPE, limit=3, min_score=0).found
        entries.close()

    assert [each.entry.text for each in found] == ["my sister lives in the old town"]
    assert not files_with(tmp_path / "home", "zephyrkumquat")


@pytest.mark.parametrize("created", [10**30, 2**63, -5, 1e300, "yesterday", None])
def test_an_entry_of_any_time_is_recalled(tmp_path, created):
    with memory_with(tmp_path) as memory:
        entries = entry_memory_of(memory)
        entries.store("my sister lives in the old town", scope=PRIVATE)
        entries.close()
    (kept,) = (tmp_path / "home").rglob("entries.jsonl")
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "createdAt": created}) + "\n")

    with memory_with(tmp_path) as memory:
        entries = entry_memory_of(memory)
        (found,) = entries.recall("town", scopes=EVERY_SCOPE, limit=3, min_score=0).found
        entries.close()

    assert (found.entry.created_at, found.entry.day) == (0, "1970-01-01")
