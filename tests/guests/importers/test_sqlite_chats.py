"""Conversations of opencode and Cursor, in databases as their programs make them."""

from __future__ import annotations

import json
import os

import apsw
import pytest
from tests.guests.importers.conftest import looks_of

from plainmind import Memory
from plainmind.guests.hosts.turns import Session, Turns
from plainmind.guests.importers import originals

FENCED = "<recalled-memory 0123456789abcdef>\nThe hull is of larch.\n</recalled-memory 0123456789abcdef>"
AT = 1794832543658

OPENCODE_SCHEMA = """
    CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, directory text NOT NULL,
        title text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
    CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
        time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
"""


class OpenCodeFile:
    """A database of opencode."""

    def __init__(self, path):
        path.parent.mkdir(parents=True)
        self.path = path
        self.database = apsw.Connection(str(path))
        self.database.execute("PRAGMA journal_mode = wal")
        self.database.execute(OPENCODE_SCHEMA)
        self.count = 0

    def session(self, name, parent=None):
        row = (name, "global", parent, "/home/ana/boat", "The wood of a boat", AT, AT)
        self.database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def message(self, session, name, role, *parts, done=True):
        self.count += 1
        times = {"created": AT + self.count, **({"completed": AT + self.count} if done else {})}
        data = {"role": role, "time": times, "modelID": "m", "providerID": "played"}
        row = (name, session, AT + self.count, AT + self.count, json.dumps(data))
        self.database.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", row)
        for number, part in enumerate(parts):
            row = (f"{name}.{number}", name, session, AT, AT, json.dumps(part))
            self.database.execute("INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
        self.database.execute("UPDATE session SET time_updated = ? WHERE id = ?", (AT + self.count, session))


def text(said, **more):
    return {"type": "text", "text": said, **more}


@pytest.fixture
def opencode(tmp_path):
    made = OpenCodeFile(tmp_path / "share/opencode/opencode.db")
    made.session("ses_1")
    tool = {"status": "completed", "input": {"path": "."}, "output": "larch.md"}
    made.message("ses_1", "msg_1", "user", text("Which wood?"), text(FENCED, synthetic=True))
    made.message(
        "ses_1",
        "msg_2",
        "assistant",
        {"type": "step-start"},
        {"type": "tool", "tool": "ls", "callID": "c1", "state": tool},
    )
    made.message("ses_1", "msg_3", "assistant", {"type": "reasoning", "text": "it floats"}, text("Larch."))
    return made


def test_sessions_of_opencode_are_read_while_it_runs(here, opencode, tmp_path):
    opencode.session("ses_2", parent="ses_1")
    opencode.message("ses_2", "msg_4", "user", text("Look for oak."))
    opencode.message("ses_2", "msg_5", "assistant", text("There is oak."))
    before = looks_of(tmp_path / "share")

    report = here.take("opencode", tmp_path / "share/opencode")

    assert here.spoken("ses_1") == ["User: Which wood?", "Assistant: Larch."]
    assert here.spoken("ses_2") == ["Assistant: There is oak."]  # an agent has asked, no user
    assert [row.key for row in report.imported] == ["opencode:ses_1", "opencode:ses_2"]
    row = here.store.entry("opencode:ses_1")
    assert (row["cwd"], row["displayName"]) == ("/home/ana/boat", "The wood of a boat")
    ids = [entry["id"] for entry in here.entries("ses_1")]
    assert ids == ["msg_1", "msg_2.call1", "msg_2.answer1", "msg_3.thoughts", "msg_3"]
    assert looks_of(tmp_path / "share") == before


def test_an_answer_of_opencode_that_is_being_written_waits_until_it_is_whole(here, opencode, tmp_path):
    opencode.message("ses_1", "msg_4", "user", text("And the keel?"))
    opencode.message("ses_1", "msg_5", "assistant", text("Oa"), done=False)
    here.take("opencode", tmp_path / "share/opencode")
    assert here.spoken("ses_1")[2:] == ["User: And the keel?"]

    opencode.message("ses_1", "msg_5", "assistant", text("Oak."))
    here.take("opencode", tmp_path / "share/opencode")

    assert here.spoken("ses_1")[2:] == ["User: And the keel?", "Assistant: Oak."]
    assert here.take("opencode", tmp_path / "share/opencode").messages == 0


def test_what_the_hook_has_kept_and_what_is_imported_are_one_conversation(opencode, tmp_path):
    told = [
        {"id": "msg_1", "role": "user", "text": "Which wood?"},
        {"id": "msg_3", "role": "assistant", "text": "Larch."},
    ]
    with Memory(tmp_path / "ws", tmp_path / "home") as memory:
        memory.create_workspace()
        turns = Turns(memory)
        turns.keep_messages(Session("opencode", "ses_1"), told)
        memory.import_sessions("opencode", str(tmp_path / "share/opencode"))
        opencode.message("ses_1", "msg_4", "user", text("And the keel?"))
        memory.import_sessions("opencode", str(tmp_path / "share/opencode"))
        turns.keep_messages(
            Session("opencode", "ses_1"), [*told, {"id": "msg_4", "role": "user", "text": "And the keel?"}]
        )

        assert [row.key for row in memory.sessions.list()] == ["opencode:ses_1"]
        with memory.sessions.open("opencode:ses_1") as kept:
            said = [entry["message"] for entry in kept.entries() if entry["type"] == "message"]
        spoken = [
            message["content"][0]["text"]
            for message in said
            if message["role"] in {"user", "assistant"} and message["content"][0]["type"] == "text"
        ]
        assert spoken == ["Which wood?", "Larch.", "And the keel?"]


def test_a_database_of_another_kind_gets_a_sentence_and_nothing_is_lost(here, tmp_path):
    path = tmp_path / "share/opencode.db"
    path.parent.mkdir()
    database = apsw.Connection(str(path))
    database.execute("CREATE TABLE session (id text, body text)")
    database.close()
    torn = tmp_path / "torn/opencode.db"
    torn.parent.mkdir()
    torn.write_bytes(path.read_bytes()[:1000])

    (failure,) = here.take("opencode", path.parent).failed
    (unreadable,) = here.take("opencode", torn.parent).failed

    assert "this version of opencode keeps conversations in another way" in failure.reason
    assert "cannot be read" in unreadable.reason
    assert not here.store.list()


def test_a_large_database_in_use_is_not_copied(here, opencode, tmp_path, monkeypatch):
    monkeypatch.setattr(originals, "MOST_COPIED_BYTES", 1000)

    (failure,) = here.take("opencode", tmp_path / "share/opencode").failed

    assert "too much to copy (close the program that has it open" in failure.reason


# --- Cursor ---


class CursorFile:
    """A database of Cursor."""

    def __init__(self, path):
        path.parent.mkdir(parents=True)
        self.database = apsw.Connection(str(path))
        for table in ("ItemTable", "cursorDiskKV"):
            self.database.execute(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")

    def put(self, key, found, table="cursorDiskKV"):
        self.database.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, json.dumps(found)))

    def composer(self, name, *bubbles, updated=AT):
        headers = [{"bubbleId": bubble["bubbleId"], "type": bubble["type"]} for bubble in bubbles]
        facts = {"composerId": name, "name": "Wood", "createdAt": AT, "lastUpdatedAt": updated}
        self.put(f"composerData:{name}", {**facts, "fullConversationHeadersOnly": headers})
        for bubble in bubbles:
            self.put(f"bubbleId:{name}:{bubble['bubbleId']}", bubble)


