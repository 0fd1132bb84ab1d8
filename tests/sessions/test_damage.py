"""Damaged transcripts and registries: what can be read is read, what cannot is counted and kept, nothing is wiped."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.faulty_system import FaultySystem

from plainmind.files import group_append
from plainmind.sessions.entries import line_of
from plainmind.sessions.store import Session, SessionStore
from plainmind.sessions.transcript_files import JsonlTranscript

HEADER = line_of({"type": "session", "version": 3, "id": "one", "timestamp": "2026-02-10T09:30:00.000Z"})


def line(name: str, parent: str | None) -> bytes:
    return line_of(
        {"type": "message", "id": name, "parentId": parent, "message": {"role": "user", "content": name}}
    )


GOOD = [line("a", None), line("b", "a"), line("c", "b"), line("d", "c")]


def opened(folder: Path, data: bytes) -> Session:
    (folder / "one.jsonl").write_bytes(data)
    (folder / "sessions.json").write_text('{"k": {"sessionId": "one"}}')
    return SessionStore(folder).open("k")


def contents(session: Session) -> list[object]:
    return [message["content"] for message in session.messages()]


def given_to_a_model(session: Session) -> list[object]:
    return [message["content"] for message in session.context().messages]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b'{"type":"message","id":"x","mess\n', id="torn"),
        pytest.param(b"\0" * 5000 + b"\n", id="NUL block"),
        pytest.param(b"\xff\xfe\xfd\n", id="no UTF-8"),
        pytest.param(b"[1, 2, 3]\n", id="no object"),
        pytest.param(b"\x01\x02{}\x03\n", id="control characters"),
        pytest.param(b"<html>\n", id="another language"),
    ],
)
@pytest.mark.parametrize("place", range(5))
def test_a_damaged_line_anywhere_costs_only_itself(tmp_path: Path, damage: bytes, place: int) -> None:
    lines = [HEADER, *GOOD]
    lines.insert(place, damage)
    session = opened(tmp_path, b"".join(lines))

    assert contents(session) == ["a", "b", "c", "d"]
    assert given_to_a_model(session) == ["a", "b", "c", "d"]
    assert session.check().damaged == (place + 1,)
    session.append({"role": "user", "content": "e"})
    assert given_to_a_model(session) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("lost", range(5))
def test_a_line_that_became_unreadable_does_not_take_those_before_it_along(tmp_path: Path, lost: int) -> None:
    lines = [HEADER, *GOOD]
    lines[lost] = b"\0" * len(lines[lost][:-1]) + b"\n"
    session = opened(tmp_path, b"".join(lines))

    rest = [name for name in "abcd" if name != " abcd"[lost]]
    assert contents(session) == rest
    assert given_to_a_model(session) == rest


def test_a_line_that_was_deleted_by_hand_does_not_take_those_before_it_along(tmp_path: Path) -> None:
    session = opened(tmp_path, HEADER + GOOD[0] + GOOD[2] + GOOD[3])
    assert given_to_a_model(session) == ["a", "c", "d"]


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_byte_order_marks_and_carriage_returns_are_no_damage(
    tmp_path: Path, mark: bytes, newline: bytes
) -> None:
    session = opened(tmp_path, mark + b"".join([HEADER, *GOOD]).replace(b"\n", newline))

    assert contents(session) == ["a", "b", "c", "d"]
    assert session.check().damaged == ()
    assert session.transcript.header()["id"] == "one"


def test_a_torn_tail_is_put_aside_by_the_next_append(tmp_path: Path) -> None:
    torn = b'{"type":"message","id":"e","message":{"role":"user","content":"never ackn'
    session = opened(tmp_path, HEADER + b"".join(GOOD) + torn)
    assert contents(session) == ["a", "b", "c", "d"]
    assert session.check().damaged == ()
    session.append({"role": "user", "content": "e"})

    assert contents(session) == ["a", "b", "c", "d", "e"]
    assert [path.read_bytes() for path in tmp_path.glob("*.torn-*")] == [torn]
    assert all(json.loads(each) for each in Path(session.path).read_bytes().splitlines())


def test_a_last_line_that_lacks_only_its_newline_counts(tmp_path: Path) -> None:
    session = opened(tmp_path, HEADER + b"".join(GOOD)[:-1])
    assert contents(session) == ["a", "b", "c", "d"]
    session.append({"role": "user", "content": "e"})

    assert given_to_a_model(session) == ["a", "b", "c", "d", "e"]
    assert list(tmp_path.glob("*.torn-*")) == []


@pytest.mark.parametrize("data", [b"", b"\n", b"\0" * 100, b"garbage"])
def test_a_transcript_without_anything_readable_can_be_gone_on_with(tmp_path: Path, data: bytes) -> None:
    session = opened(tmp_path, data)
    session.append({"role": "user", "content": "a"})
    assert contents(session) == ["a"]


LINES = st.lists(
    st.sampled_from(
        [
            *GOOD,
            HEADER,
            b"\n",
            b"\0\0",
            b"\r\n",
            b'{"type":"leaf","id":"l","targetId":"a"}\n',
            b'{"type":"leaf","id":"l","targetId":7}\n',
            b'{"type":"compaction","id":"x","parentId":"b","summary":"s","firstKeptEntryId":"b"}\n',
            b'{"type":"compaction","id":"y","parentId":5,"firstKeptEntryIndex":2}\n',
            b'{"type":"reset","id":"r","parentId":"r"}\n',
            b'{"type":"message","id":"m","parentId":"z","message":7}\n',
            b'{"type":"message","message":{"role":"user","content":"no id"}}\n',
        ]
    )
    | st.binary(max_size=30),
    max_size=12,
).map(b"".join)


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_append, "_PATIENCE_S", 0)


@pytest.mark.usefixtures("no_patience")
@given(data=LINES)
@settings(max_examples=examples(400), deadline=None)
def test_no_transcript_makes_the_reader_raise_or_lose_a_good_line(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(data)
    transcript = JsonlTranscript(str(path), state_dir=str(path.parent), system=FaultySystem())
    session = Session(SessionStore(path.parent), None, "any", transcript)

    found = [placed.entry for placed in transcript.entries() if placed.entry is not None]
    backwards = [placed.entry for placed in transcript.backwards() if placed.entry is not None]
    assert found == backwards[::-1]
    for each in data.split(b"\n"):
        try:
            entry = json.loads(each)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("type") != "session":
            assert entry in found
    session.context()
    session.tail(3)
    transcript.header()
    session.append({"role": "user", "content": "the end"})
    assert session.tail(1)[0]["message"]["content"] == "the end"
    assert session.context().messages[-1]["content"] == "the end"


@pytest.mark.parametrize("cut", [0, 5, 200, -10, -2])
def test_what_is_whole_in_a_damaged_document_is_saved(tmp_path: Path, cut: int) -> None:
    store = SessionStore(tmp_path, format="json5")
    session = store.create("k")
    for text in ("one", "two", "three"):
        session.append({"role": "user", "content": text})
    path = Path(session.path)
    whole = path.read_bytes()
    damaged = whole[:cut]
    path.write_bytes(damaged)

    texts = ["one", "two", "three"][: damaged.count(b'"timestamp": 1')]
    assert contents(session) == texts
    session.append({"role": "user", "content": "four"})
    assert contents(store.open("k")) == [*texts, "four"]
    assert [each.read_bytes() for each in path.parent.glob("*.corrupt-*")] == [damaged]


def filled(tmp_path: Path, written_as: str) -> tuple[SessionStore, Path]:
    store = SessionStore(tmp_path, format=written_as)
    for key in ("a", "b", "c"):
        session = store.create(f"agent:main:{key}", label=f"the label of {key}")
        session.append({"role": "user", "content": key})
    return store, tmp_path / ("sessions.json" if written_as == "jsonl" else "registry.json5")


@pytest.mark.parametrize("damage", [b"", b"\0" * 3000, b"{", b"garbage", b"[]", b"null", b"\xff\xfe"])
def test_a_damaged_registry_is_rebuilt_and_kept_aside(
    tmp_path: Path, written_as: str, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    _, registry = filled(tmp_path, written_as)
    registry.write_bytes(damage)

    fresh = SessionStore(tmp_path)
    assert sorted(row.key for row in fresh.list()) == ["agent:main:a", "agent:main:b", "agent:main:c"]
    assert contents(fresh.open("agent:main:b")) == ["b"]
    assert [path.read_bytes() for path in tmp_path.glob("*.corrupt-*")] == [damage]
    assert "rebuilt with 3 sessions" in caplog.text
    assert fresh.open("agent:main:a").entry()["label"] == "the label of a"  # the last copy knows it
    assert len(SessionStore(tmp_path).list()) == 3
    assert len(caplog.records) == 1


def test_entries_that_are_whole_in_a_torn_registry_are_kept(tmp_path: Path, written_as: str) -> None:
    store, registry = filled(tmp_path, written_as)
    store.update("agent:main:a", label="the newest label")
    for copy in tmp_path.glob("*.bak"):
        copy.unlink()
    data = registry.read_bytes()
    registry.write_bytes(data[: data.index(b"the label of b")])

    fresh = SessionStore(tmp_path)
    rows = {row.key: row.entry for row in fresh.list()}
    assert rows["agent:main:a"]["label"] == "the newest label"
    assert set(rows) == {"agent:main:a", "agent:main:b", "agent:main:c"}
    assert "label" not in rows["agent:main:b"]


def test_a_registry_that_was_lost_is_read_off_the_transcripts(tmp_path: Path, written_as: str) -> None:
    _, registry = filled(tmp_path, written_as)
    registry.unlink()
    fresh = SessionStore(tmp_path, format=written_as)

    assert sorted(row.key for row in fresh.list()) == ["agent:main:a", "agent:main:b", "agent:main:c"]
    fresh.update("agent:main:a", label="x")
    assert len(json.loads(registry.read_text())) == 3


@pytest.mark.parametrize("written_as", ["jsonl", "json5"])
def test_a_session_that_is_read_off_its_transcript_is_counted_and_keeps_its_audience(
    tmp_path: Path, written_as: str
) -> None:
    store = SessionStore(tmp_path, format=written_as)
    with store.create("room-7", chatType="group", groupId="7", channel="irc") as session:
        session.append({"role": "assistant", "content": "x", "usage": {"input": 10, "output": 1}})
        session.compact("in short", tokens_after=3)
    for registry in (*tmp_path.glob("sessions.json*"), *tmp_path.glob("registry.json5*")):
        registry.unlink()

    entry = SessionStore(tmp_path, format=written_as).open_or_create("room-7").entry()

    assert (entry["chatType"], entry["groupId"], entry["channel"]) == ("group", "7", "irc")
    assert (entry["inputTokens"], entry["totalTokens"], entry["compactionCount"]) == (10, 3, 1)


def test_an_archived_or_deleted_session_does_not_come_back_with_a_rebuilt_registry(tmp_path: Path) -> None:
    store, registry = filled(tmp_path, "jsonl")
    store.archive("agent:main:a")
    store.delete("agent:main:b")
    registry.write_bytes(b"")

    assert [row.key for row in SessionStore(tmp_path).list()] == ["agent:main:c"]


def test_a_folder_of_bare_transcripts_is_a_store(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_bytes(HEADER + b"".join(GOOD))
    (tmp_path / "two.jsonl").write_bytes(
        b'{"type":"message","message":{"role":"user","content":"no header"}}\n'
    )
    os.symlink("/etc/passwd", tmp_path / "three.jsonl")
    store = SessionStore(tmp_path)

    assert sorted((row.key, row.id) for row in store.list()) == [("one", "one"), ("two", "two")]
    assert contents(store.open("two")) == ["no header"]
    assert not (tmp_path / "sessions.json").exists()


def test_entries_without_ids_of_the_first_version_are_one_line_of_talk(tmp_path: Path) -> None:
    def old(text: str) -> bytes:
        return line_of({"type": "message", "message": {"role": "user", "content": text}})

    compaction = line_of({"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 5})
    header = line_of({"type": "session", "id": "one"})
    session = opened(tmp_path, header + old("a") + old("b") + old("c") + compaction + old("d"))

    assert (session.context().summary, given_to_a_model(session)) == ("s", ["b", "c", "d"])
    session.append({"role": "user", "content": "e"})
    session.append({"role": "user", "content": "f"})
    assert given_to_a_model(session) == ["b", "c", "d", "e", "f"]


def test_a_registry_that_another_program_is_just_writing_over_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SessionStore(tmp_path / "sessions")
    store.create("known", label="kept")
    path = tmp_path / "sessions" / "sessions.json"
    whole = path.read_bytes()
    theirs = json.dumps(json.loads(whole) | {"theirs": {"sessionId": "t"}}).encode()
    path.write_bytes(b"")  # cut, and not written yet
    monkeypatch.setattr("time.sleep", lambda _: path.write_bytes(theirs))

    store.update("known", label="changed")

    assert json.loads(path.read_bytes())["theirs"] == {"sessionId": "t"}
    assert json.loads(path.read_bytes())["known"]["label"] == "changed"
    assert list(path.parent.glob("*.corrupt-*")) == []
