"""What a model is given of a conversation: calls with their results, or neither, up to what it is to answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.guests.chat.models.protocol import FAILED, Message, ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTERRUPTED = (
    "The program ended while this was under way: it may be done or not. Look before you do it again."
)


def calls_in(message: Message) -> tuple[ToolCall, ...]:
    """What an assistant's message wants done."""
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return ()
    return tuple(
        ToolCall(str(block.get("id")), str(block.get("name")), block.get("arguments") or {})
        for block in content
        if isinstance(block, dict) and block.get("type") == "toolCall"
    )


def result_of(call: ToolCall, text: str, *, is_error: bool) -> dict[str, Any]:
    """The result of a call as transcripts keep it."""
    return {
        "role": "toolResult",
        "toolCallId": call.id,
        "toolName": call.name,
        "content": [{"type": "text", "text": text}],
        "isError": is_error,
    }


def is_answer(message: Message) -> bool:
    """Whether a message ends a turn: an assistant's that wants nothing done and did not break off."""
    is_whole = message.get("role") == "assistant" and message.get("stopReason") != FAILED
    return is_whole and not calls_in(message)


def to_answer(messages: Sequence[Message]) -> Sequence[Message]:
    """Leave out an answer at the end that broke off: a model would have to go on with it, and some refuse to."""
    ends = len(messages)
    while ends and messages[ends - 1].get("stopReason") == FAILED and not calls_in(messages[ends - 1]):
        ends -= 1
    return messages[:ends]


def unfinished(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls at the end of a conversation that have no result yet."""
    answered: set[object] = set()
    for message in reversed(messages):
        if message.get("role") != "toolResult":
            return tuple(call for call in calls_in(message) if call.id not in answered)
        answered.add(message.get("toolCallId"))
    return ()


def paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give every call its result directly behind it, one that says so where it was lost; drop what fits nowhere."""
    results = _results(messages)
    told: list[Message] = []
    for place, message in enumerate(messages):
        if message.get("role") == "toolResult" or _is_empty(message):
            continue
        told.append(message)
        told += [
            results.get((place, call.id)) or result_of(call, INTERRUPTED, is_error=True)
            for call in calls_in(message)
        ]
    return tuple(told)


def _results(messages: Sequence[Message]) -> dict[tuple[int, str], Message]:
    """The results by the place and the id of their call: there are servers that use an id in every turn again."""
    asked: dict[str, int] = {}
    results: dict[tuple[int, str], Message] = {}
    for place, message in enumerate(messages):
        asked |= {call.id: place for call in calls_in(message)}
        name = str(message.get("toolCallId"))
        if message.get("role") == "toolResult" and name in asked:
            results.setdefault((asked[name], name), message)
    return results


def _is_empty(message: Message) -> bool:
    content = message.get("content")
    return not content or (
        isinstance(content, list)
        and not any(
            isinstance(block, dict) and (block.get("text") or block.get("type") in {"toolCall", "image"})
            for block in content
        )
    )
