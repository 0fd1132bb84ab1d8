"""Who may see a conversation, as the registry tells."""

import json
import os
from threading import Thread

import pytest

from plainmind.base.model import PRIVATE
from plainmind.memory.sessions import SessionScopes
from plainmind.sessions.store import SessionStore


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "sessions"


def register(folder, sessions, name="sessions.json"):
    folder.mkdir(exist_ok=True)
    text = sessions if isinstance(sessions, str) else json.dumps(sessions)
    (folder / "new").write_text(text)
    os.replace(folder / "new", folder / name)


def test_a_transcript_belongs_to_those_whose_conversation_it_is(folder):
    store = SessionStore(str(folder))
    for number, key in enumerate(
        ("agent:main:main", "agent:main:telegram:group:-100:topic:7", "agent:main:dm:anna"), 1
    ):
        store.create(key, id=f"s{number}")
    store.create("agent:main:x", id="s4", chatType="group", groupId="7")
    scopes = SessionScopes(str(folder))

    assert [scopes(f"sessions/s{number}.jsonl") for number in (1, 2, 3, 4, 5)] == [
        PRIVATE,
        "telegram/group:-100",
        "person:anna",
        "group:7",
        PRIVATE,
    ]


def test_documents_in_folders_are_known_too(folder):
    store = SessionStore(str(folder), format="json5")
    session = store.create("agent:main:x:group:7", groupId="7")

    cited = "sessions/" + os.path.relpath(store.entry(session.key)["sessionFile"], ".")
    assert SessionScopes(str(folder))(cited) == "x/group:7"


def test_a_change_of_the_registry_is_seen_at_once(folder):
    scopes = SessionScopes(str(folder))
    assert scopes("sessions/a.jsonl") == PRIVATE

    register(folder, {"k": {"sessionId": "a", "groupId": "7"}})
    assert scopes("sessions/a.jsonl") == "group:7"
    register(folder, {"k": {"sessionId": "a", "groupId": "8"}})
    assert scopes("sessions/a.jsonl") == "group:8"
    (folder / "sessions.json").unlink()
    assert scopes("sessions/a.jsonl") == PRIVATE


def test_the_registry_is_read_again_only_when_it_has_changed(folder, monkeypatch):
    register(folder, {"k": {"sessionId": "a", "groupId": "7"}})
    scopes = SessionScopes(str(folder))
    scopes("sessions/a.jsonl")
    monkeypatch.setattr(
        "plainmind.sessions.transcript_files.read_object", lambda _: pytest.fail("read again")
    )

    assert scopes("sessions/a.jsonl") == "group:7"


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"k": 7}', '{"k": {"sessionId": ["a"]}}', "\x00"])
def test_while_the_registry_cannot_be_read_everything_is_private(folder, damage):
    register(folder, {"k": {"sessionId": "a", "groupId": "7"}})
    scopes = SessionScopes(str(folder))
    register(folder, damage)

    assert scopes("sessions/a.jsonl") == PRIVATE
    assert (folder / "sessions.json").read_text() == damage  # whoever only asks repairs nothing


def test_a_transcript_that_two_conversations_claim_is_private(folder):
    register(
        folder,
        {
            "k": {"sessionId": "a", "groupId": "7"},
            "l": {"sessionId": "b", "sessionFile": "a.jsonl", "groupId": "8"},
        },
    )

    assert SessionScopes(str(folder))("sessions/a.jsonl") == PRIVATE


def test_an_entry_that_leads_out_of_the_folder_opens_nothing(folder):
    register(folder, {"k": {"sessionId": "a", "sessionFile": "../other/sessions/x.jsonl", "groupId": "7"}})

    assert SessionScopes(str(folder))("sessions/../other/sessions/x.jsonl") == PRIVATE


def test_readers_on_many_threads_never_see_half_of_it(folder):
    scopes = SessionScopes(str(folder))
    register(folder, {f"k{n}": {"sessionId": f"s{n}", "groupId": "a"} for n in range(50)})
    wrong, done = [], []

    def read():
        while not done:
            wrong.extend({scopes(f"sessions/s{n}.jsonl") for n in range(50)} - {"group:a", "group:b"})

    threads = [Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(40):
        register(folder, {f"k{n}": {"sessionId": f"s{n}", "groupId": "ab"[turn % 2]} for n in range(50)})
    done.append(True)
    for thread in threads:
        thread.join()

    assert wrong == []
