"""Rollouts of Codex, of today and of the two shapes before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.guests.importers.test_claude_code import json_values

from plainmind.guests.importers.codex import Translation

SESSION = "019a2d7a-41c4-78b1-b7cc-a45d62a89cd5"
FILE = f"dot-codex/sessions/2026/02/10/rollout-2026-02-10T09-30-00-{SESSION}.jsonl"
WHEN = "2026-02-10T09:30:00.123Z"
META = {
    "id": SESSION, "timestamp": WHEN, "cwd": "/home/ana/boat", "originator": "codex_cli", "cli_version": "0.90.0",
    "instructions": "be brief", "git": {"branch": "hull"},
}  # fmt: skip


def line(kind, payload):
    return {"timestamp": WHEN, "type": kind, "payload": payload}


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
        {"id": SESSION, "timestamp": WHEN, "instructions": None, "git": {}},
        {"record_type": "state"},
        {**message("user", "<user_instructions>…"), "id": None},
        message("user", "Is larch heavy?"),
        message("assistant", "Less than oak."),
    ]

    here.take("codex", write(FILE, older))

    assert here.spoken(SESSION) == ["User: Is larch heavy?", "Assistant: Less than oak."]


def test_the_oldest_rollouts_are_one_document(here, write):
    document = {
        "session": {"id": SESSION, "timestamp": WHEN, "instructions": ""},
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
    translate = Translation()
    for number, entry in enumerate(found, 1):
        for translated in translate(entry, b"", number):
            assert isinstance(translated["type"], str)
            assert translated["id"]
