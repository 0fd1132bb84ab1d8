"""Both kinds of endpoints, over real connections: what is asked, and what is heard."""

from __future__ import annotations

import json

import pytest
from tests.support.scripted_chat_model import KEY, Call, Say, in_order

from plainmind.agent.tools import APPEND, SEARCH
from plainmind.guests.chat.endpoint import EndpointModel, create_chat_model, dialect_of
from plainmind.guests.chat.model import (
    LENGTH,
    STOPPED,
    TOOL_USE,
    ChatModelSettings,
    Request,
    ToolCall,
    Usage,
)

BOTH = ("openai", "anthropic")
HELLO = Request("Be brief.", ({"role": "user", "content": "Which wood?"},), (SEARCH, APPEND))


def test_an_answer_is_heard_while_it_is_given(dialect, serve):
    text = "Larch — it lasts in wet soil. 🌲 " * 40
    model, server = serve(dialect, in_order(Say(text, usage=(120, 30))))
    heard: list[str] = []

    reply = model.reply(HELLO, on_text=heard.append)

    assert reply.text == "".join(heard) == text
    assert len(heard) > 10
    assert (reply.stop, reply.calls, reply.usage) == (STOPPED, (), Usage(120, 30))
    assert server.asked[0].system == "Be brief."
    assert server.asked[0].tools == ["memory_search", "memory_append"]
    assert server.asked[0].body["stream"] is True


def test_calls_come_with_their_arguments(dialect, serve):
    calls = [
        Call("memory_search", {"query": "wood ü", "maxResults": 3}, "id_1"),
        Call("memory_append", {"text": "x"}, "id_2"),
    ]
    model, _ = serve(dialect, in_order(Say("Let me look.", calls)))

    reply = model.reply(HELLO)

    assert reply.text == "Let me look."
    assert reply.calls == (
        ToolCall("id_1", "memory_search", {"query": "wood ü", "maxResults": 3}),
        ToolCall("id_2", "memory_append", {"text": "x"}),
    )
    assert reply.stop == TOOL_USE


@pytest.mark.parametrize("arguments", ['{"query": ', "larch", '["a"]', '"text"', "null"])
def test_arguments_that_are_no_object_stay_the_text_that_they_are(dialect, serve, arguments):
    model, _ = serve(dialect, in_order(Say(calls=[Call("memory_search", arguments)])))

    assert model.reply(HELLO).calls[0].arguments == arguments


def test_a_call_without_arguments_has_none(dialect, serve):
    model, _ = serve(dialect, in_order(Say(calls=[Call("memory_status", "")])))

    assert model.reply(HELLO).calls[0].arguments == {}


