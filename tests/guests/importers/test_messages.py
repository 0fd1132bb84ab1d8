"""Exported chats: one or many in a file, as lists, lines, or ChatGPT's tree."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.guests.importers.conftest import add
from tests.guests.importers.test_claude_code import json_values

from plainmind.guests.importers.messages import messages_of_mapping, translate_message

CHAT = [
    {"role": "system", "content": "You are a gardener."},
    {"role": "user", "content": "When to sow peas?"},
    {"role": "assistant", "content": [{"type": "text", "text": "In March."}]},
]


def only(report):
    assert len(report.imported) == 1, report
    return report.imported[0].id


def test_a_list_of_messages_is_a_conversation(here, write):
    found = only(here.take("messages", write("exports/peas.json", {"messages": CHAT})))

    assert here.spoken(found) == ["User: When to sow peas?", "Assistant: In March."]
    assert found.startswith("peas-")
    assert "timestamp" not in here.entries(found)[0]


def test_a_bare_list_and_lines_are_read_the_same(here, write):
    bare = write("exports/bare.json", b"")
    bare.write_text(json.dumps(CHAT))

    assert here.spoken(only(here.take("messages", bare))) == [
        "User: When to sow peas?",
        "Assistant: In March.",
    ]
    lines = write("exports/lines.jsonl", CHAT)
    assert here.spoken(only(here.take("messages", lines))) == [
        "User: When to sow peas?",
        "Assistant: In March.",
    ]


def test_lines_with_messages_are_a_conversation_each_and_a_damaged_one_is_named(here, write):
    path = write(
        "exports/many.jsonl", [{"messages": CHAT}, b"{broken\n", {"id": "b-2", "messages": CHAT[1:]}]
    )

    report = here.take("messages", path)

    assert len(report.imported) == 2
    assert here.spoken("b-2") == ["User: When to sow peas?", "Assistant: In March."]
    assert [(damage.line, damage.reason) for damage in report.damaged] == [(2, "not a JSON object")]


def test_names_of_roles_and_places_of_texts_are_many(here, write):
    chat = {
        "uuid": "cafe-1",
        "name": "Peas and beans",
        "created_at": "2026-02-10T09:30:00Z",
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "Beans?", "created_at": "2026-02-10T09:30:00+01:00"},
            {
                "uuid": "m2",
                "sender": "assistant",
                "text": "In May.",
                "content": [{"type": "text", "text": "In May."}],
            },
            {"from": "gpt", "value": "Or June.", "ts": 1770715800},
        ],
    }

    here.take("messages", write("claude/conversations.json", b"[%s]" % json.dumps(chat).encode()))

    assert here.spoken("cafe-1") == ["User: Beans?", "Assistant: In May.", "Assistant: Or June."]
    assert here.store.entry("cafe-1")["displayName"] == "Peas and beans"
    stamps = [entry.get("timestamp") for entry in here.entries("cafe-1")]
    assert stamps == ["2026-02-10T08:30:00.000Z", None, "2026-02-10T09:30:00.000Z"]


def test_calls_and_answers_of_tools_come_along(here, write):
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"in": "Graz"}'}}
    chat = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "rain"},
        {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
    ]

    found = only(here.take("messages", write("exports/tools.jsonl", chat)))

    asked, answered, old = (entry["message"] for entry in here.entries(found))
    assert asked["content"] == [
        {"type": "toolCall", "id": "c1", "name": "weather", "arguments": {"in": "Graz"}}
    ]
    assert (answered["role"], answered["toolCallId"], answered["toolName"]) == ("toolResult", "c1", "weather")
    assert old["content"][0]["name"] == "old"


def node(name, parent, role, text, at, **more):
    content = {"content_type": "text", "parts": [text]}
    message = {
        "id": name,
        "author": {"role": role},
        "create_time": at,
        "content": content,
        "metadata": {},
        **more,
    }
    return {"id": name, "parent": parent, "children": [], "message": message}


def chatgpt():
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}
    picture = {"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}, "and this?"]}
    nodes = [
        {"id": "root", "parent": None, "children": ["q"], "message": None},
        node(
            "hidden", "root", "system", "secret", 1, metadata={"is_visually_hidden_from_conversation": True}
        ),
        node("q", "hidden", "user", "Name a tree.", 1770715800.25),
        node("old", "q", "assistant", "Oak.", 1770715801.0),
        node("new", "q", "assistant", "Larch.", 1770715802.0, metadata={"model_slug": "gpt-4o"}),
        node("t", "new", "assistant", "", 1770715803.0, content=thoughts),
        node("pic", "t", "user", "", None, content=picture),
    ]
    return {
        "conversation_id": "chat-1",
        "title": "Trees",
        "create_time": 1770715800.0,
        "mapping": {each["id"]: each for each in nodes},
        "current_node": "pic",
    }


def test_a_tree_of_chatgpt_keeps_all_branches_and_ends_with_the_one_that_is_shown(here, write):
    path = write("chatgpt/conversations.json", b"")
    path.write_text(json.dumps([chatgpt(), "rubbish"]))

    here.take("messages", path)

    assert here.spoken("chat-1") == [
        "User: Name a tree.",
        "Assistant: Oak.",
        "Assistant: Larch.",
        "User: and this?",
    ]
    context = here.store.open("chat-1").context()
    words = [
        block["text"] for found in context.messages for block in found["content"] if block["type"] == "text"
    ]
    assert words == ["Name a tree.", "Larch.", "and this?"]
    assert here.entries("chat-1")[0]["timestamp"] == "2026-02-10T09:30:00.250Z"
    assert here.store.entry("chat-1")["displayName"] == "Trees"


def test_a_newer_export_adds_only_what_was_said_since(here, write):
    path = write("chatgpt/conversations.json", b"")
    path.write_text(json.dumps([chatgpt()]))
    here.take("messages", path)
    grown = chatgpt()
    grown["mapping"]["late"] = node("late", "pic", "assistant", "A spruce.", 1770719999.0)
    grown["current_node"] = "late"
    newer = write("chatgpt-later/conversations.json", b"")
    newer.write_text(json.dumps([grown]))

    report = here.take("messages", newer)

    assert [(row.id, row.messages, row.is_new) for row in report.imported] == [("chat-1", 1, False)]
    assert here.spoken("chat-1")[-1] == "Assistant: A spruce."


def test_lines_that_are_added_to_a_file_are_added_to_its_session(here, write):
    path = write("exports/lines.jsonl", CHAT)
    found = only(here.take("messages", path))

    add(path, {"role": "user", "content": "Thanks."})
    here.take("messages", path)

    assert here.spoken(found)[-1] == "User: Thanks."


def test_what_is_no_chat_is_counted_and_what_is_no_json_is_named(here, write):
    write("exports/list.json", {"a": 1})
    broken = write("exports/broken.json", b"{not json")

    report = here.take("messages", broken.parent)

    assert report.imported == ()
    assert [failure.path for failure in report.failed] == [str(broken)]


@given(
    json_values,
    st.sampled_from(["role", "sender", "content", "tool_calls", "author", "create_time", "message", "id"]),
)
def test_no_message_makes_the_translation_raise(value, name):
    for base in ({}, {"role": "user", "content": "x"}, {"role": "tool", "content": "x"}):
        for entry in translate_message({**base, name: value}, b"", 1):
            assert isinstance(entry["type"], str)
            assert entry["id"]


@given(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.fixed_dictionaries(
            {},
            optional={
                "parent": st.sampled_from("abcd") | json_values,
                "message": st.fixed_dictionaries(
                    {},
                    optional={
                        "author": st.just({"role": "user"}) | json_values,
                        "content": st.fixed_dictionaries(
                            {}, optional={"parts": json_values, "content_type": json_values}
                        ),
                        "create_time": json_values,
                        "metadata": json_values,
                    },
                )
                | json_values,
            },
        )
        | json_values,
    ),
    json_values,
)
def test_no_tree_makes_the_reading_raise_or_go_in_circles(mapping, current):
    listed = messages_of_mapping(mapping, current)
    assert len(listed) <= len(mapping)
