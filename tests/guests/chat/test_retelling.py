"""A conversation as one text: between marks, oldest first, and no longer than fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plainmind.agent.tools import TOOLS
from plainmind.guests.chat.context import cut, retold
from plainmind.guests.chat.model import Reply, Request, ToolCall, estimated_usage, tokens_in
from plainmind.text.chunking import estimated_tokens

SAID = (
    {"role": "user", "content": "Which wood?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "secret thought"},
            {"type": "toolCall", "id": "c", "name": "memory_search", "arguments": {"query": "wood"}},
        ],
    },
    {"role": "toolResult", "toolName": "memory_search", "content": [{"type": "text", "text": "Larch."}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Larch."}]},
)


def test_everything_that_was_said_and_done_is_told_in_order():
    told = retold(SAID, most_tokens=1000, heading="Earlier: oak.").split("\n\n")

    assert told[0].endswith("Earlier: oak.")
    assert told[1:4] == [
        "User: Which wood?",
        'Assistant used memory_search: {"query": "wood"}',
        "Result of memory_search: Larch.",
    ]
    assert told[4].startswith("Assistant: Larch.")
    assert "secret thought" not in "".join(told)


def test_of_more_than_fits_the_latest_is_told():
    many = [{"role": "user", "content": f"turn {number} " + "x" * 400} for number in range(100)]

    told = retold(many, most_tokens=1000)

    assert "turn 99 " in told
    assert "turn 0 " not in told
    assert "[the beginning is left out]" in told
    assert estimated_tokens(told) < 1200


def test_a_message_that_is_too_long_alone_is_told_in_part():
    told = retold([{"role": "user", "content": "a" * 5_000_000}], most_tokens=10)

    assert "characters left out" in told
    assert len(told) < 50_000


def test_a_cut_text_keeps_both_ends():
    assert cut("abc", 3) == "abc"
    text = cut("a" * 50 + "b" * 50, 20)
    assert text.startswith("a" * 10)
    assert text.endswith("b" * 10)
    assert "80 characters" in text


@given(st.lists(st.text(), max_size=4))
def test_the_marks_stand_at_both_ends_alone(texts):
    told = retold([{"role": "user", "content": text} for text in texts], most_tokens=100_000)
    mark = told.partition("\n")[0].removeprefix("<conversation ").removesuffix(">")

    assert told.count(mark) == 2
    assert told.endswith(f"</conversation {mark}>")


def test_tokens_are_guessed_from_everything_that_is_sent():
    bare = Request("", ({"role": "user", "content": "x" * 400},))
    equipped = Request("y" * 400, bare.messages, TOOLS)

    assert 100 <= estimated_usage(bare, Reply("")).input < 120
    assert estimated_usage(equipped, Reply("")).input > 700
    assert (
        estimated_usage(bare, Reply("z" * 400, (ToolCall("c", "memory_append", {"text": "w" * 400}),))).output
        > 200
    )
    assert tokens_in({"role": "user", "content": [{"type": "image", "data": "A" * 1_000_000}]}) < 3000
