"""Tool calls and results: what a model is given has both, or neither."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plainmind.guests.chat.context import (
    INTERRUPTED,
    calls_in,
    is_answer,
    paired,
    result_of,
    to_answer,
    unfinished,
)
from plainmind.guests.chat.model import ToolCall


def user(text="hello"):
    return {"role": "user", "content": text}


def asking(*ids):
    calls = [{"type": "toolCall", "id": each, "name": "memory_search", "arguments": {}} for each in ids]
    return {"role": "assistant", "content": calls}


def result(call_id):
    return result_of(ToolCall(call_id, "memory_search", {}), f"result of {call_id}", is_error=False)


def test_a_whole_exchange_stays_as_it_is():
    messages = (user(), asking("a", "b"), result("a"), result("b"), user("thanks"))

    assert paired(messages) == messages


def test_a_lost_result_is_said_to_be_lost():
    told = paired([user(), asking("a", "b"), result("b"), user("go on")])

    assert [message.get("toolCallId") for message in told] == [None, None, "a", "b", None]
    assert told[2]["content"][0]["text"] == INTERRUPTED
    assert told[2]["isError"] is True


def test_a_result_without_its_call_is_dropped():
    assert paired([result("x"), user()]) == (user(),)


def test_a_result_that_comes_late_moves_to_its_call():
    told = paired([asking("a"), user("meanwhile"), result("a")])

    assert [message["role"] for message in told] == ["assistant", "toolResult", "user"]


def test_an_id_that_is_used_again_belongs_to_the_call_before_it():
    first, second = result("a") | {"content": "first"}, result("a") | {"content": "second"}
    messages = (user(), asking("a"), first, user(), asking("a"), second)

    assert paired(messages) == messages
    assert paired(messages[:2] + messages[3:])[2]["content"][0]["text"] == INTERRUPTED


def test_what_says_nothing_is_dropped():
    empty = [{"role": "assistant", "content": []}, {"role": "assistant", "content": ""}, {"role": "user"}]
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}

    assert paired([*empty, thought, user()]) == (user(),)


def test_only_the_calls_at_the_end_are_unfinished():
    assert unfinished([user(), asking("a", "b"), result("a")]) == (ToolCall("b", "memory_search", {}),)
    assert unfinished([user(), asking("a"), user()]) == ()
    assert unfinished([user(), asking("a"), result("a")]) == ()
    assert unfinished([]) == ()


_MESSAGES = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=3)),
        st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True).map(lambda ids: asking(*ids)),
        st.sampled_from("abcde").map(result),
    ),
    max_size=12,
)


@given(_MESSAGES)
def test_every_call_is_followed_by_its_results_and_every_result_has_its_call(messages):
    told = list(paired(messages))

    while told:
        message = told.pop(0)
        assert message["role"] != "toolResult"
        for call in calls_in(message):
            assert told.pop(0)["toolCallId"] == call.id


def test_an_answer_that_broke_off_is_none_and_is_not_gone_on_with():
    half = {"role": "assistant", "content": [{"type": "text", "text": "Larch is"}], "stopReason": "error"}
    whole = half | {"stopReason": "stop"}

    assert [is_answer(message) for message in (half, whole, asking("a"), user())] == [
        False,
        True,
        False,
        False,
    ]
    assert to_answer([user(), half, half]) == [user()]
    assert to_answer([user(), half, user()]) == [user(), half, user()]
    assert to_answer([user(), whole]) == [user(), whole]
