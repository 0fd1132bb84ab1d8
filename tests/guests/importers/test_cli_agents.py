"""Sessions of Codex, Gemini CLI and Copilot CLI, as their programs write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.guests.importers.conftest import add, looks_of
from tests.guests.importers.test_claude_code import json_values

from plainmind.guests.importers.cli_agents import CodexTranslation, translate_copilot, translate_gemini

SESSION = "019a2d7a-41c4-78b1-b7cc-a45d62a89cd5"
FILE = f"dot-codex/sessions/2026/02/10/rollout-2026-02-10T09-30-00-{SESSION}.jsonl"
CODEX_WHEN = "2026-02-10T09:30:00.123Z"
META = {
    "id": SESSION, "timestamp": CODEX_WHEN, "cwd": "/home/ana/boat", "originator": "codex_cli", "cli_version": "0.90.0",
    "instructions": "be brief", "git": {"branch": "hull"},
}  # fmt: skip


def line(kind, payload):
    return {"timestamp": CODEX_WHEN, "type": kind, "payload": payload}


def message(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


TODAY = [
    line("session_meta", META),
    line("response_item", message("developer", "<permissions instructions>…</permissions instructions>")),
    line("response_item", message("user", "<environment_context>…</environment_context>")),
    line("turn_context", {"cwd": "/home/ana/boat", "model": "gpt-5.2-codex", "effort": "high"}),
    line("response_item", message("user", "What wood for the hull?")),
    line("event_msg", {"type": "user_message", "message": "What wood for the hull?"}),
    line(
        "response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Larch floats"}]}
    ),
    line("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}),
    line(
        "response_item",
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
    ),
    line("response_item", {"type": "function_call_output", "call_id": "c1", "output": "larch.md"}),
    line(
        "response_item",
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "c2"},
    ),
    line("response_item", {"type": "custom_tool_call_output", "call_id": "c2", "output": {"content": "ok"}}),
    line("event_msg", {"type": "agent_message", "message": "Larch, on oak frames."}),
    line("response_item", message("assistant", "Larch, on oak frames.")),
    line("event_msg", {"type": "token_count", "info": None}),
    line("turn_context", {"cwd": "/home/ana/boat", "model": "gpt-5.2-codex"}),
    line("compacted", {"message": "They chose larch.", "replacement_history": []}),
    line("response_item", message("user", "And the keel?")),
]


def test_a_rollout_is_copied_once_though_events_repeat_its_messages(here, write, tmp_path):
    write(FILE, TODAY)
    write("dot-codex/history.jsonl", [{"session_id": SESSION, "text": "What wood for the hull?"}])

    report = here.take("codex", tmp_path / "dot-codex")

    assert here.spoken(SESSION) == [
        "User: What wood for the hull?",
        "Assistant: Larch, on oak frames.",
        "User: And the keel?",
    ]
    entry = here.store.entry(SESSION)
    assert (entry["cwd"], entry["gitBranch"], entry["displayName"]) == (
        "/home/ana/boat", "hull", "What wood for the hull?",
    )  # fmt: skip
    assert len(report.imported) == 1
    assert [found["type"] for found in here.entries(SESSION)] == [
        "custom_message", "custom_message", "model_change", "message", "message", "message", "message", "message",
        "message", "message", "compaction", "message",
    ]  # fmt: skip


def test_calls_and_answers_of_tools_keep_their_names_and_arguments(here, write):
    here.take("codex", write(FILE, TODAY))

    messages = list(here.store.open(SESSION).messages())
    calls = [block for found in messages for block in found["content"] if block["type"] == "toolCall"]
    assert calls == [
        {"type": "toolCall", "id": "c1", "name": "shell", "arguments": {"command": ["ls"]}},
        {"type": "toolCall", "id": "c2", "name": "apply_patch", "arguments": {"input": "*** Begin"}},
    ]
    answers = [(found["toolCallId"], found["content"]) for found in messages if found["role"] == "toolResult"]
    assert answers == [
        ("c1", [{"type": "text", "text": "larch.md"}]),
        ("c2", [{"type": "text", "text": "ok"}]),
    ]


def test_after_a_compaction_the_context_is_its_summary_and_what_follows(here, write):
    here.take("codex", write(FILE, TODAY))

    context = here.store.open(SESSION).context()
    assert context.summary == "They chose larch."
    assert [found["content"][0]["text"] for found in context.messages] == ["And the keel?"]


def test_a_rollout_without_envelopes_is_read_too(here, write):
    older = [
        {"id": SESSION, "timestamp": CODEX_WHEN, "instructions": None, "git": {}},
        {"record_type": "state"},
        {**message("user", "<user_instructions>…"), "id": None},
        message("user", "Is larch heavy?"),
        message("assistant", "Less than oak."),
    ]

    here.take("codex", write(FILE, older))

    assert here.spoken(SESSION) == ["User: Is larch heavy?", "Assistant: Less than oak."]


def test_the_oldest_rollouts_are_one_document(here, write):
    document = {
        "session": {"id": SESSION, "timestamp": CODEX_WHEN, "instructions": ""},
        "items": [message("user", "Oars or sail?"), message("assistant", "Both."), "rubbish"],
    }

    report = here.take("codex", write(FILE.removesuffix("l"), document))

    assert here.spoken(SESSION) == ["User: Oars or sail?", "Assistant: Both."]
    assert [damage.line for damage in report.damaged] == [3]


def test_two_equal_lines_are_two_messages(here, write):
    twice = line("response_item", message("user", "go on"))

    here.take("codex", write(FILE, [line("session_meta", META), twice, twice]))

    assert here.spoken(SESSION) == ["User: go on", "User: go on"]


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["response_item", "turn_context", "compacted", "message"])
                | json_values,
                "payload": st.fixed_dictionaries(
                    {},
                    optional={
                        "type": st.sampled_from(
                            ["message", "reasoning", "function_call", "function_call_output"]
                        )
                        | json_values,
                        "role": json_values,
                        "content": json_values,
                        "output": json_values,
                        "arguments": json_values,
                        "name": json_values,
                        "summary": json_values,
                        "model": json_values,
                        "message": json_values,
                    },
                )
                | json_values,
                "role": json_values,
                "content": json_values,
            },
        ),
        max_size=5,
    )
)
def test_no_line_makes_the_translation_raise(found):
    translate = CodexTranslation()
    for number, entry in enumerate(found, 1):
        for translated in translate(entry, b"", number):
            assert isinstance(translated["type"], str)
            assert translated["id"]


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


@pytest.mark.parametrize("translate", [translate_gemini, translate_copilot])
@given(found=json_values)
def test_no_line_makes_translating_fail(translate, found):
    line = found if isinstance(found, dict) else {"type": "user", "content": found}

    for kind in ("user", "gemini", "user.message", "assistant.message", "tool.execution_complete", None):
        for changed in ({}, {"data": line}, {"content": found}, {"toolCalls": [found]}):
            for entry in translate({**line, "type": kind, **changed}, b"raw", 1):
                assert isinstance(entry["id"], str)
