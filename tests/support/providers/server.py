"""A provider on loopback that speaks OpenAI's, Gemini's or Voyage's real wire format, and fails when told to.

Vectors come from the words of a text, so that texts which share words are near each other and every machine
computes the same: whoever gets a vector can check that it belongs to the text.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from array import array
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

KEY = "sk-loopback-0123456789abcdefghijklmnopqrstuvwxyz"
DIMS = 64
DIALECTS = ("openai", "gemini", "voyage")
_WORD = re.compile(r"\w+")

Fault = Callable[["Handler", dict[str, Any]], None]


def vector_for(text: str, dims: int = DIMS) -> list[float]:
    """What this provider answers for a text; not of unit length, as some providers' are not."""
    rows = [_shares(word, dims) for word in _WORD.findall(text.casefold())]
    return [0.001 + sum(column) for column in zip(*rows, strict=True)] or [0.001] * dims


@lru_cache(10_000)
def _shares(word: str, dims: int) -> tuple[float, ...]:
    """What a word adds to each dimension."""
    digest = b""
    while len(digest) * 2 < dims:
        digest += hashlib.sha256(word.encode("utf-8", "replace") + bytes([len(digest) // 32])).digest()
    return tuple(half - 7.5 for byte in digest for half in (byte >> 4, byte & 15))[:dims]


def unit_vector_for(text: str, dims: int = DIMS) -> array[float]:
    """What must come out of the embedder for a text."""
    vector = vector_for(text.encode("utf-8", "replace").decode(), dims)
    norm = math.hypot(*vector)
    return array("f", [value / norm for value in vector])


@dataclass(frozen=True, slots=True)
class JobView:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    texts: tuple[str, ...]
    mode: str | None
    payload: Any


@dataclass
class Provider:
    """What the server knows, expects and has seen; tests change it while it runs."""

    dialect: str
    key: str | None = KEY
    dims: int = DIMS
    latency_s: float = 0.0
    longest_text: int | None = None  # characters of one text, as a model's context
    poison: str | None = None  # a text with this word is refused
    fault: Fault | None = None  # instead of every answer
    script: list[Fault | None] = field(default_factory=list)  # instead of the next answers, before `fault`
    tells_usage: bool = True
    tells_index: bool = True
    packs: bool = True  # understands encoding_format
    seen: list[JobView] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    closing: threading.Event = field(default_factory=threading.Event)
    turn: threading.Lock = field(default_factory=threading.Lock)
    base_url: str = ""
    connections: int = 0

    def next_fault(self) -> Fault | None:
        with self.turn:
            return self.script.pop(0) if self.script else self.fault

    @property
    def texts(self) -> list[str]:
        """Every text that was asked for, as often as it was."""
        return [text for seen in self.seen for text in seen.texts]


class Handler(BaseHTTPRequestHandler):
    """Reads one request after the other on a connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = (
        True  # head and body are two writes: the second must not wait for an acknowledgement
    )
    provider: Provider

    def setup(self) -> None:
        super().setup()
        self.provider.connections += 1

    def do_POST(self) -> None:
        provider = self.provider
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with provider.turn:
            provider.in_flight += 1
            provider.most_in_flight = max(provider.most_in_flight, provider.in_flight)
        try:
            if provider.latency_s:
                provider.closing.wait(provider.latency_s)
            self._answer(json.loads(body))
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        finally:
            with provider.turn:
                provider.in_flight -= 1

    def _answer(self, payload: Any) -> None:
        provider = self.provider
        seen = _read(provider.dialect, urlsplit(self.path).path, dict(self.headers.items()), payload)
        with provider.turn:
            provider.seen.append(seen)
        refusal = self._refusal(seen)
        if refusal is not None:
            self.reply_json(*refusal)
            return
        answer = answer_to(provider, seen)
        fault = provider.next_fault()
        if fault is None:
            self.reply_json(200, answer)
        else:
            fault(self, answer)

    def _refusal(self, seen: JobView) -> tuple[int, Any] | None:
        provider = self.provider
        shown = self.headers.get("x-goog-api-key") or (self.headers.get("Authorization") or "")[7:]
        if provider.key is not None and shown != provider.key:
            return 401, {
                "error": {"message": f"Incorrect API key provided: {shown}", "code": "invalid_api_key"}
            }
        longest = max(map(len, seen.texts))
        if provider.longest_text is not None and longest > provider.longest_text:
            message = f"This model's maximum context length is {provider.longest_text} tokens"
            return 400, {"error": {"message": message, "type": "invalid_request_error"}}
        for text in seen.texts:
            if provider.poison is not None and provider.poison in text:
                return 400, {
                    "error": {"message": f"content not allowed: {text}", "type": "invalid_request_error"}
                }
        return None

    def reply_json(self, status: int, payload: Any, headers: dict[str, str] | None = None) -> None:
        self.reply(
            status, json.dumps(payload).encode(), {"Content-Type": "application/json", **(headers or {})}
        )

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _read(dialect: str, path: str, headers: dict[str, str], payload: Any) -> JobView:
    if dialect == "gemini":
        requests = payload["requests"] if path.endswith(":batchEmbedContents") else [payload]
        texts = tuple(request["content"]["parts"][0]["text"] for request in requests)
        return JobView(path, headers, texts, requests[0].get("taskType"), payload)
    assert path.endswith("/embeddings")
    return JobView(path, headers, tuple(payload["input"]), payload.get("input_type"), payload)


def answer_to(provider: Provider, seen: JobView) -> dict[str, Any]:
    """The right answer, in the dialect's own shape."""
    if provider.dialect == "gemini":
        asked = seen.payload.get("requests", [seen.payload])[0].get("outputDimensionality")
        vectors = [{"values": vector_for(text, asked or provider.dims)} for text in seen.texts]
        return {"embeddings": vectors} if "requests" in seen.payload else {"embedding": vectors[0]}
    dims = seen.payload.get("dimensions") or seen.payload.get("output_dimension") or provider.dims
    rows: list[dict[str, Any]] = []
    for index, text in enumerate(seen.texts):
        vector: Any = vector_for(text, dims)
        if provider.packs and seen.payload.get("encoding_format") == "base64":
            vector = b64encode(array("f", vector).tobytes()).decode()
        rows.append(
            {"object": "embedding", "embedding": vector} | ({"index": index} if provider.tells_index else {})
        )
    tokens = sum(max(1, len(text) // 4) for text in seen.texts)
    usage = {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}} if provider.tells_usage else {}
    return {"object": "list", "data": rows, "model": seen.payload["model"], **usage}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that goes away is what many tests are about


@contextmanager
def serving(provider: Provider) -> Iterator[Provider]:
    """Put a provider behind a port of this machine; `base_url` is where."""
    server = _Server(("127.0.0.1", 0), type("_Bound", (Handler,), {"provider": provider}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="loopback-provider")
    thread.start()
    version = "v1beta" if provider.dialect == "gemini" else "v1"
    provider.base_url = f"http://127.0.0.1:{server.server_port}/{version}"
    try:
        yield provider
    finally:
        provider.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """How near two unit vectors are."""
    return sum(a * b for a, b in zip(left, right, strict=True))
