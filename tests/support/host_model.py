"""A server on this machine that plays the models of Anthropic, OpenAI and Google for real hosts, by a plan."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class HostModel:
    """Answers each request that offers tools with the next step of its plan, and keeps every request."""

    def __init__(self, port: int, *, answers_asides: bool) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._answers_asides = answers_asides
        self.requests: list[dict[str, Any]] = []
        self._steps: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def will(self, *steps: dict[str, Any]) -> None:
        """Say what comes next: `{"tool": name, "input": {…}}`, the name's end is enough, or `{"text": …}`."""
        with self._lock:
            self._steps = list(steps)
            self.requests.clear()

    @property
    def heard(self) -> str:
        """All that was sent since the plan was made, as one text with its newlines."""
        with self._lock:
            return "\n".join(json.dumps(request, ensure_ascii=False) for request in self.requests).replace(
                "\\n", "\n"
            )

    def heard_in_turns(self) -> list[str]:
        """The same, request by request, without the asides of a host."""
        with self._lock:
            turns = [request for request in self.requests if _offered(request)]
        return [json.dumps(request, ensure_ascii=False).replace("\\n", "\n") for request in turns]

    def step_for(self, body: dict[str, Any]) -> dict[str, Any]:
        """What to answer; a request without tools is an aside of a host, and takes no step there."""
        offered = _offered(body)
        with self._lock:
            self.requests.append(body)
            if not offered and not self._answers_asides:
                return {"text": "A title"}
            if not self._steps:
                return {"text": "There is no more in the plan."}
            step = self._steps[0]
            called = step if "tool" not in step else _called(step, offered)
            if called.get("tool") != "ToolSearch":  # which only looks for the tool, and is answered first
                self._steps.pop(0)
            return called


def _called(step: dict[str, Any], offered: list[tuple[str, str | None]]) -> dict[str, Any]:
    """The call of a tool as this host wants it."""
    names = [name for name, _ in offered]
    for name, namespace in offered:
        if name.endswith(step["tool"]):
            return step | {"tool": name, "namespace": namespace}
    if "ToolSearch" in names:
        return {"tool": "ToolSearch", "input": {"query": step["tool"], "max_results": 5}}
    if "tool_call" in names:  # OpenClaw has them behind a tool of its own
        return {"tool": "tool_call", "input": {"id": step["tool"], "args": step["input"]}}
    return {"text": f"NOT OFFERED: {step['tool']} among {names}"}


def _offered(body: dict[str, Any]) -> list[tuple[str, str | None]]:
    """The names of all tools in a request of any of the three, with the space that they stand in."""
    found: list[tuple[str, str | None]] = []
    for tool in body.get("tools") or ():
        if tool.get("type") == "namespace":
            found += [(each["name"], tool["name"]) for each in tool.get("tools", ())]
        elif "functionDeclarations" in tool:
            found += [(each["name"], None) for each in tool["functionDeclarations"]]
        elif isinstance(tool.get("function"), dict):
            found.append((tool["function"]["name"], None))
        elif tool.get("name"):
            found.append((tool["name"], None))
    return found


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


