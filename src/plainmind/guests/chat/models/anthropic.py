"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plainmind.base.lazy import pattern
from plainmind.base.value import replace
from plainmind.guests.chat.models.dialect import (
    AnswerReader,
    ErrorSent,
    blocks_of,
    call_of,
    count_in,
    object_in,
    payload_of,
)
from plainmind.guests.chat.models.protocol import (
    LENGTH,
    STOPPED,
    TOOL_USE,
    ChatModelSettings,
    Message,
    Reply,
    Request,
    Usage,
    estimated_usage,
)
from plainmind.guests.net.events import ServerEvent
from plainmind.sessions.entries import storable, text_of

_VERSION = "2023-06-01"
_USUAL_MOST_TOKENS = 8192
_STOPS = {"max_tokens": LENGTH, "model_context_window_exceeded": LENGTH, "tool_use": TOOL_USE}
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_FOREIGN = pattern(r"[^A-Za-z0-9_-]")
_CACHED = {"cache_control": {"type": "ephemeral"}}


class AnthropicDialect:
    """Writes and reads Messages."""

    name = "anthropic"
    default_base_url = "https://api.anthropic.com"
    key_variable = "ANTHROPIC_API_KEY"
    default_context_window = 200_000

    def path(self, base_url: str) -> str:
        """Where it is asked, beneath a base URL that is written with the version or without it."""
        return "messages" if base_url.rstrip("/").endswith("/v1") else "v1/messages"

    def headers(self, key: str) -> Mapping[str, str]:
        """How the key is shown, if there is one."""
        return {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})

    def body(self, request: Request, settings: ChatModelSettings) -> dict[str, Any]:
        """Write a request. What does not change from turn to turn is marked, so that it is paid for once."""
        from plainmind.agent.tools import for_anthropic

        messages = _messages(request.messages)
        if messages:
            messages[-1]["content"][-1] |= _CACHED
        body: dict[str, Any] = {
            "model": settings.model,
            "max_tokens": settings.max_output_tokens or _USUAL_MOST_TOKENS,
            "messages": messages,
            "stream": True,
        }
        if request.system:
            body["system"] = [{"type": "text", "text": request.system} | _CACHED]
        if request.tools:
            body["tools"] = for_anthropic(request.tools)
        return body

    def reader(self) -> AnswerReader:
        """Begin to read an answer."""
        return _Reader()


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Write messages; what one side said in a row becomes one message, as tool results must be."""
    written: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.get("role") == "assistant" else "user"
        blocks = _blocks(message)
        if not blocks:
            continue
        if written and written[-1]["role"] == role:
            written[-1]["content"] += blocks
        else:
            written.append({"role": role, "content": blocks})
    return written


def _blocks(message: Message) -> list[dict[str, Any]]:
    content = message.get("content")
    if message.get("role") == "toolResult":
        result = {
            "type": "tool_result",
            "tool_use_id": _id(message.get("toolCallId")),
            "content": text_of(content),
        }
        return [result | ({"is_error": True} if message.get("isError") else {})]
    written = (_block(block) for block in blocks_of(content))
    return [block for block in written if block is not None]


def _block(block: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str) and block["text"].strip():
        return {"type": "text", "text": storable(block["text"])}
    if kind == "toolCall":
        given = block.get("arguments")
        return {
            "type": "tool_use",
            "id": _id(block.get("id")),
            "name": block.get("name"),
            "input": given if isinstance(given, dict) else {},
        }
    if kind == "image":
        source = {"type": "base64", "media_type": block.get("mimeType"), "data": block.get("data")}
        return {"type": "image", "source": source}
    return None


def _id(found: object) -> str:
    """Another provider's id may have characters that are refused here."""
    return _FOREIGN.sub("_", str(found)) or "_"


class _Reader:
    """One answer while it comes in."""

    def __init__(self) -> None:
        self.is_complete = False
        self._texts: list[str] = []
        self._calls: dict[int, tuple[str, str, list[str]]] = {}  # index → id, name, pieces of arguments
        self._usage: dict[str, Any] = {}
        self._stop = ""

    @property
    def has_ended(self) -> bool:
        """Whether the model came to an end, though the stream did not say so."""
        return bool(self._stop)

    def take(self, event: ServerEvent) -> str:
        payload = payload_of(event)
        match payload.get("type"):
            case "error":
                kind = object_in(payload, "error").get("type")
                raise ErrorSent(_STATUS.get(str(kind), 500), payload)
            case "message_start":
                self._count(object_in(object_in(payload, "message"), "usage"))
            case "content_block_start":
                return self._begin(payload.get("index"), object_in(payload, "content_block"))
            case "content_block_delta":
                return self._go_on(payload.get("index"), object_in(payload, "delta"))
            case "message_delta":
                self._end(object_in(payload, "delta").get("stop_reason"))
                self._count(object_in(payload, "usage"))
            case "message_stop":
                self.is_complete = True
        return ""

    def take_whole(self, payload: Mapping[str, Any]) -> str:
        content = payload.get("content")
        shown = [self._begin(index, block) for index, block in enumerate(blocks_of(content))]
        self._end(payload.get("stop_reason"))
        self._count(object_in(payload, "usage"))
        self.is_complete = True
        return "".join(shown)

    def reply(self, request: Request) -> Reply:
        calls = tuple(
            call_of(call_id, name, "".join(pieces))
            for _, (call_id, name, pieces) in sorted(self._calls.items())
            if name
        )
        reply = Reply(storable("".join(self._texts)), calls, stop=_STOPS.get(self._stop, STOPPED))
        return replace(reply, usage=_usage(self._usage) or estimated_usage(request, reply))

    def _begin(self, index: object, block: Mapping[str, Any]) -> str:
        if block.get("type") == "tool_use" and isinstance(index, int):
            import json

            given = block.get("input")
            pieces = [json.dumps(given)] if given else []
            self._calls[index] = (str(block.get("id") or ""), str(block.get("name") or ""), pieces)
            return ""
        if block.get("type") != "text":
            return ""
        between = "\n\n" if any(self._texts) else ""  # what stood between two texts was a block of its own
        return self._add_text(between + str(block.get("text") or ""))

    def _go_on(self, index: object, delta: Mapping[str, Any]) -> str:
        if delta.get("type") == "text_delta":
            return self._add_text(str(delta.get("text") or ""))
        piece = delta.get("partial_json")
        if isinstance(index, int) and index in self._calls and isinstance(piece, str):
            self._calls[index][2].append(piece)
        return ""

    def _add_text(self, text: str) -> str:
        self._texts.append(text)
        return text

    def _end(self, reason: object) -> None:
        self._stop = reason if isinstance(reason, str) else self._stop

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Later counts include what earlier ones had."""
        self._usage |= {name: count for name, count in usage.items() if count is not None}


def _usage(found: Mapping[str, Any]) -> Usage | None:
    usage = Usage(
        input=count_in(found, "input_tokens"),
        output=count_in(found, "output_tokens"),
        cache_read=count_in(found, "cache_read_input_tokens"),
        cache_write=count_in(found, "cache_creation_input_tokens"),
    )
    return usage if usage.total else None
