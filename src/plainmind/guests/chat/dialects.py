"""The languages of chat endpoints: how a request is written, and how a stream of events becomes an answer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from plainmind.base.lazy import pattern
from plainmind.base.value import replace, value
from plainmind.guests.chat.model import (
    LENGTH,
    STOPPED,
    TOOL_USE,
    ChatModelSettings,
    Message,
    Reply,
    Request,
    ToolCall,
    Usage,
    estimated_usage,
)
from plainmind.guests.net.failures import AnswerUnreadable
from plainmind.sessions.entries import storable, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.agent.tools import Tool


# --- server-sent events: bytes as they come in, events as they are complete ---


LARGEST_EVENT = 32 * 1024 * 1024


class EventTooLarge(Exception):
    """An event that has no end."""


@value
class ServerEvent:
    """One event: its name, `message` when it has none, and its data."""

    name: str
    data: str


class EventReader:
    """Cuts a stream into events. Bytes may be cut anywhere, also inside of a character or a line end."""

    def __init__(self) -> None:
        self._rest = b""
        self._after_return = False  # the last piece ended with CR: an LF that follows belongs to it
        self._is_first = True
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Give the events that are complete now. Raises EventTooLarge."""
        for line in self._lines(piece):
            event = self._take(line)
            if event is not None:
                yield event

    def finish(self) -> Iterator[ServerEvent]:
        """Give the last event, of a stream that ends without the blank line after it."""
        if self._rest:
            self._take(self._rest.decode("utf-8", "replace"))
            self._rest = b""
        event = self._take("")
        if event is not None:
            yield event

    def _lines(self, piece: bytes) -> Iterator[str]:
        if self._after_return and piece.startswith(b"\n"):
            piece, self._after_return = piece[1:], False
        if piece:
            self._after_return = piece.endswith(b"\r")
        if b"\n" not in piece and b"\r" not in piece:
            self._rest += piece
            self._check_size(len(self._rest))
            return
        # Only whole lines are decoded: a character is never cut.
        *whole, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")

    def _take(self, line: str) -> ServerEvent | None:
        if self._is_first:
            line, self._is_first = line.removeprefix("\ufeff"), False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
            self._check_size(self._size)
        elif name == "event":
            self._name = value
        return None  # comments, which keep a connection alive, and fields that we have no use for

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._name or "message", self._data
        self._name, self._data, self._size = "", [], 0
        return ServerEvent(name, "\n".join(data)) if data else None

    def _check_size(self, size: int) -> None:
        if size > LARGEST_EVENT:
            raise EventTooLarge


# --- what a language must say ---


class ErrorSent(Exception):
    """The endpoint reported an error in the middle of a stream, as if with `status`."""

    def __init__(self, status: int, payload: object) -> None:
        super().__init__(status)
        self.status = status
        self.payload = payload


class AnswerReader(Protocol):
    """One answer while it comes in."""

    @property
    def is_complete(self) -> bool:
        """Whether the endpoint has said that nothing follows."""

    @property
    def has_ended(self) -> bool:
        """Whether the model came to an end: some endpoints then just hang up."""

    def take(self, event: ServerEvent) -> str:
        """Read one event; the text to show, or "". Raises AnswerUnreadable or ErrorSent."""

    def take_whole(self, payload: Mapping[str, Any]) -> str:
        """Read an answer that came in one piece, from a server that does not stream."""

    def reply(self, request: Request) -> Reply:
        """What was said so far."""


class Dialect(Protocol):
    """One language of chat endpoints."""

    name: str
    default_base_url: str
    key_variable: str
    default_context_window: int

    def path(self, base_url: str) -> str:
        """Where it is asked, beneath the base URL."""

    def headers(self, key: str) -> Mapping[str, str]:
        """How the key is shown; it may be empty."""

    def body(self, request: Request, settings: ChatModelSettings) -> dict[str, Any]:
        """Write a request."""

    def reader(self) -> AnswerReader:
        """Begin to read an answer."""


def payload_of(event: ServerEvent) -> dict[str, Any]:
    """Read the JSON object of an event. Raises AnswerUnreadable."""
    try:
        payload = json.loads(event.data)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise AnswerUnreadable("the endpoint streams something that is not JSON")
    return payload


