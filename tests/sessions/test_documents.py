"""Documents: whatever was said in one format is said in the other, and back again without a difference."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.sessions.entries import line_of
from plainmind.sessions.store import SessionStore
from plainmind.sessions.transcript_files import document_of, entries_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        "type", "id", "parentId", "timestamp", "message", "role", "content", "summary", "position", "entry",
        "compactedAt", "firstKeptEntryId", "usage", "document", "header", "x",
    ]
)  # fmt: skip
STAMPS = st.sampled_from(
    ["2026-02-10T09:30:00.250Z", "2026-02-10T09:30:00Z", "2026-02-10T10:30:00+01:00", 5, None]
)
MESSAGES = st.dictionaries(NAMES, JSON, max_size=4)
ENTRIES = st.builds(
    lambda kind, name, parent, stamp, message, rest: {
        **rest,
        "type": kind,
        "id": name,
        "parentId": parent,
        "timestamp": stamp,
        "message": message,
    },
    st.sampled_from(["message", "compaction", "custom", "leaf", "reset", "of_tomorrow"]),
    st.sampled_from(["a", "b", "c", "m1"]),
    st.sampled_from([None, "a", "b", "c"]),
    STAMPS,
    MESSAGES,
    st.dictionaries(NAMES, JSON, max_size=3),
) | st.dictionaries(NAMES, JSON, max_size=5)
HEADERS = st.dictionaries(NAMES | st.just("version"), JSON, max_size=4).map(
    lambda found: found | {"type": "session"}
)


def through_json(document: object) -> object:
    return json.loads(json.dumps(document))


@given(HEADERS, st.lists(ENTRIES, max_size=8))
def test_a_transcript_survives_being_a_document(
    header: dict[str, object], entries: list[dict[str, object]]
) -> None:
    document = through_json(document_of(header, entries, updated_ms=1))

    assert isinstance(document, dict)
    assert entries_of(document) == (header, entries)


ITEMS = st.lists(st.dictionaries(NAMES, JSON, max_size=4) | JSON, max_size=4)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "sessionId": JSON,
        "version": st.sampled_from([1, 2, 3, "x"]),
        "createdAt": st.sampled_from([1_770_715_800_250, None, "x", -1, 10**30, 1.5]),
        "messages": ITEMS | JSON,
        "compactedHistory": ITEMS | JSON,
        "events": ITEMS | JSON,
        "header": JSON,
        "theirs": JSON,
    },
)


@given(DOCUMENTS)
def test_a_foreign_document_is_read_whole_and_settles_after_one_writing(document: dict[str, object]) -> None:
    header, entries = entries_of(document)
    written = through_json(document_of(header, entries, updated_ms=1))

    assert isinstance(written, dict)
    assert entries_of(written) == (header, entries)
    lists = [document.get(name) for name in ("messages", "compactedHistory", "events")]
    assert len(entries) == sum(len(found) for found in lists if isinstance(found, list))
    if "theirs" in document and not (isinstance(document.get("header"), dict)):
        assert written["theirs"] == document["theirs"]


def test_plain_talk_is_written_plainly() -> None:
    header = {"type": "session", "version": 3, "id": "one", "timestamp": "2026-02-10T09:30:00.000Z"}
    entry = {
        "type": "message",
        "id": "a",
        "parentId": None,
        "timestamp": "2026-02-10T09:30:00.250Z",
        "message": {"role": "user", "content": "hello"},
    }
    assert document_of(header, [entry], updated_ms=7) == {
        "sessionId": "one",
        "version": 2,
        "createdAt": 1_770_715_800_000,
        "updatedAt": 7,
        "messages": [{"id": "a", "role": "user", "content": "hello", "timestamp": 1_770_715_800_250}],
        "compactedHistory": [],
    }


FOREIGN = """
{
  // Metadata
  sessionId: 'b0c1', version: 2, createdAt: 1704067200000, mood: "fine",
  messages: [
    { role: "user", content: "how do I start?", timestamp: 1704067200000, },
    { role: "assistant", content: "like this", usage: { inputTokens: 120, outputTokens: 350 },
      toolCalls: [{ id: "call_1", name: "read", arguments: { path: "a.ts" } }] },
    { role: "tool", toolCallId: "call_1", name: "read", content: "text" },
  ],
  compactedHistory: [
    { role: "system", content: "they had greeted each other", compactedAt: 1704069000000, originalMessageCount: 24 },
  ],
}
"""


def foreign(folder: Path) -> SessionStore:
    (folder / "chats").mkdir()
    (folder / "chats/b0c1.json5").write_text(FOREIGN)
    (folder / "registry.json5").write_text("{main: {sessionId: 'b0c1', sessionFile: 'chats/b0c1.json5'}}")
    return SessionStore(folder)


def test_a_document_of_another_program_is_read_and_gone_on_with(tmp_path: Path) -> None:
    session = foreign(tmp_path).open("main")

    assert [message["role"] for message in session.messages()] == ["user", "assistant", "tool"]
    assert session.context().summary == "they had greeted each other"
    assert len(session.context().messages) == 3
    session.append({"role": "user", "content": "thanks"})

    written = json.loads(Path(session.path).read_text())
    assert written["mood"] == "fine"
    assert written["messages"][1]["toolCalls"][0]["id"] == "call_1"
    assert written["messages"][3]["content"] == "thanks"
    assert written["compactedHistory"][0]["originalMessageCount"] == 24
    assert "// Metadata" in Path(f"{session.path}.bak").read_text()
    assert session.context().summary == "they had greeted each other"


def test_converting_there_and_back_changes_no_entry(tmp_path: Path) -> None:
    store = foreign(tmp_path)
    before = list(store.open("main").entries())
    assert store.convert("jsonl") == 1
    assert list(store.open("main").entries()) == before
    assert store.open("main").path == str(tmp_path / "b0c1.jsonl")
    assert not (tmp_path / "registry.json5").exists()
    assert not (tmp_path / "chats/b0c1.json5").exists()
    assert store.convert("jsonl") == 0
    assert store.convert("json5") == 1
    assert list(store.open("main").entries()) == before
    assert (tmp_path / "registry.json5").exists()


def test_every_line_type_survives_both_conversions(tmp_path: Path) -> None:
    lines = [
        {"type": "session", "version": 3, "id": "one", "timestamp": "2026-02-10T09:30:00.000Z", "cwd": "/work"},
        {"type": "model_change", "id": "a", "parentId": None, "timestamp": "2026-02-10T09:30:00.000Z", "modelId": "m"},
        {"type": "message", "id": "b", "parentId": "a", "timestamp": "2026-02-10T09:30:01.000Z",
         "message": {"role": "assistant", "content": [{"type": "text", "text": "x"}], "timestamp": 1, "api": "y"}},
        {"type": "compaction", "id": "c", "parentId": "b", "timestamp": "2026-02-10T09:30:02.000Z", "summary": "s",
         "firstKeptEntryId": "b", "tokensBefore": 5, "details": {"files": []}, "fromHook": False},
        {"type": "branch_summary", "id": "d", "parentId": "b", "timestamp": "t", "fromId": "c", "summary": "s"},
        {"type": "label", "id": "e", "parentId": "d", "timestamp": "t", "targetId": "b", "label": None},
        {"type": "leaf", "id": "f", "parentId": "e", "timestamp": "t", "targetId": "b"},
        {"type": "message", "message": {"role": "user", "content": "of version 1"}},
    ]  # fmt: skip
    data = b"".join(line_of(line) for line in lines)
    (tmp_path / "one.jsonl").write_bytes(data)
    (tmp_path / "sessions.json").write_text('{"k": {"sessionId": "one"}}')
    store = SessionStore(tmp_path)
    store.convert("json5", "k")
    assert store.open("k").format == "json5"
    store.convert("jsonl", "k")

    assert [json.loads(line) for line in (tmp_path / "one.jsonl").read_bytes().splitlines()] == lines


def test_what_cannot_be_read_is_kept_beside_the_converted_file(tmp_path: Path) -> None:
    good = line_of({"type": "message", "id": "a", "message": {"role": "user", "content": "x"}})
    (tmp_path / "one.jsonl").write_bytes(good + b'{"torn in the mid\n' + good.replace(b'"a"', b'"b"'))
    store = SessionStore(tmp_path)
    store.convert("json5")

    assert [entry["id"] for entry in store.open("one").entries()] == ["a", "b"]
    (beside,) = (tmp_path / "chats").glob("*.damaged-*")
    assert beside.read_bytes() == b'{"torn in the mid\n'


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_whoever_adds_during_a_conversion_loses_nothing(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    session = store.create("k")
    stopping = threading.Event()
    texts: list[str] = []

    def write() -> None:
        while not stopping.is_set():
            text = f"message {len(texts)}"
            session.append({"role": "user", "content": text})
            texts.append(text)
            # A lock is for whoever asks next, and on a busy machine that would always be this thread.
            time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    for round_number in range(8):
        SessionStore(tmp_path).convert(["json5", "jsonl"][round_number % 2], "k")
        while len(texts) < 2 * round_number and writer.is_alive():
            time.sleep(0.001)
    stopping.set()
    writer.join()

    assert [message["content"] for message in store.open("k").messages()] == texts
    assert len(texts) >= 14


def test_counters_survive_a_conversion(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    answer = {"role": "assistant", "content": "x", "usage": {"input": 10, "output": 1}}
    session = store.create("k")
    for wanted in ("json5", "jsonl", "json5"):
        session.append(answer)
        store.convert(wanted)
        session.append(answer)
    assert session.entry()["inputTokens"] == 60
    assert [message["content"] for message in session.messages()] == ["x"] * 6


def test_a_document_that_grew_too_large_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plainmind.base.errors import PlainmindError
    from plainmind.sessions import transcript_files

    monkeypatch.setattr(transcript_files, "MAX_DOCUMENT_BYTES", 2_000)
    session = SessionStore(tmp_path, format="json5").create("k")
    session.append({"role": "user", "content": "short"})
    with pytest.raises(PlainmindError, match="too large") as caught:
        session.append({"role": "user", "content": "x" * 2_000})
    assert "jsonl" in str(caught.value.hint)
    assert len(list(session.entries())) == 1
    with open(session.path, "a", encoding="utf-8") as file:
        file.write(" " * 2_000)
    with pytest.raises(PlainmindError, match="too large"):
        list(session.entries())
    assert os.path.exists(session.path)
