"""Transcripts that are one document each are found and read like those of lines."""

from __future__ import annotations

import os

import pytest
from tests.support.talk import Talk

from plainmind.base.errors import PathNotAllowed
from plainmind.notes.excerpt import read_excerpt
from plainmind.notes.source import START
from plainmind.notes.workspace import Workspace
from plainmind.sessions import transcripts
from plainmind.sessions.store import SessionStore
from plainmind.sessions.transcript_files import entries_of, read_object, salvage_messages
from plainmind.sessions.transcripts import Transcripts


def documents(data):
    found = read_object(data)
    return entries_of(found if found is not None else {"messages": salvage_messages(data)})[1]


@pytest.fixture
def session(tmp_path):
    store = SessionStore(tmp_path / "sessions", format="json5")
    session = store.create("agent:main:main", id="one")
    session.append({"role": "user", "content": "where is the gateway?"})
    session.append({"role": "toolResult", "content": "a table of servers"})
    session.append({"role": "assistant", "content": "In the cellar."})
    return session


@pytest.fixture
def source(session):
    return Transcripts(os.path.dirname(os.path.dirname(session.path)), documents=documents)


def test_documents_are_listed_only_when_somebody_can_read_them(source, session, tmp_path):
    (tmp_path / "sessions" / "lines.jsonl").write_text("")
    (tmp_path / "sessions" / "chats" / "stray.jsonl").write_text("")

    assert [file.path for file in source.discover().files] == [
        "sessions/lines.jsonl",
        "sessions/chats/one.json5",
    ]
    assert [file.path for file in Transcripts(str(tmp_path / "sessions")).discover().files] == [
        "sessions/lines.jsonl"
    ]


def test_an_entry_of_a_document_counts_as_a_line(source):
    document, _ = source.read(source.locate("sessions/chats/one.json5"))

    assert document.text == "User: where is the gateway?\nAssistant: In the cellar."
    assert document.line_map == (1, 3)


def test_a_document_that_is_known_is_not_read_again(source, session):
    found = source.locate("sessions/chats/one.json5")
    (first,) = source.read_on(found, None, START)
    (again,) = source.read_on(found, first.state, first.end)
    session.append({"role": "user", "content": "thanks"})
    (later,) = source.read_on(found, first.state, first.end)

    assert (again.document.text, again.begin, again.end) == ("", first.end, first.end)
    assert (later.begin, later.document.text.count("\n")) == (START, 2)
    assert source.messages_after(found, first.end) == 1


def test_a_document_is_indexed_like_lines(session, tmp_path):
    talk = Talk(tmp_path, documents=documents)
    talk.sync()
    first = [chunk.text for chunk in talk.chunks("sessions/chats/one.json5")]
    session.append({"role": "user", "content": "thanks"})
    report = talk.sync()

    assert first == ["User: where is the gateway?", "Assistant: In the cellar."]
    assert report.indexed == ("sessions/chats/one.json5",)
    assert [chunk.start_line for chunk in talk.chunks("sessions/chats/one.json5")] == [1, 3, 4]
    assert talk.sync().indexed == ()


def test_a_damaged_document_says_what_can_be_saved(source, session):
    with open(session.path, "r+b") as file:
        file.truncate(os.path.getsize(session.path) - 30)

    document, _ = source.read(source.locate("sessions/chats/one.json5"))

    assert "User: where is the gateway?" in document.text


def test_a_document_is_shown_by_its_entries(source, tmp_path):
    found = read_excerpt(Workspace(str(tmp_path)), "sessions/chats/one.json5#L3", transcripts=source)

    assert found.text.endswith("): In the cellar.")
    assert (found.first_line, found.line_count, found.next_line) == (3, 1, None)


def test_a_document_too_large_to_be_read_whole_says_so(source, monkeypatch):
    monkeypatch.setattr(transcripts, "MAX_DOCUMENT_BYTES", 10)

    with pytest.raises(PathNotAllowed, match="cannot be read whole"):
        source.read(source.locate("sessions/chats/one.json5"))


def test_a_change_in_a_folder_of_documents_is_noticed(source, session):
    source.discover()
    moment = source.discover().moment
    if moment is None:
        pytest.skip("the system does not tell of changes here")
    session.append({"role": "user", "content": "thanks"})

    assert source.changed_since(moment).files == {"sessions/chats/one.json5"}
    source.close()
