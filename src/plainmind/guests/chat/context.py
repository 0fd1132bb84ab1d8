"""A model's context: what it is given of a conversation, and how full it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from plainmind.agent.recall import new_nonce
from plainmind.base.value import value
from plainmind.guests.chat.model import FAILED, Message, ToolCall
from plainmind.sessions.entries import SPEAKERS, storable, text_of
from plainmind.text.chunking import estimated_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class RoomSettings:
    """How full a context may become."""

    context_window: int
    reserve_tokens_floor: int = 20_000
    soft_threshold_tokens: int = 4_000
    flush_enabled: bool = True

    @property
    def compacts_above(self) -> int:
        """Tokens that may be used before the context is compacted; of a window below the reserve, half of it."""
        room = self.context_window - self.reserve_tokens_floor
        return room if room > 0 else self.context_window // 2

    @property
    def flushes_above(self) -> int:
        """Tokens that may be used before what lasts is saved."""
        room = self.context_window - self.reserve_tokens_floor - self.soft_threshold_tokens
        return room if room > 0 else max(1, self.compacts_above * 9 // 10)


def flush_due(entry: Mapping[str, Any], settings: RoomSettings, *, is_writable: bool) -> bool:
    """Whether what lasts should be saved now: once in a compaction cycle, before the context is compacted.

    What has failed is tried once more: when the context is about to be compacted.
    """
    if not settings.flush_enabled or not is_writable or is_flushed(entry):
        return False
    if _has_failed(entry):
        return compaction_due(entry, settings)
    return _count(entry, "totalTokens") > settings.flushes_above


def compaction_due(entry: Mapping[str, Any], settings: RoomSettings) -> bool:
    """Whether the context has to be compacted now."""
    return _count(entry, "totalTokens") > settings.compacts_above


def is_flushed(entry: Mapping[str, Any]) -> bool:
    """Whether the flush of this compaction cycle is done."""
    flushed = entry.get("memoryFlushCompactionCount")
    return isinstance(flushed, int) and flushed == _count(entry, "compactionCount")


def _has_failed(entry: Mapping[str, Any]) -> bool:
    failure = entry.get("memoryFlushFailure")
    return isinstance(failure, dict) and failure.get("compactionCount") == _count(entry, "compactionCount")


def _count(entry: Mapping[str, Any], name: str) -> int:
    found = entry.get(name)
    return int(found) if isinstance(found, int | float) and not isinstance(found, bool) else 0


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


_MOST_CHARS_OF_A_RESULT = 2_000
_MOST_CHARS_OF_A_MESSAGE = 40_000
_LEFT_OUT = "[the beginning is left out]"


def retold(messages: Sequence[Message], *, most_tokens: int, heading: str = "") -> str:
    """Tell messages between marks that they cannot forge; of more than fits, the latest are told."""
    nonce = new_nonce()
    lines: list[str] = []
    left = most_tokens
    for message in reversed(messages):
        told = [line.replace(nonce, "") for line in _told(message)]
        left -= sum(map(estimated_tokens, told))
        if left < 0 and lines:
            lines.append(_LEFT_OUT)
            break
        lines += reversed(told)
    text = "\n\n".join((*([heading.replace(nonce, "")] if heading else []), *reversed(lines)))
    return f"<conversation {nonce}>\n{text}\n</conversation {nonce}>"


def cut(text: str, most_chars: int) -> str:
    """Shorten a text in its middle, and say so."""
    if len(text) <= most_chars:
        return text
    half = most_chars // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[len(text) - half :]}"


def _told(message: Message) -> Iterable[str]:
    role, content = message.get("role"), message.get("content")
    text = text_of(content).strip()
    if role == "toolResult":
        yield f"Result of {message.get('toolName') or 'a tool'}: {cut(text, _MOST_CHARS_OF_A_RESULT)}"
        return
    if text:
        speaker = SPEAKERS.get(role) if isinstance(role, str) else None
        yield f"{speaker or 'Note'}: {cut(text, _MOST_CHARS_OF_A_MESSAGE)}"
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "toolCall":
            given = block.get("arguments")
            asked = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
            yield f"Assistant used {block.get('name')}: {cut(storable(asked), _MOST_CHARS_OF_A_RESULT)}"


def with_reminder(messages: Sequence[Message], reminder: str) -> tuple[Message, ...]:
    """Put a reminder before what the user said last."""
    if not reminder:
        return tuple(messages)
    users = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    at = users[-1] if users else 0
    return (*messages[:at], {"role": "user", "content": reminder}, *messages[at:])
