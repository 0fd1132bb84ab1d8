"""The content of messages, from the blocks of other programs to ours: `text`, `thinking`, `toolCall`, `image`."""

from __future__ import annotations

import json
from collections.abc import Callable

from plainmind.sessions.entries import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal")
_FILES = ("image", "input_image", "image_url", "document", "input_file", "file", "input_audio")
_CALLS = ("tool_use", "server_tool_use")


def blocks_of(content: object) -> list[Entry]:
    """Translate a message's content; what was in pictures and files stays in the original."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    blocks = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    return [block for block in map(_block, blocks) if block]


def text_block(text: str) -> Entry:
    """A block of plain text."""
    return {"type": "text", "text": text}


def thinking_block(text: str) -> Entry:
    """What a model thought."""
    return {"type": "thinking", "thinking": text}


def call_block(call_id: object, name: object, arguments: object) -> Entry:
    """A model's call of a tool; arguments that stand in a string are read."""
    return {
        "type": "toolCall",
        "id": call_id if isinstance(call_id, str) else "",
        "name": name if isinstance(name, str) else "",
        "arguments": _arguments(arguments),
    }


def tool_result(call_id: object, content: object, *, name: object = None, is_error: object = False) -> Entry:
    """A tool's answer, as a message of the role `toolResult`."""
    message: Entry = {"role": "toolResult", "toolCallId": call_id if isinstance(call_id, str) else ""}
    if isinstance(name, str) and name:
        message["toolName"] = name
    return message | {"content": blocks_of(content), "isError": is_error is True}


def words_of(content: object) -> str:
    """The plain text in a message's content."""
    return "\n".join(block["text"] for block in blocks_of(content) if block.get("type") == "text")


def _block(block: Any) -> Entry | None:
    if isinstance(block, str):
        return text_block(block) if block else None
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    translate = _BY_TYPE.get(kind) if isinstance(kind, str) else None
    return translate(block) if translate is not None else block


def _text(block: Entry) -> Entry | None:
    text = block.get("text", block.get("refusal"))
    return text_block(text) if isinstance(text, str) and text else None


def _thinking(block: Entry) -> Entry | None:
    text = block.get("thinking")
    return thinking_block(text) if isinstance(text, str) and text else None


def _call(block: Entry) -> Entry:
    return call_block(block.get("id"), block.get("name"), block.get("input"))


def _image(block: Entry) -> Entry:
    """Keep that there was a picture or a file, and of which kind: its bytes are no text."""
    source = block.get("source")
    found = source if isinstance(source, dict) else block
    kind = found.get("media_type", found.get("mimeType"))
    return {"type": "image", "mimeType": kind if isinstance(kind, str) else "", "isLeftOut": True}


def _arguments(given: object) -> object:
    if not isinstance(given, str):
        return {} if given is None else given
    try:
        found = json.loads(given, parse_constant=str)
    except (ValueError, RecursionError):
        return {"input": given}
    return found if isinstance(found, dict) else {"input": given}


_BY_TYPE: dict[str, Callable[[Entry], Entry | None]] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_FILES, _image),
    **dict.fromkeys(_CALLS, _call),
    "thinking": _thinking,
    "redacted_thinking": lambda _: None,  # only the provider can read it
}
