"""Sessions of Gemini CLI and Copilot CLI, as their programs write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.guests.importers.conftest import add, looks_of
from tests.guests.importers.test_claude_code import json_values

from plainmind.guests.importers import copilot, gemini

WHEN = "2026-02-10T09:30:00.123Z"
FENCED = "<recalled-memory 0123456789abcdef>\nThe hull is of larch.\n</recalled-memory 0123456789abcdef>"

# --- Gemini ---

GEMINI = "50ea6fd9-0dc1-4588-95f0-208d33877ec5"
GEMINI_FILE = "dot-gemini/tmp/boat/chats/session-2026-02-10T09-30-50ea6fd9.jsonl"


def said(own_id, kind, text, **more):
    content = text if kind == "gemini" else [{"text": text}]
    return {"id": own_id, "timestamp": WHEN, "type": kind, "content": content, **more}


CALL = {
    "id": "c1",
    "name": "list",
    "args": {"path": "."},
    "status": "success",
    "result": [{"functionResponse": {"id": "c1", "name": "list", "response": {"output": "larch.md"}}}],
}
GEMINI_LOG = [
    {"sessionId": GEMINI, "projectHash": "60a4", "startTime": WHEN, "lastUpdated": WHEN, "kind": "main"},
    {"$set": {"messages": [said("m0", "user", "<session_context>\nThis is the Gemini CLI.")]}},
    said("m1", "user", f"<hook_context>{FENCED}</hook_context>\n\nWhich wood for the hull?"),
    {"$set": {"lastUpdated": WHEN}},
    said("m2", "gemini", "", thoughts=[{"subject": "Wood", "description": "larch floats"}], model="gemini-2.5-pro"),
    said("m2", "gemini", "", thoughts=[{"subject": "Wood", "description": "larch floats"}], toolCalls=[CALL]),
    said("m3", "user", "", functionResponse={}),
    said("m4", "gemini", "Larch, on oak frames.", model="gemini-2.5-pro"),
    {"$set": {"summary": "The wood of a boat"}},
]  # fmt: skip


def test_a_session_of_gemini_is_read_as_what_was_said(here, write, tmp_path):
    write(GEMINI_FILE, GEMINI_LOG)
    write("dot-gemini/tmp/boat/.project_root", b"/home/ana/boat\n")
    before = looks_of(tmp_path / "dot-gemini")

    report = here.take("gemini", tmp_path / "dot-gemini")

    assert here.spoken(GEMINI) == ["User: Which wood for the hull?", "Assistant: Larch, on oak frames."]
    assert report.imported[0].key == f"gemini:{GEMINI}"
    assert [entry["type"] for entry in here.entries(GEMINI)].count("custom_message") == 1
    answers = [entry["message"] for entry in here.entries(GEMINI) if entry["id"] == "m2.answer1"]
    assert answers == [
        {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "list",
            "content": [{"type": "text", "text": "larch.md"}],
            "isError": False,
        }
    ]
    row = here.store.entry(f"gemini:{GEMINI}")
    assert (row["cwd"], row["displayName"]) == ("/home/ana/boat", "The wood of a boat")
    assert looks_of(tmp_path / "dot-gemini") == before


def test_what_gemini_tells_again_is_copied_once_and_a_half_line_waits(here, write, tmp_path):
    path = write(GEMINI_FILE, [*GEMINI_LOG[:5], b'{"id":"m2","type":"gem'])
    here.take("gemini", tmp_path / "dot-gemini")
    write(GEMINI_FILE, GEMINI_LOG)

    assert here.take("gemini", tmp_path / "dot-gemini").damaged_count == 0
    add(path, said("m5", "user", "And the keel?"))
    here.take("gemini", tmp_path / "dot-gemini")

    ids = [entry["id"] for entry in here.entries(GEMINI)]
    assert ids == ["m0", "m1", "m2.thoughts", "m2.call1", "m2.answer1", "m4", "m5"]


def test_an_older_document_of_gemini_is_read_and_damage_is_named(here, write, tmp_path):
    document = {"sessionId": GEMINI, "startTime": WHEN, "messages": [said("m1", "user", "Which wood?"), 5]}
    write("chats/session-1.json", document)
    write("chats/session-2.jsonl", [GEMINI_LOG[0] | {"sessionId": "other"}, b"not json\n", GEMINI_LOG[2]])

    report = here.take("gemini", tmp_path / "chats")

    assert here.spoken(GEMINI) == ["User: Which wood?"]
    assert here.spoken("other") == ["User: Which wood for the hull?"]
    assert [(damage.line, damage.reason) for damage in report.damaged] == [
        (2, "not a JSON object"),
        (2, "not a JSON object"),
    ]


# --- Copilot ---

COPILOT = "3747ae64-07d0-4d78-b03d-403c5a611b19"
COPILOT_FILE = f"dot-copilot/session-state/{COPILOT}/events.jsonl"


def event(own_id, kind, **data):
    return {"type": kind, "data": data, "id": own_id, "timestamp": WHEN, "parentId": None}


COPILOT_LOG = [
    event("e0", "session.start", sessionId=COPILOT, startTime=WHEN, context={"cwd": "/boat", "branch": "hull"}),
    event("e1", "hook.end", hookType="userPromptSubmitted", output={"additionalContext": FENCED}),
    event("e2", "user.message", content="Which wood?", transformedContent=f"Which wood?\n{FENCED}"),
    event("e3", "system.message", role="system", content="You are the GitHub Copilot CLI"),
    event("e4", "assistant.message", content="", toolRequests=[{"toolCallId": "c1", "name": "ls", "arguments": {}}]),
    event("e5", "tool.execution_complete", toolCallId="c1", success=True, result={"content": FENCED}),
    event("e6", "assistant.message", content="Larch.", model="gpt-5", toolRequests=[]),
]  # fmt: skip


def test_a_session_of_copilot_is_read_as_what_was_said(here, write, tmp_path):
    path = write(COPILOT_FILE, COPILOT_LOG)

    report = here.take("copilot", tmp_path / "dot-copilot")

    assert here.spoken(COPILOT) == ["User: Which wood?", "Assistant: Larch."]
    assert report.imported[0].key == f"copilot:{COPILOT}"
    assert "larch" not in str(here.entries(COPILOT)).replace("Larch.", "")
    row = here.store.entry(f"copilot:{COPILOT}")
    assert (row["cwd"], row["gitBranch"]) == ("/boat", "hull")

    add(path, event("e7", "user.message", content="And the keel?"))
    assert here.take("copilot", tmp_path / "dot-copilot").messages == 1


def test_a_file_without_events_says_so_and_the_others_are_read(here, write, tmp_path):
    write(COPILOT_FILE, COPILOT_LOG)
    write("dot-copilot/session-state/broken/events.jsonl", b"\x00\x01 no events\n")

    report = here.take("copilot", tmp_path / "dot-copilot")

    assert here.spoken(COPILOT) == ["User: Which wood?", "Assistant: Larch."]
    assert [(damage.line, damage.reason) for damage in report.damaged] == [(1, "not a JSON object")]


@pytest.mark.parametrize("translate", [gemini.translate, copilot.translate])
@given(found=json_values)
def test_no_line_makes_translating_fail(translate, found):
    line = found if isinstance(found, dict) else {"type": "user", "content": found}

    for kind in ("user", "gemini", "user.message", "assistant.message", "tool.execution_complete", None):
        for changed in ({}, {"data": line}, {"content": found}, {"toolCalls": [found]}):
            for entry in translate({**line, "type": kind, **changed}, b"raw", 1):
                assert isinstance(entry["id"], str)
