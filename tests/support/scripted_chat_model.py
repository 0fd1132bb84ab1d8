"""A chat model on a loopback port that says what a test has written down: OpenAI's wire format, and Anthropic's.

    with scripted_model(lambda asked: Say("Larch.")) as model:
        ...  # model.openai_url, model.anthropic_url, model.asked

The script is a function from what was asked to what is said. `model.at` is called at every moment of an exchange, in
the thread of the server: "asked" before the first byte goes out, "speaking" in the middle, "said" behind the answer.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-scripted-0123456789"


@dataclass
class Call:
    """A tool call; `arguments` as an object, or as the very text that goes over the wire."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""


@dataclass
class Say:
    """What the model says: text, then calls. The other fields are what can go wrong on the way."""

    text: str = ""
    calls: Sequence[Call] = ()
    usage: tuple[int, int] | None = (100, 10)  # in, out; None: it is not said
    stop: str = ""
    status: int = 200
    body: Mapping[str, Any] | bytes | None = None  # sent as it is, instead of an answer
    headers: Mapping[str, str] = field(default_factory=dict)
    breaks_off: bool = False  # the connection ends in the middle
    error_in_stream: Mapping[str, Any] | None = None  # after the text
    streams: bool = True
    pause_s: float = 0.0  # in the middle
    pace_s: float = 0.0  # between any two pieces


@dataclass
class Asked:
    """One request, in words that fit both languages."""

    dialect: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def system(self) -> str:
        if self.dialect == "anthropic":
            return "".join(part["text"] for part in self.body.get("system", []))
        return "".join(m["content"] for m in self.body["messages"] if m["role"] == "system")

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        return [message for message in self.body["messages"] if message["role"] != "system"]

    @property
    def tools(self) -> list[str]:
        return [tool.get("name") or tool["function"]["name"] for tool in self.body.get("tools", [])]

    @property
    def kind(self) -> str:
        """`flush`, `compaction` or `turn`."""
        if "You keep the memory of an assistant" in self.system:
            return "flush"
        return "compaction" if "You shorten a conversation" in self.system else "turn"

    @property
    def text(self) -> str:
        """Everything that was said so far, as JSON."""
        return json.dumps(self.body["messages"], ensure_ascii=False)

    @property
    def last(self) -> str:
        """The words of the last message."""
        return words_of(self.messages[-1]) if self.messages else ""


def words_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(
        str(part.get("text") or part.get("content") or "") for part in content or () if isinstance(part, dict)
    )


Script = Callable[[Asked], Say]


class ScriptedModel:
    """What was asked so far, and where."""

    def __init__(self, script: Script, port: int) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.at: Callable[[str, Asked], None] = lambda _moment, _asked: None
        self.openai_url = f"http://127.0.0.1:{port}/v1"
        self.anthropic_url = f"http://127.0.0.1:{port}"
        self.turn = threading.Lock()
        self.is_over = threading.Event()

    def of_kind(self, kind: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.kind == kind]


@contextmanager
def scripted_model(script: Script) -> Iterator[ScriptedModel]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    model = ScriptedModel(script, server.server_address[1])
    server.model = model  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def in_order(*said: Say) -> Script:
    """Say one thing after the other; the last one again and again."""
    left = list(said)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):  # whoever asked was killed, or has heard enough
            super().handle()

    def do_POST(self) -> None:
        model: ScriptedModel = self.server.model  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        dialect = "anthropic" if self.path.endswith("/v1/messages") else "openai"
        asked = Asked(dialect, {name.lower(): value for name, value in self.headers.items()}, body)
        with model.turn:
            model.asked.append(asked)
            say = model.script(asked)
        if dialect == "openai" and self.path != "/v1/chat/completions":
            say = Say(status=404, body={"error": {"message": "no such path"}})
        model.at("asked", asked)
        if say.status != 200 or say.body is not None:
            self._whole(say.status, say.body if say.body is not None else {}, say.headers)
        elif not say.streams:
            self._whole(200, _WHOLE[dialect](say), say.headers)
        else:
            self._stream(asked, say, model)
        model.at("said", asked)

    def _whole(self, status: int, body: Mapping[str, Any] | bytes, headers: Mapping[str, str]) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, asked: Asked, say: Say, model: ScriptedModel) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        events = _EVENTS[asked.dialect](say)
        half = max(1, len(events) // 2)
        for number, event in enumerate(events):
            if number == half:
                model.at("speaking", asked)
                model.is_over.wait(say.pause_s)
                if say.breaks_off:
                    self.close_connection = True
                    self.connection.close()
                    return
            self._chunk(event)
            time.sleep(say.pace_s)
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _pieces(text: str) -> list[str]:
    size = max(7, len(text) // 50)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _as_text(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _sse(payload: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {payload if isinstance(payload, str) else json.dumps(payload)}\n\n".encode()


_CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "larch-1"}
_MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "larch-1",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
}


