"""Exports of ChatGPT and Claude are known as such, and what is none of the kind says why nothing was taken."""

from __future__ import annotations

import json
import zipfile

import pytest

from plainmind.guests.importers.commands import summary
from plainmind.memory.memory import Memory


def node(name, role, text, parent):
    message = {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}}
    return {"id": name, "message": message, "parent": parent}


CHATGPT = [
    {
        "title": "The hull",
        "create_time": 1760000000.0,
        "conversation_id": "c-1",
        "current_node": "b",
        "mapping": {"a": node("a", "user", "Which wood?", None), "b": node("b", "assistant", "Larch.", "a")},
    }
]
CLAUDE = [
    {
        "uuid": "u-1",
        "name": "The keel",
        "created_at": "2026-02-10T09:00:00Z",
        "chat_messages": [
            {"uuid": "m-1", "sender": "human", "text": "Which keel?"},
            {"uuid": "m-2", "sender": "assistant", "content": [{"type": "text", "text": "A long one."}]},
        ],
    }
]


@pytest.fixture
def memory(tmp_path):
    (tmp_path / "notes").mkdir()
    with Memory(tmp_path / "notes", home=tmp_path / "home") as made:
        yield made


def put(tmp_path, name, document):
    path = tmp_path / "export" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize(("document", "who"), [(CHATGPT, "ChatGPT"), (CLAUDE, "Claude")])
def test_an_export_is_known_as_such(memory, tmp_path, document, who):
    report = memory.import_sessions("messages", put(tmp_path, "conversations.json", document))

    assert summary(report) == f"imported 1 new session of {who}: 2 messages"
    assert memory.sessions.list()[0].entry["exportedBy"] == who


@pytest.mark.parametrize(("document", "who"), [(CHATGPT, "ChatGPT"), (CLAUDE, "Claude")])
def test_the_archive_that_is_sent_need_not_be_unpacked(memory, tmp_path, document, who):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user.json", '{"id": "x"}')
        archive.writestr("data/conversations.json", json.dumps(document))

    assert summary(memory.import_sessions("messages", path)) == f"imported 1 new session of {who}: 2 messages"
    assert memory.import_sessions("messages", path).unchanged == 1


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "it is an empty list"),
        ({"user": "x", "email": "y"}, "it is an object with `user`, `email`, and no list of messages"),
        ("42", "it is a number"),
        (
            [{"text": "hello"}, {"text": "there"}],
            "none of its 2 items says who speaks: no `role`, `sender` or `author`",
        ),
        ([{"role": "user", "content": ""}], "its only item says nothing"),
        ([{"title": "x", "mapping": {}}], "its only conversation has no messages"),
        ({"messages": []}, "its only conversation has no messages"),
    ],
)
def test_a_file_of_which_nothing_was_taken_says_why(memory, tmp_path, document, reason):
    report = memory.import_sessions("messages", put(tmp_path, "x.json", document))

    assert [(empty.path.endswith("x.json"), empty.reason) for empty in report.empty] == [(True, reason)]
    assert summary(report) == "nothing was imported"


def test_pages_beside_an_export_are_passed_over_in_silence(memory, tmp_path):
    put(tmp_path, "user.json", {"id": "x"})
    put(tmp_path, "message_feedback.json", [])
    put(tmp_path, "projects.json", [{"uuid": "x", "name": "y"}])
    put(tmp_path, "conversations.json", CHATGPT)

    report = memory.import_sessions("messages", tmp_path / "export")

    assert (len(report.imported), report.empty, report.failed) == (1, (), ())