def call_of(call_id: str, name: str, arguments: str) -> ToolCall:
    """Make a tool call; arguments that are no JSON object stay the text that they are, for the tool to complain of."""
    try:
        read: Any = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        read = None
    return ToolCall(
        storable(call_id) or f"call_{os.urandom(8).hex()}",
        storable(name),
        read if isinstance(read, dict) else storable(arguments),
    )


def count_in(found: Mapping[str, Any], *names: str) -> int:
    """The first of some counters that is there and is a number."""
    for name in names:
        count = found.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 10**12:
            return count
    return 0


def object_in(found: Any, name: str) -> dict[str, Any]:
    """The object of that name, or an empty one."""
    inner = found.get(name) if isinstance(found, Mapping) else None
    return inner if isinstance(inner, dict) else {}


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """The content of a message as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


class _Reader:
    """What is known of one answer while it comes in."""

    def __init__(self) -> None:
        self.is_complete = False
        self._texts: list[str] = []
        self._stop = ""

    @property
    def has_ended(self) -> bool:
        """Whether the model came to an end, though the stream did not say so."""
        return bool(self._stop)


# --- Chat Completions, as OpenAI and most other servers speak it ---


_OPENAI_STOPS = {"length": LENGTH, "tool_calls": TOOL_USE, "function_call": TOOL_USE}


class OpenAIDialect:
    """Writes and reads Chat Completions."""

    name = "openai"
    default_base_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    default_context_window = 128_000

    def path(self, base_url: str) -> str:  # noqa: ARG002 (always the same)
        """Where it is asked, beneath the base URL."""
        return "chat/completions"

    def headers(self, key: str) -> Mapping[str, str]:
        """How the key is shown, if there is one."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request, settings: ChatModelSettings) -> dict[str, Any]:
        """Write a request."""
        own = settings.base_url is None or settings.base_url.rstrip("/") == self.default_base_url
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [*system, *_openai_messages(request.messages)],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = _functions(request.tools, strict=own)
        if settings.max_output_tokens is not None:
            # OpenAI's own newer models refuse the old name, most other servers know no other.
            body["max_completion_tokens" if own else "max_tokens"] = settings.max_output_tokens
        return body

    def reader(self) -> AnswerReader:
        """Begin to read an answer."""
        return _OpenAIReader()


def _functions(tools: tuple[Tool, ...], *, strict: bool) -> list[dict[str, Any]]:
    """The tools: strict for OpenAI itself, and for others plain schemas, which all of them understand."""
    from plainmind.agent.tools import for_anthropic, for_openai_chat

    if strict:
        return for_openai_chat(tools)
    return [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["input_schema"],
            },
        }
        for tool in for_anthropic(tools)
    ]


def _openai_messages(messages: tuple[Message, ...]) -> Iterator[dict[str, Any]]:
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            yield _assistant(blocks_of(content))
        elif role == "toolResult":
            yield {"role": "tool", "tool_call_id": message.get("toolCallId"), "content": text_of(content)}
        else:
            yield {"role": "user", "content": _user_content(content)}


def _assistant(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    calls = [
        {
            "id": block.get("id"),
            "type": "function",
            "function": {
                "name": block.get("name"),
                "arguments": given
                if isinstance(given := block.get("arguments"), str)
                else json.dumps(given or {}, ensure_ascii=False),
            },
        }
        for block in blocks
        if block.get("type") == "toolCall"
    ]
    text = text_of(blocks)
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None}
    return message | ({"tool_calls": calls} if calls else {})


def _user_content(content: Any) -> Any:
    images = [block for block in blocks_of(content) if block.get("type") == "image"]
    if not images:
        return text_of(content)
    parts: list[dict[str, Any]] = [{"type": "text", "text": text_of(content)}]
    for image in images:
        url = f"data:{image.get('mimeType')};base64,{image.get('data')}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


