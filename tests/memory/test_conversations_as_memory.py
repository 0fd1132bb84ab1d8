"""What was said is found as soon as it stands in the transcript, shown readably, and gone when it is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from plainmind import Memory


@pytest.fixture
def memory(tmp_path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "MEMORY.md").write_text("The gateway runs on a Mac Studio.\n")
    settings = {"sources": ["memory", "sessions"], "provider": "builtin", "userTimezone": "Europe/Vienna"}
    with Memory(tmp_path / "workspace", home=tmp_path / "home", config=settings) as memory:
        yield memory


def first(memory, question):
    return memory.search(question).hits[0]


def test_a_message_is_found_by_the_search_that_follows_it(memory):
    session = memory.sessions.create("agent:main:main")
    for number in range(6):
        session.append({"role": "user", "content": f"the boat number {number} is called zebra{number}"})

        hit = first(memory, f"zebra{number}")

        assert f"zebra{number}" in hit.snippet
        assert hit.source == "sessions"
        assert hit.start_line <= number + 2 <= hit.end_line


def test_a_hit_leads_to_the_message_with_its_speaker_and_its_time(memory):
    session = memory.sessions.create("agent:main:main")
    session.append({"role": "user", "content": "which wood for the hull?"})
    session.append({"role": "assistant", "content": "Larch,\nbecause it lasts."})

    hit = first(memory, "larch")
    found = memory.get(f"{hit.path}#L{hit.end_line}")

    assert hit.end_line == 3
    assert found.text.startswith("Assistant (2")
    assert found.text.endswith("): Larch,\nbecause it lasts.")
    assert "which wood" in memory.get(hit.path).text


def test_secrets_are_neither_found_nor_shown(memory):
    session = memory.sessions.create("agent:main:main")
    key = "sk-proj-" + "Ab3dEf9hIjK2mN5pQr8tUv1xYz4" * 2
    session.append({"role": "user", "content": f"the hull has a key, {key}, keep it"})

    hit = first(memory, "what has the hull?")

    assert key not in hit.snippet
    assert key not in memory.get(hit.path).text
    assert key.encode() in Path(session.path).read_bytes()


def test_a_deleted_conversation_is_gone_and_an_archived_one_is_not(memory):
    for name in ("kept", "gone"):
        memory.sessions.create(name).append({"role": "user", "content": f"the boat is called zebra{name}"})
    assert "zebragone" in first(memory, "zebragone").snippet
    memory.sessions.archive("kept")
    memory.delete_session("gone")

    assert "zebrakept" in first(memory, "zebrakept").snippet
    assert ".jsonl.reset." in first(memory, "zebrakept").path
    assert all("zebragone" not in hit.snippet for hit in memory.search("zebragone").hits)


def memory_knowing(tmp_path, *secrets, **settings):
    (tmp_path / "workspace").mkdir(exist_ok=True)
    headers = {f"X-{number}": secret for number, secret in enumerate(secrets)}
    config = {
        "sources": ["memory", "sessions"],
        "provider": "builtin",
        "remote": {"headers": headers},
    } | settings
    return Memory(tmp_path / "workspace", home=tmp_path / "home", config=config)


def indexed_hashes(memory):
    with memory.index.store.reading() as reader:
        return {path: state.hash for (source, path), state in reader.files().items() if source == "sessions"}


def indexed_texts(memory):
    with memory.index.store.reading() as reader:
        keys = list(reader.files())
        return " ".join(chunk.text for key in keys for chunk in reader.chunks_between(*key, 0, 1 << 30))


def test_a_secret_that_becomes_known_later_is_in_no_copy_after_the_next_sync(tmp_path):
    with memory_knowing(tmp_path) as memory:
        session = memory.sessions.create("agent:main:main")
        session.append({"role": "user", "content": "the harbour gate opens with Larboard Quokka Nine"})
        memory.sync()
        assert "Quokka" in indexed_texts(memory)
    with memory_knowing(tmp_path, "Larboard Quokka Nine") as memory:
        memory.sync()
        assert "Quokka" not in indexed_texts(memory)
        assert "harbour" in first(memory, "harbour gate").snippet
        before = indexed_hashes(memory)
        assert not memory.sync().indexed
    with memory_knowing(tmp_path) as memory:  # a process for which the variable is not set
        assert not memory.sync().indexed
        memory.sessions.open("agent:main:main").append({"role": "user", "content": "the gate is shut"})
        assert memory.sync().indexed
        assert "Quokka" not in indexed_texts(memory)
        after = indexed_hashes(memory)
    assert [each.partition("@")[2] for each in after.values()] == [
        each.partition("@")[2] for each in before.values()
    ]
    assert not any(
        "Quokka" in path.read_text("utf-8", "replace") for path in (tmp_path / "home").glob("redaction*")
    )


def test_a_secret_that_becomes_known_later_is_hidden_in_answers_at_once(tmp_path):
    with memory_knowing(tmp_path) as memory:
        session = memory.sessions.create("agent:main:main")
        session.append({"role": "user", "content": "the harbour gate opens with Larboard-Quokka-Nine"})
        memory.sync()
    with memory_knowing(tmp_path, "Larboard-Quokka-Nine", sync={"onSearch": False}) as memory:
        snippet = first(memory, "harbour gate").snippet

    assert "gate opens with [redacted:configured#" in snippet
    assert "Quokka" not in snippet