def bubble(name, kind, said, **more):
    return {"bubbleId": name, "type": kind, "text": said, **more}


TOOL = {
    "name": "list_dir",
    "toolCallId": "c1",
    "rawArgs": '{"path": "."}',
    "result": "larch.md",
    "status": "completed",
}


@pytest.fixture
def cursor(tmp_path):
    made = CursorFile(tmp_path / "Cursor/User/globalStorage/state.vscdb")
    made.composer(
        "cmp-1",
        bubble("b1", 1, "Which wood?", createdAt="2026-02-10T09:30:00.123Z"),
        bubble("b2", 2, "", toolFormerData=TOOL, thinking={"text": "it floats"}),
        bubble("b3", 2, "Larch."),
    )
    return made


def test_conversations_of_cursor_are_read_and_go_on(here, cursor, tmp_path):
    here.take("cursor", tmp_path / "Cursor")
    assert here.spoken("cmp-1") == ["User: Which wood?", "Assistant: Larch."]
    assert here.store.entry("cursor:cmp-1")["displayName"] == "Wood"
    assert [entry["id"] for entry in here.entries("cmp-1")] == [
        "b1",
        "b2.thoughts",
        "b2.call",
        "b2.answer",
        "b3",
    ]

    cursor.composer(
        "cmp-1",
        bubble("b1", 1, "Which wood?"),
        bubble("b3", 2, "Larch."),
        bubble("b4", 1, "yes"),
        updated=AT + 1,
    )
    report = here.take("cursor", tmp_path / "Cursor")

    assert (report.messages, here.spoken("cmp-1")[-1]) == (1, "User: yes")


def test_older_chats_of_cursor_are_read_and_a_database_without_any_says_so(here, cursor, tmp_path):
    tabs = [
        {
            "tabId": "tab-1",
            "chatTitle": "Keel",
            "bubbles": [{"type": "user", "text": "Which keel?"}, {"type": "ai", "rawText": "Oak."}],
        }
    ]
    older = CursorFile(tmp_path / "Cursor/User/workspaceStorage/0a1b/state.vscdb")
    older.put("workbench.panel.aichat.view.aichat.chatdata", {"tabs": tabs}, table="ItemTable")
    CursorFile(tmp_path / "Cursor/User/workspaceStorage/0a1c/state.vscdb")

    report = here.take("cursor", tmp_path / "Cursor")

    assert here.spoken("tab-1") == ["User: Which keel?", "Assistant: Oak."]
    assert [(os.path.basename(os.path.dirname(each.path)), each.reason) for each in report.empty] == [
        ("0a1c", "it holds no conversation")
    ]


def test_the_same_word_said_twice_is_kept_twice_though_the_hook_kept_it_once(cursor, tmp_path):
    with Memory(tmp_path / "ws", tmp_path / "home") as memory:
        memory.create_workspace()
        turns, session = Turns(memory), Session("cursor", "cmp-1")
        for role, said in (
            ("user", "Which wood?"),
            ("assistant", "Larch."),
            ("user", "yes"),
            ("user", "yes"),
        ):
            turns.keep_messages(session, [{"role": role, "text": said}])
        yes = [bubble("b4", 1, "yes"), bubble("b5", 2, "Oak?"), bubble("b6", 1, "yes")]
        cursor.composer(
            "cmp-1", bubble("b1", 1, "Which wood?"), bubble("b3", 2, "Larch."), *yes, updated=AT + 1
        )

        for _ in range(2):
            memory.import_sessions("cursor", str(tmp_path / "Cursor"))

        with memory.sessions.open("cursor:cmp-1") as kept:
            said = [entry["message"]["content"][0]["text"] for entry in kept.entries() if "message" in entry]
        assert sorted(said) == sorted(["Which wood?", "Larch.", "yes", "Oak?", "yes"])
