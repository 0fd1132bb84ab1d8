"""A conversation as one text, for a model that reads it instead of having it: oldest first, and no longer than fits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from plainmind.agent.recall import new_nonce
from plainmind.guests.chat.models.protocol import Message
from plainmind.sessions.entries import SPEAKERS, storable, text_of
from plainmind.text.chunking import estimated_tokens

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
