"""Transcripts of Claude Code: who said what, and what only the program said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.guests.importers.conftest import add

from plainmind.guests.importers.claude_code import Translation

SESSION = "5f0c7f0e-1d0a-4f5a-9a53-0d8d1b6f2c11"
FILE = f"dot-claude/projects/-home-ana-garden/{SESSION}.jsonl"


def line(kind, uuid, parent, content, **more):
    role = {"role": kind, "content": content}
    if kind == "assistant":
        role |= {
            "id": f"msg_{uuid}",
            "model": "claude-opus-4-5",
            "usage": {"input_tokens": 7, "output_tokens": 3},
        }
    return {
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "cwd": "/home/ana/garden",
        "gitBranch": "beds", "isSidechain": False, "timestamp": "2026-02-10T09:30:00.000Z", "message": role, **more,
    }  # fmt: skip


def test_a_conversation_is_copied_with_its_speakers_times_and_place(here, write):
    write(
        FILE,
        [
            line("user", "u1", None, "Which bed gets the most sun?"),
            line("assistant", "a1", "u1", [{"type": "text", "text": "The one by the south wall."}]),
        ],
    )

    report = here.take("claude-code", write(FILE.replace(SESSION, "other"), []).parent)

    assert here.spoken(SESSION) == [
        "User: Which bed gets the most sun?",
        "Assistant: The one by the south wall.",
    ]
    entry = here.store.entry(SESSION)
    assert (entry["displayName"], entry["cwd"], entry["gitBranch"]) == (
        "Which bed gets the most sun?", "/home/ana/garden", "beds",
    )  # fmt: skip
    assert [(row.key, row.messages, row.is_new) for row in report.imported] == [
        (f"claude-code:{SESSION}", 2, True)
    ]
    assert report.without_messages == 1
    first, second = here.entries(SESSION)
    assert (first["id"], first["parentId"], second["parentId"]) == ("u1", None, "u1")
    assert first["timestamp"] == "2026-02-10T09:30:00.000Z"
    assert second["imported"] == {"file": f"{SESSION}.jsonl", "line": 2}
    assert second["message"]["usage"] == {"input": 7, "output": 3}


def test_the_state_folder_may_be_given_and_its_other_files_are_left_alone(here, write, tmp_path):
    write(FILE, [line("user", "u1", None, "hello")])
    write("dot-claude/history.jsonl", [{"display": "hello", "timestamp": 1}])
    write("dot-claude/todos/x.jsonl", [line("user", "u9", None, "not a conversation")])

    report = here.take("claude-code", tmp_path / "dot-claude")

    assert [row.id for row in report.imported] == [SESSION]


def test_tool_calls_and_their_answers_are_kept_and_are_nobodys_words(here, write):
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "beds.md"}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "sun from ten", "is_error": True}
    path = write(
        FILE,
        [
            line("assistant", "a1", None, [{"type": "thinking", "thinking": "let me look"}, call]),
            line(
                "user",
                "u1",
                "a1",
                [answer, {"type": "text", "text": "and hurry"}],
                toolUseResult={"file": "…"},
            ),
        ],
    )

    here.take("claude-code", path)

    asked, answered, said = here.entries(SESSION)
    assert asked["message"]["content"] == [
        {"type": "thinking", "thinking": "let me look"},
        {"type": "toolCall", "id": "t1", "name": "Read", "arguments": {"path": "beds.md"}},
    ]
    assert answered["message"] == {
        "role": "toolResult",
        "toolCallId": "t1",
        "content": [{"type": "text", "text": "sun from ten"}],
        "isError": True,
    }
    assert (said["id"], said["parentId"]) == ("u1.2", "u1")
    assert here.spoken(SESSION) == ["User: and hurry"]


@pytest.mark.parametrize(
    "changes",
    [
        {"isMeta": True},
        {"isSidechain": True},
        {"content": "<local-command-stdout>done</local-command-stdout>"},
        {"content": "  <bash-input>ls</bash-input>"},
    ],
)
def test_what_the_program_says_in_the_users_name_is_kept_but_is_not_the_users(here, write, changes):
    content = changes.pop("content", "Caveman instructions")
    path = write(FILE, [line("user", "u1", None, content, **changes), line("user", "u2", "u1", "really me")])

    here.take("claude-code", path)

    assert here.spoken(SESSION) == ["User: really me"]
    assert [entry["type"] for entry in here.entries(SESSION)] == ["custom_message", "message"]


def test_a_command_is_what_the_user_typed(here, write):
    text = (
        "<command-message>plan is running…</command-message>\n<command-name>/plan</command-name>\n"
        "<command-args>three raised beds</command-args>"
    )
    path = write(FILE, [line("user", "u1", None, text)])

    here.take("claude-code", path)

    assert here.spoken(SESSION) == ["User: /plan three raised beds"]


def test_a_message_that_had_to_wait_is_the_users_too(here, write):
    queued = {
        "type": "attachment", "uuid": "q1", "parentUuid": None, "timestamp": "2026-02-10T09:31:00.000Z",
        "attachment": {"type": "queued_command", "prompt": "also the herbs"},
    }  # fmt: skip
    path = write(FILE, [queued, {**queued, "uuid": "q2", "attachment": {"type": "todo"}}])

    here.take("claude-code", path)

    assert here.spoken(SESSION) == ["User: also the herbs"]


def test_a_line_that_is_not_copied_does_not_break_the_chain(here, write):
    path = write(
        FILE,
        [
            line("user", "u1", None, "first"),
            {"type": "progress", "uuid": "p1", "parentUuid": "u1", "data": {}},
            {"type": "system", "subtype": "turn_duration", "uuid": "s1", "parentUuid": "p1"},
            line("assistant", "a1", "s1", [{"type": "text", "text": "second"}]),
        ],
    )

    here.take("claude-code", path)

    assert here.entries(SESSION)[1]["parentId"] == "u1"
    assert [placed.entry["id"] for placed in here.store.open(SESSION).path_to()] == ["a1", "u1"]


def test_a_compaction_becomes_one_of_ours_and_the_context_begins_with_its_summary(here, write):
    path = write(
        FILE,
        [
            line("user", "u1", None, "a long story"),
            {
                "type": "system", "subtype": "compact_boundary", "uuid": "c1", "parentUuid": None,
                "logicalParentUuid": "u1", "compactMetadata": {"trigger": "auto", "preTokens": 150000},
            },
            line("user", "c2", "c1", "They talked about beds.", isCompactSummary=True),
            line("user", "u2", "c2", "go on"),
        ],
    )  # fmt: skip

    here.take("claude-code", path)

    context = here.store.open(SESSION).context()
    assert context.summary == "They talked about beds."
    assert [message["content"][0]["text"] for message in context.messages] == ["go on"]
    assert here.entries(SESSION)[1]["parentId"] == "u1"
    assert here.spoken(SESSION) == ["User: a long story", "User: go on"]


def test_what_an_answer_cost_is_counted_once_though_each_of_its_blocks_repeats_it(here, write):
    path = write(
        FILE,
        [
            line("assistant", "a1", None, [{"type": "text", "text": "one"}]),
            {**line("assistant", "a2", "a1", [{"type": "text", "text": "two"}])},
        ],
    )
    path.write_text(path.read_text().replace("msg_a2", "msg_a1"))

    here.take("claude-code", path)

    assert here.store.entry(SESSION)["inputTokens"] == 7


def test_errors_of_the_provider_and_pictures_are_not_memories(here, write):
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 5000}}
    path = write(
        FILE,
        [
            line("user", "u1", None, [picture, {"type": "text", "text": "what is this?"}]),
            line(
                "assistant", "a1", "u1", [{"type": "text", "text": "API Error: 529"}], isApiErrorMessage=True
            ),
        ],
    )

    here.take("claude-code", path)

    assert here.spoken(SESSION) == ["User: what is this?"]
    content = here.entries(SESSION)[0]["message"]["content"]
    assert content[0] == {"type": "image", "mimeType": "image/png", "isLeftOut": True}


def test_a_title_names_the_session_and_a_later_one_renames_it(here, write):
    path = write(FILE, [line("user", "u1", None, "hi"), {"type": "ai-title", "aiTitle": "Greetings"}])
    here.take("claude-code", path)
    assert here.store.entry(SESSION)["displayName"] == "Greetings"

    add(path, {"type": "custom-title", "customTitle": "Sun and beds"})
    here.take("claude-code", path)

    assert here.store.entry(SESSION)["displayName"] == "Sun and beds"


def test_a_summary_of_another_conversation_is_kept_and_names_nothing(here, write):
    summary = {"type": "summary", "summary": "Somebody else's work", "leafUuid": "elsewhere"}
    path = write(FILE, [summary, line("user", "u1", None, "mine")])

    here.take("claude-code", path)

    assert here.entries(SESSION)[0]["data"]["summary"] == "Somebody else's work"
    assert here.store.entry(SESSION)["displayName"] == "mine"


def test_a_subagent_has_a_session_of_its_own(here, write):
    write(FILE, [line("user", "u1", None, "look around")])
    agent = write(
        f"dot-claude/projects/-home-ana-garden/{SESSION}/subagents/agent-a1b2c3.jsonl",
        [
            line("user", "s1", None, "You are to look around.", isSidechain=True, agentId="a1b2c3"),
            line("assistant", "s2", "s1", [{"type": "text", "text": "There is a wall."}], isSidechain=True),
        ],
    )

    here.take("claude-code", agent.parents[2])

    assert here.spoken(f"{SESSION}-agent-a1b2c3") == ["Assistant: There is a wall."]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
lines = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["user", "assistant", "system", "summary", "attachment", "ai-title"])
        | json_values,
        "uuid": st.sampled_from(["a", "b", "c"]) | json_values,
        "parentUuid": st.sampled_from(["a", "b", "c"]) | json_values,
        "message": st.fixed_dictionaries(
            {},
            optional={
                "content": json_values
                | st.lists(
                    st.fixed_dictionaries(
                        {"type": st.sampled_from(["text", "tool_use", "tool_result", "image"]) | json_values},
                        optional={"text": json_values, "content": json_values, "source": json_values},
                    ),
                    max_size=3,
                ),
                "id": json_values,
                "model": json_values,
                "usage": json_values,
            },
        )
        | json_values,
        "attachment": json_values,
        "summary": json_values,
        "isMeta": json_values,
        "timestamp": json_values,
    },
)


@given(st.lists(lines, max_size=6))
def test_no_line_makes_the_translation_raise(found):
    translate = Translation()
    for number, entry in enumerate(found, 1):
        for translated in translate(entry, b"", number):
            assert isinstance(translated["type"], str)
            assert translated["id"]