def _openai_events(say: Say) -> list[bytes]:
    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> bytes:
        return _sse(_CHUNK | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    events = [b": keep-alive\n\n", chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": piece}) for piece in _pieces(say.text)]
    for index, call in enumerate(say.calls):
        name = {"name": call.name, "arguments": ""}
        first = {"index": index, "id": call.id or f"call_{time.monotonic_ns()}_{index}", "type": "function"}
        events.append(chunk({"tool_calls": [{**first, "function": name}]}))
        events += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in _pieces(_as_text(call.arguments))
        ]
    if say.error_in_stream is not None:
        return [*events, _sse({"error": say.error_in_stream})]
    events.append(chunk({}, say.stop or ("tool_calls" if say.calls else "stop")))
    if say.usage is not None:
        read, written = say.usage
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        events.append(_sse(_CHUNK | {"choices": [], "usage": usage}))
    return [*events, _sse("[DONE]")]


def _openai_whole(say: Say) -> dict[str, Any]:
    calls = [
        {
            "id": call.id or f"call_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": _as_text(call.arguments)},
        }
        for index, call in enumerate(say.calls)
    ]
    message = {"role": "assistant", "content": say.text, "tool_calls": calls}
    usage = {"prompt_tokens": say.usage[0], "completion_tokens": say.usage[1]} if say.usage else None
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def _anthropic_events(say: Say) -> list[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return _sse({"type": kind, **fields}, kind)

    read, written = say.usage or (0, 0)
    began = _MESSAGE | {"usage": {"input_tokens": read, "output_tokens": 1}}
    events = [event("message_start", message=began), event("ping")]
    blocks: list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]] = []
    if say.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(say.text)]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for index, call in enumerate(say.calls):
        start = {
            "type": "tool_use",
            "id": call.id or f"toolu_{time.monotonic_ns()}_{index}",
            "name": call.name,
            "input": {},
        }
        pieces = [
            {"type": "input_json_delta", "partial_json": piece} for piece in _pieces(_as_text(call.arguments))
        ]
        blocks.append((start, pieces))
    for index, (start, deltas) in enumerate(blocks):
        events.append(event("content_block_start", index=index, content_block=start))
        events += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        events.append(event("content_block_stop", index=index))
    if say.error_in_stream is not None:
        return [*events, event("error", error=say.error_in_stream)]
    reason = say.stop or ("tool_use" if say.calls else "end_turn")
    events.append(
        event(
            "message_delta",
            delta={"stop_reason": reason, "stop_sequence": None},
            usage={"output_tokens": written},
        )
    )
    return [*events, event("message_stop")]


def _anthropic_whole(say: Say) -> dict[str, Any]:
    text = [{"type": "text", "text": say.text}] if say.text else []
    calls = [
        {"type": "tool_use", "id": call.id or f"toolu_{index}", "name": call.name, "input": call.arguments}
        for index, call in enumerate(say.calls)
    ]
    read, written = say.usage or (0, 0)
    usage = {"input_tokens": read, "output_tokens": written}
    return {"type": "message", "content": [*text, *calls], "stop_reason": "end_turn", "usage": usage}


_EVENTS = {"openai": _openai_events, "anthropic": _anthropic_events}
_WHOLE = {"openai": _openai_whole, "anthropic": _anthropic_whole}
