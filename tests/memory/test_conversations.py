"""Conversations as a part of the memory: kept by agent, imported, deleted from everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from plainmind import Memory
from plainmind.base.model import SearchHit, SearchResult
from plainmind.memory.secrets import (
    known_since,
    redaction_key,
    without_known_secrets,
)
from plainmind.redaction.engine import Redactor

CHAT = {
    "id": "chat-1",
    "messages": [{"role": "user", "content": "The spare key hangs behind the barometer."}],
}


@pytest.fixture
def places(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PLAINMIND_")]:
        monkeypatch.delenv(name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("# Memory\n\n- The printer is on VLAN 40.\n")
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    return tmp_path


def memory_of(places, **config):
    return Memory(places / "notes", home=places / "home", config=config)


def test_sessions_of_an_agent_are_in_a_folder_of_its_own(places):
    with memory_of(places) as memory, memory_of(places, agentId="work") as other:
        assert memory.sessions.folder == str(places / "home" / "agents" / "main" / "sessions")
        assert other.sessions.folder == str(places / "home" / "agents" / "work" / "sessions")
        assert memory.sessions_folder("work") == other.sessions.folder
        assert memory.sessions_folder("../x") == memory.sessions.folder
        assert memory.sessions is memory.sessions


def test_what_was_imported_is_found_beside_the_notes_and_by_source(places):
    with memory_of(places, sources=["memory", "sessions"]) as memory:
        report = memory.import_sessions("messages", places / "chat.json")

        hit = memory.search("where is the spare key?").hits[0]
        assert (hit.source, hit.path) == ("sessions", f"sessions/{report.imported[0].id}.jsonl")
        assert all(
            hit.source == "memory" for hit in memory.search("printer", sources=["memory"], min_score=0).hits
        )


def test_what_was_imported_is_searched_at_once_and_in_every_process(places):
    with memory_of(places) as memory:
        assert memory.sources == ("memory",)
        memory.search("where is the spare key?")
        memory.import_sessions("messages", places / "chat.json")

        assert "sessions" in {hit.source for hit in memory.search("where is the spare key?").hits}
    with memory_of(places) as memory:
        assert memory.sources == ("memory", "sessions")
        assert "sessions" in {hit.source for hit in memory.search("where is the spare key?").hits}


def test_who_has_chosen_the_sources_has_an_import_change_nothing(places):
    with memory_of(places, sources=["memory"]) as memory:
        memory.import_sessions("messages", places / "chat.json")

        assert {hit.source for hit in memory.search("where is the spare key?", min_score=0).hits} <= {
            "memory"
        }
        found = memory.search("where is the spare key?", sources=["sessions"])
        assert [hit.source for hit in found.hits] == ["sessions"]
        assert not found.degraded


def test_what_was_said_here_is_searched_when_it_is_asked_for(places):
    with memory_of(places) as memory:
        memory.sessions.create("agent:main:main").append(
            {"role": "user", "content": "The ferry leaves at seven."}
        )

        assert {hit.source for hit in memory.search("ferry", min_score=0).hits} <= {"memory"}
        assert "seven" in memory.search("when does the ferry leave?", sources=["sessions"]).hits[0].snippet
        checks = {check.name: check.detail for check in memory.doctor(verify=True)}
        assert checks["index equals files"] == "a rebuild gives the same index"


def test_what_tools_gave_is_found_by_its_words_without_its_secrets(places):
    secret = "ghp_" + "aB3" * 12
    with memory_of(places) as memory:
        session = memory.sessions.create("agent:main:main", id="talk-1")
        session.append({"role": "user", "content": "Run it."})
        session.append({"role": "toolResult", "content": f"fine\nERR_LEDGER_SKEW {secret}\nend"})

        (hit,) = memory.search_tool_output("what is ERR_LEDGER_SKEW").hits

        assert (hit.path, hit.start_line) == ("sessions/talk-1.jsonl", 3)
        assert hit.snippet.startswith("ERR_LEDGER_SKEW [redacted:")
        assert not memory.search_tool_output("zeppelin").hits


def test_what_is_added_meanwhile_is_found_by_the_next_search(places):
    with memory_of(places, sources=["memory", "sessions"]) as memory:
        session = memory.sessions.create("agent:main:main")
        session.append({"role": "user", "content": "The ferry leaves at seven."})
        assert "ferry" in memory.search("when does the ferry leave?").hits[0].snippet

        session.append({"role": "user", "content": "The bakery opens at five."})
        assert "bakery" in memory.search("when does the bakery open?").hits[0].snippet


def test_secrets_are_hidden_in_the_index_and_left_in_the_transcript(places):
    secret = "ghp_" + "aB3" * 12
    with memory_of(places, sources=["memory", "sessions"]) as memory:
        session = memory.sessions.create("agent:main:main")
        session.append({"role": "user", "content": f"Deploy the barge with {secret} on Friday."})

        snippet = memory.search("deploy the barge").hits[0].snippet
        assert "[redacted:github#" in snippet
        assert secret not in snippet
    written = [path.read_bytes() for path in (places / "home" / "agents").rglob("*.jsonl")]
    assert any(secret.encode() in content for content in written)


def test_a_private_key_in_a_message_is_hidden_whole(places):
    body = "\n".join("QUJD" * 16 for _ in range(6))
    kind = "RSA PRIVATE KEY"
    with memory_of(places, sources=["memory", "sessions"]) as memory:
        session = memory.sessions.create("agent:main:main")
        text = f"The barge signs with\n-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\nevery night."
        session.append({"role": "user", "content": text})

        snippet = memory.search("what does the barge sign with?").hits[0].snippet
    assert "every night" in snippet
    assert "QUJD" not in snippet


def test_following_gives_a_report_for_each_round(places):
    with memory_of(places) as memory:
        reports = list(memory.follow_sessions("messages", places / "chat.json", wait=lambda _: True))

    assert [report.messages for report in reports] == [1]


def test_deleting_a_session_that_was_never_indexed_is_fine(places):
    with memory_of(places) as memory:
        memory.sessions.create("agent:main:main", id="talk-1")

        assert memory.delete_session("agent:main:main") == ("sessions/talk-1.jsonl",)
        assert memory.sessions.list() == []


def test_secrets_of_the_settings_are_hidden_wherever_they_stand(places, monkeypatch):
    monkeypatch.setenv("MY_KEY", "a-key-like-no-other")
    config = {
        "remote": {"apiKey": "env:MY_KEY", "headers": {"X-Pass": "swordfish-17"}},
        "chat": {"headers": {"X-Token": "pilchard-18"}},
        "provider": "builtin",
    }
    with memory_of(places, **config) as memory:
        assert list(memory._loaded.secrets(memory.environ)) == [
            "a-key-like-no-other",
            "swordfish-17",
            "pilchard-18",
        ]
        hidden = memory.redactor().redact("it is a-key-like-no-other, or swordfish-17").text

    assert "other" not in hidden
    assert "swordfish" not in hidden


KEY = (
    "import sys; from plainmind.memory.secrets import redaction_key; print(redaction_key(sys.argv[1]).hex())"
)


def test_processes_that_make_the_key_at_once_agree_on_one(tmp_path):
    processes = [
        subprocess.Popen([sys.executable, "-c", KEY, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(4)
    ]
    keys = {process.communicate()[0] for process in processes}

    assert len(keys) == 1
    assert os.listdir(tmp_path) == ["redaction.key"]
    assert os.stat(tmp_path / "redaction.key").st_mode & 0o777 == 0o600


def test_a_torn_key_is_made_anew(tmp_path):
    (tmp_path / "redaction.key").write_bytes(b"short")

    assert len(redaction_key(str(tmp_path))) == 32
    assert redaction_key(str(tmp_path)) == redaction_key(str(tmp_path))


def test_it_is_noted_when_the_newest_secret_became_known_and_not_which(tmp_path):
    home = str(tmp_path)
    redactor = Redactor(["swordfish-17"], key=b"k")

    assert known_since(home, [], at_ms=5) == 0
    assert known_since(home, redactor.digests(), at_ms=10) == 10
    assert known_since(home, redactor.digests(), at_ms=99) == 10  # it was known already
    both = Redactor(["swordfish-17", "pilchard-18"], key=b"k").digests()
    assert known_since(home, both, at_ms=7) == 11  # a clock that went back
    assert known_since(home, [], at_ms=50) == 11  # a process that knows none
    assert os.stat(tmp_path / "redaction-secrets.json").st_mode & 0o777 == 0o600
    assert b"sword" not in (tmp_path / "redaction-secrets.json").read_bytes()


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"a": "b"}', b"\xff", b'{"a": 3'])
def test_a_damaged_note_only_makes_all_secrets_new(tmp_path, damage):
    (tmp_path / "redaction-secrets.json").write_bytes(damage)

    assert known_since(str(tmp_path), ["d1"], at_ms=20) == 20
    assert known_since(str(tmp_path), ["d1"], at_ms=30) == 20


def test_two_who_learn_of_secrets_at_once_note_both(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: known_since(str(tmp_path), [f"d{n}"], at_ms=20), range(8)))

    assert len(json.loads((tmp_path / "redaction-secrets.json").read_bytes())) == 8


def test_a_secret_that_became_known_after_indexing_is_hidden_in_hits_of_conversations():
    hits = tuple(SearchHit("a", 1, 1, 1.0, "it is swordfish-17", source) for source in ("sessions", "memory"))
    result = SearchResult("q", hits, "builtin", "m", "hybrid")

    shown = without_known_secrets(result, Redactor(["swordfish-17"], key=b"k")).hits

    assert [("swordfish" in hit.snippet) for hit in shown] == [False, True]
