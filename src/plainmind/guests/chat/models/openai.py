"""The Chat Completions API, as OpenAI and most other servers speak it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.agent.tools import Tool

_STOPS = {"length": LENGTH, "tool_calls": TOOL_USE, "function_call": TOOL_USE}


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
            "messages": [*system, *_messages(request.messages)],
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
        return _Reader()


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


def _messages(messages: tuple[Message, ...]) -> Iterator[dict[str, Any]]:
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            yield _assistant(blocks_of(content))
        elif role == "toolResult":
            yield {"role": "tool", "tool_call_id": message.get("toolCallId"), "content": text_of(content)}
        else:
            yield {"role": "user", "content": _user_content(content)}


def _assistant(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    import json

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


class _Reader:
    """One answer while it comes in."""

    def __init__(self) -> None:
        self.is_complete = False
        self._texts: list[str] = []
        self._calls: list[_Call] = []
        self._usage: Usage | None = None
        self._stop = ""

    def take(self, event: ServerEvent) -> str:
        if event.data.strip() == "[DONE]":
            self.is_complete = True
            return ""
        payload = payload_of(event)
        if payload.get("error"):
            raise ErrorSent(200, payload)
        if isinstance(payload.get("usage"), dict):
            self._usage = _usage(payload["usage"])
        choices = payload.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        return self._take_choice(choice, object_in(choice, "delta"))

    def take_whole(self, payload: Mapping[str, Any]) -> str:
        choices = payload.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if isinstance(payload.get("usage"), dict):
            self._usage = _usage(payload["usage"])
        self.is_complete = True
        return self._take_choice(choice, object_in(choice, "message"))

    @property
    def has_ended(self) -> bool:
        """Whether the model came to an end, though the stream did not say so."""
        return bool(self._stop)

    def reply(self, request: Request) -> Reply:
        calls = tuple(
            call_of(call.id, call.name, "".join(call.arguments)) for call in self._calls if call.name
        )
        stop = _STOPS.get(self._stop, STOPPED)
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
            import json

            found.arguments = [json.dumps(arguments)]


class _Call:
    """A tool call in pieces."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


def _usage(found: Mapping[str, Any]) -> Usage | None:
    read, written = count_in(found, "prompt_tokens"), count_in(found, "completion_tokens")
    cached = min(read, count_in(object_in(found, "prompt_tokens_details"), "cached_tokens"))
    return Usage(read - cached, written, cache_read=cached) if read or written else None