class _OpenAIReader(_Reader):
    """One answer in chunks of a completion."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[_Call] = []
        self._usage: Usage | None = None

    def take(self, event: ServerEvent) -> str:
        if event.data.strip() == "[DONE]":
            self.is_complete = True
            return ""
        payload = payload_of(event)
        if payload.get("error"):
            raise ErrorSent(200, payload)
        if isinstance(payload.get("usage"), dict):
            self._usage = _openai_usage(payload["usage"])
        choices = payload.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        return self._take_choice(choice, object_in(choice, "delta"))

    def take_whole(self, payload: Mapping[str, Any]) -> str:
        choices = payload.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if isinstance(payload.get("usage"), dict):
            self._usage = _openai_usage(payload["usage"])
        self.is_complete = True
        return self._take_choice(choice, object_in(choice, "message"))

    def reply(self, request: Request) -> Reply:
        calls = tuple(
            call_of(call.id, call.name, "".join(call.arguments)) for call in self._calls if call.name
        )
        stop = _OPENAI_STOPS.get(self._stop, STOPPED)
        reply = Reply(
            storable("".join(self._texts)), calls, stop=TOOL_USE if calls and stop == STOPPED else stop
        )
        return replace(reply, usage=self._usage or estimated_usage(request, reply))

    def _take_choice(self, choice: Any, said: Mapping[str, Any]) -> str:
        stop = choice.get("finish_reason") if isinstance(choice, dict) else None
        self._stop = stop if isinstance(stop, str) else self._stop
        calls = said.get("tool_calls")
        for number, part in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(part, dict):
                self._take_call(part, number)
        texts = [said.get(name) for name in ("content", "refusal")]
        text = "".join(text for text in texts if isinstance(text, str))
        self._texts.append(text)
        return text

    def _take_call(self, part: Mapping[str, Any], number: int) -> None:
        """Add a piece of a call. Some servers give every call the same index, and only its id tells them apart."""
        index = part.get("index")
        index = index if isinstance(index, int) else number
        name, arguments = (
            object_in(part, "function").get("name"),
            object_in(part, "function").get("arguments"),
        )
        found = next((call for call in reversed(self._calls) if call.index == index), None)
        call_id = part.get("id")
        if found is None or (isinstance(call_id, str) and call_id and found.id and call_id != found.id):
            found = _Call(index)
            self._calls.append(found)
        if isinstance(call_id, str) and not found.id:
            found.id = call_id
        if isinstance(name, str) and not found.name:
            found.name = name
        if isinstance(arguments, str):
            found.arguments.append(arguments)
        elif isinstance(arguments, dict):
            found.arguments = [json.dumps(arguments)]


class _Call:
    """A tool call in pieces."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


def _openai_usage(found: Mapping[str, Any]) -> Usage | None:
    read, written = count_in(found, "prompt_tokens"), count_in(found, "completion_tokens")
    cached = min(read, count_in(object_in(found, "prompt_tokens_details"), "cached_tokens"))
    return Usage(read - cached, written, cache_read=cached) if read or written else None


# --- Anthropic's Messages ---


_VERSION = "2023-06-01"
_USUAL_MOST_TOKENS = 8192
_ANTHROPIC_STOPS = {"max_tokens": LENGTH, "model_context_window_exceeded": LENGTH, "tool_use": TOOL_USE}
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

        messages = _anthropic_messages(request.messages)
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
        return _AnthropicReader()


def _anthropic_messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
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


class _AnthropicReader(_Reader):
    """One answer in blocks."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[int, tuple[str, str, list[str]]] = {}  # index → id, name, pieces of arguments
        self._usage: dict[str, Any] = {}

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
        reply = Reply(storable("".join(self._texts)), calls, stop=_ANTHROPIC_STOPS.get(self._stop, STOPPED))
        return replace(reply, usage=_anthropic_usage(self._usage) or estimated_usage(request, reply))

    def _begin(self, index: object, block: Mapping[str, Any]) -> str:
        if block.get("type") == "tool_use" and isinstance(index, int):
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


def _anthropic_usage(found: Mapping[str, Any]) -> Usage | None:
    usage = Usage(
        input=count_in(found, "input_tokens"),
        output=count_in(found, "output_tokens"),
        cache_read=count_in(found, "cache_read_input_tokens"),
        cache_write=count_in(found, "cache_creation_input_tokens"),
    )
    return usage if usage.total else None
