"""The scripted server speaks as the vendors do: their own clients understand it, so what passes here is real."""

from __future__ import annotations

import pytest
from tests.support.scripted_chat_model import KEY, Call, Say, in_order, scripted_model

SAID = Say("Larch lasts. ", [Call("memory_search", {"query": "wood"}, "call_1")], usage=(120, 30))


def test_openai_s_client_hears_the_same_as_ours():
    openai = pytest.importorskip("openai")
    with (
        scripted_model(in_order(SAID)) as server,
        openai.OpenAI(base_url=server.openai_url, api_key=KEY, max_retries=0) as client,
        client.chat.completions.stream(
            model="m", messages=[{"role": "user", "content": "Which wood?"}]
        ) as stream,
    ):
        found = stream.get_final_completion()

    message = found.choices[0].message
    assert message.content == SAID.text
    assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()] == [
        ("call_1", "memory_search", '{"query": "wood"}')
    ]
    assert found.choices[0].finish_reason == "tool_calls"
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (120, 30)


def test_anthropic_s_client_hears_the_same_as_ours():
    anthropic = pytest.importorskip("anthropic")
    with (
        scripted_model(in_order(SAID)) as server,
        anthropic.Anthropic(base_url=server.anthropic_url, api_key=KEY, max_retries=0) as client,
        client.messages.stream(
            model="m", max_tokens=100, messages=[{"role": "user", "content": "Which wood?"}]
        ) as stream,
    ):
        found = stream.get_final_message()

    text, call = found.content
    assert text.text == SAID.text
    assert (call.id, call.name, call.input) == ("call_1", "memory_search", {"query": "wood"})
    assert found.stop_reason == "tool_use"
    assert (found.usage.input_tokens, found.usage.output_tokens) == (120, 30)