def test_a_whole_conversation_is_written_in_the_language_of_the_endpoint(serve):
    said = (
        {"role": "user", "content": "Which wood?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I look."},
                {"type": "toolCall", "id": "c:1", "name": "memory_search", "arguments": {"query": "wood"}},
            ],
        },
        {
            "role": "toolResult",
            "toolCallId": "c:1",
            "content": [{"type": "text", "text": "Larch."}],
            "isError": True,
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "And?"},
                {"type": "image", "mimeType": "image/png", "data": "AA=="},
            ],
        },
    )
    written = {}
    for dialect in BOTH:
        model, server = serve(dialect, in_order(Say("Larch.")))
        model.reply(Request("", said))
        written[dialect] = server.asked[0].messages

    assert written["openai"] == [
        {"role": "user", "content": "Which wood?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": "c:1",
                    "type": "function",
                    "function": {"name": "memory_search", "arguments": '{"query": "wood"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c:1", "content": "Larch."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "And?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            ],
        },
    ]
    assert written["anthropic"] == [
        {"role": "user", "content": [{"type": "text", "text": "Which wood?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c_1", "name": "memory_search", "input": {"query": "wood"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c_1", "content": "Larch.", "is_error": True},
                {"type": "text", "text": "And?"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
                    "cache_control": {"type": "ephemeral"},
                },
            ],
        },
    ]


def test_the_key_goes_into_a_header_and_nowhere_else(dialect, serve):
    model, server = serve(dialect, in_order(Say("Larch.")), headers={"X-Team": "boats"})

    model.reply(HELLO)

    asked = server.asked[0]
    assert asked.headers["x-team"] == "boats"
    shown = asked.headers.get("authorization") if dialect == "openai" else asked.headers.get("x-api-key")
    assert shown == (f"Bearer {KEY}" if dialect == "openai" else KEY)
    assert KEY not in json.dumps(asked.body)
    assert KEY not in repr(ChatModelSettings("m", api_key=KEY))


def test_an_answer_that_was_cut_for_its_length_says_so(dialect, serve):
    model, _ = serve(dialect, in_order(Say("Lar", stop="length" if dialect == "openai" else "max_tokens")))

    assert model.reply(HELLO).stop == LENGTH


def test_a_server_that_does_not_count_is_counted_for(serve):
    model, _ = serve("openai", in_order(Say("Larch. " * 100, usage=None)))

    usage = model.reply(HELLO).usage

    assert usage.is_estimated
    assert 100 < usage.output < 300
    assert 100 < usage.input < 1000
    assert usage.as_fields()["estimated"] is True


def test_a_server_that_does_not_stream_is_understood(dialect, serve):
    model, _ = serve(
        dialect, in_order(Say("Larch.", [Call("memory_append", {"text": "x"}, "c1")], (7, 3), streams=False))
    )
    heard: list[str] = []

    reply = model.reply(HELLO, on_text=heard.append)

    assert (reply.text, heard) == ("Larch.", ["Larch."])
    assert reply.calls == (ToolCall("c1", "memory_append", {"text": "x"}),)
    assert reply.usage == Usage(7, 3)


def test_tokens_from_a_cache_are_counted_apart(serve):
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
    whole = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
    model, _ = serve("openai", in_order(Say(body=whole)))
    assert model.reply(HELLO).usage == Usage(40, 5, cache_read=60)

    usage = {
        "input_tokens": 3,
        "output_tokens": 5,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 7,
    }
    model, _ = serve(
        "anthropic", in_order(Say(body={"content": [{"type": "text", "text": "x"}], "usage": usage}))
    )
    found = model.reply(HELLO).usage
    assert (found, found.total) == (Usage(3, 5, cache_read=60, cache_write=7), 75)


def test_five_megabytes_are_heard_to_the_end(dialect, serve):
    text = "0123456789abcde\n" * 330_000
    model, _ = serve(dialect, in_order(Say(text)))

    assert model.reply(HELLO).text == text


def test_a_connection_is_used_again(dialect, serve):
    model, server = serve(dialect, in_order(Say("Larch.")))
    ports: list[str] = []
    server.at = lambda moment, _: ports.append(moment)

    for _ in range(3):
        model.reply(HELLO)

    assert len(server.asked) == 3
    assert len(model._transport._idle) == 1


def test_calls_that_share_an_index_are_told_apart_by_their_ids(serve):
    def chunk(delta):
        return b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n"

    def call(call_id, name):
        return {"tool_calls": [{"index": 0, "id": call_id, "function": {"name": name, "arguments": "{}"}}]}

    stream = chunk(call("a", "memory_status")) + chunk(call("b", "memory_search")) + b"data: [DONE]\n\n"
    model, _ = serve("openai", in_order(Say(body=stream, headers={"Content-Type": "text/event-stream"})))

    assert [(made.id, made.name) for made in model.reply(HELLO).calls] == [
        ("a", "memory_status"),
        ("b", "memory_search"),
    ]


def test_anthropic_is_found_with_and_without_the_version_in_its_address(serve):
    model, server = serve("anthropic", in_order(Say("Larch.")))
    again = EndpointModel(
        dialect_of("anthropic"),
        ChatModelSettings("m", base_url=f"{server.anthropic_url}/v1/", api_key=KEY, allow_private=True),
    )

    assert model.reply(HELLO).text == again.reply(HELLO).text == "Larch."
    again.close()


def test_the_window_is_what_was_set_or_what_is_usual():
    assert create_chat_model("openai", ChatModelSettings("m")).context_window == 128_000
    assert create_chat_model("anthropic", ChatModelSettings("m")).context_window == 200_000
    assert create_chat_model("openai", ChatModelSettings("m", context_window=8192)).context_window == 8192


def test_openai_itself_gets_strict_tools_and_its_new_names_and_other_servers_what_they_know():
    own = dialect_of("openai").body(HELLO, ChatModelSettings("m", max_output_tokens=9))
    other = dialect_of("openai").body(
        HELLO, ChatModelSettings("m", base_url="http://127.0.0.1:1/v1", max_output_tokens=9)
    )

    assert own["tools"][0]["function"]["strict"] is True
    assert own["max_completion_tokens"] == other["max_tokens"] == 9
    function = other["tools"][0]["function"]
    assert sorted(function) == ["description", "name", "parameters"]
    assert function["parameters"]["required"] == ["query"]
    assert dialect_of("anthropic").body(HELLO, ChatModelSettings("m"))["max_tokens"] == 8192