@contextmanager
def playing_model(*, answers_asides: bool = False) -> Iterator[HostModel]:
    """Run the server on a free port. With `answers_asides` a request without tools takes a step too."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.model = HostModel(server.server_port, answers_asides=answers_asides)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.model  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        models = [{"id": name, "object": "model", "type": "model"} for name in ("gpt-5", "claude-sonnet-4-5")]
        self._json({"object": "list", "data": models, "models": [], "has_more": False})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "zstd":
            import zstandard

            data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
        try:
            body = json.loads(data)
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        if "ount" in path and "oken" in path:  # how many tokens a request has
            self._json({"input_tokens": len(data) // 4, "totalTokens": len(data) // 4})
        elif path.endswith("/messages"):
            self._anthropic(body, self._step(body))
        elif path.endswith("/responses"):
            self._responses(body, self._step(body))
        elif path.endswith("/chat/completions"):
            self._chat(body, self._step(body))
        elif "enerateContent" in path:
            self._gemini(self._step(body), is_streamed="stream" in path)
        else:
            self._json({})

    def _step(self, body: dict[str, Any]) -> dict[str, Any]:
        step: dict[str, Any] = self.server.model.step_for(body)  # type: ignore[attr-defined]
        return step

    def _anthropic(self, body: dict[str, Any], step: dict[str, Any]) -> None:
        block: dict[str, Any] = {"type": "text", "text": step.get("text", "")}
        if "tool" in step:
            block = {"type": "tool_use", "id": _id("toolu"), "name": step["tool"], "input": step["input"]}
        stop = "tool_use" if "tool" in step else "end_turn"
        usage = {"input_tokens": step.get("tokens", 1000), "output_tokens": 20}
        message = {
            "id": _id("msg"), "type": "message", "role": "assistant", "model": body.get("model", "m"),
            "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        if not body.get("stream"):
            self._json(message)
            return
        if "tool" in step:
            begun = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        events = [
            {"type": "message_start", "message": message | {"content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": begun},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        self._stream([(event["type"], event) for event in events])

    def _responses(self, body: dict[str, Any], step: dict[str, Any]) -> None:
        item: dict[str, Any] = {
            "type": "message", "id": _id("msg"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": step.get("text", ""), "annotations": []}],
        }  # fmt: skip
        if "tool" in step:
            item = {
                "type": "function_call", "id": _id("fc"), "call_id": _id("call"), "name": step["tool"],
                "arguments": json.dumps(step["input"]), "status": "completed",
            }  # fmt: skip
            if step.get("namespace"):
                item["namespace"] = step["namespace"]
        tokens = step.get("tokens", 1000)
        usage = {
            "input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens + 10,
        }  # fmt: skip
        begun = {
            "id": _id("resp"), "object": "response", "created_at": 1, "model": body.get("model"), "output": [],
            "status": "in_progress", "usage": None, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        }  # fmt: skip
        done = begun | {"status": "completed", "output": [item], "usage": usage}
        if not body.get("stream"):
            self._json(done)
            return
        events = [
            {"type": "response.created", "response": begun},
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": item | {"status": "in_progress"},
            },
        ]
        if item["type"] == "message":
            events.append(
                {
                    "type": "response.output_text.delta",
                    "item_id": item["id"],
                    "output_index": 0,
                    "content_index": 0,
                    "delta": step["text"],
                    "logprobs": [],
                }
            )
        events += [
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]
        self._stream(
            [(event["type"], event | {"sequence_number": number}) for number, event in enumerate(events)]
        )

    def _chat(self, body: dict[str, Any], step: dict[str, Any]) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": step.get("text")}
        reason = "stop"
        if "tool" in step:
            call = {"name": step["tool"], "arguments": json.dumps(step["input"])}
            message["tool_calls"] = [{"index": 0, "id": _id("call"), "type": "function", "function": call}]
            reason = "tool_calls"
        usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
        common = {"id": _id("chatcmpl"), "created": 1, "model": body.get("model")}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._json(common | {"object": "chat.completion", "choices": [choice], "usage": usage})
            return
        common["object"] = "chat.completion.chunk"
        first = common | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}
        last = common | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}
        self._stream([(None, first), (None, last), (None, "[DONE]")])

    def _gemini(self, step: dict[str, Any], *, is_streamed: bool) -> None:
        part: dict[str, Any] = {"text": step.get("text", "")}
        if "tool" in step:
            part = {"functionCall": {"name": step["tool"], "args": step["input"]}}
        answer = {
            "candidates": [
                {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 10, "totalTokenCount": 1010},
            "modelVersion": "played",
        }
        if is_streamed:
            self._stream([(None, answer)])
        else:
            self._json(answer)

    def _json(self, found: Any) -> None:
        data = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: list[tuple[str | None, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, event in events:
            if name is not None:
                self.wfile.write(f"event: {name}\n".encode())
            told = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"data: {told}\n\n".encode())
        self.wfile.flush()
        self.close_connection = True
