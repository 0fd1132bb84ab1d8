"""Our embedding model on loopback, in the protocol that most programs take: POST /v1/embeddings, as OpenAI has it.

Prints its address, and serves until its input ends. Peers that take an address are given this one, so that nobody's
answers are better or worse by the model alone.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from array import array
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from plainmind.embed.builtin import BuiltinEmbedder

MODEL = "plainmind-builtin"


def answer_of(request: dict[str, Any], embedder: BuiltinEmbedder) -> dict[str, Any]:
    """The vectors of all texts of a request; a text without words gets one that is near nothing."""
    texts: Sequence[str] = [request["input"]] if isinstance(request["input"], str) else request["input"]
    dims = embedder.identity.dims
    assert dims is not None
    blank = array("f", [1.0, *[0.0] * (dims - 1)])
    vectors = [vector or blank for vector in embedder.embed_documents(texts)]
    packed = request.get("encoding_format") == "base64"
    rows = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector.tobytes()).decode() if packed else list(vector),
        }
        for index, vector in enumerate(vectors)
    ]
    used = sum(map(len, texts)) // 4
    return {
        "object": "list",
        "model": request.get("model", MODEL),
        "data": rows,
        "usage": {"prompt_tokens": used, "total_tokens": used},
    }


def serve() -> ThreadingHTTPServer:
    """Listen on a free port, in a thread of its own."""
    embedder = BuiltinEmbedder()
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            with turn:
                body = json.dumps(answer_of(json.loads(raw), embedder)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    embedder.embed_documents(["one " * 20_000])  # opens the model, and numpy for it
    threading.Thread(target=server.serve_forever, name="embedder", daemon=True).start()
    return server


if __name__ == "__main__":
    print(f"http://127.0.0.1:{serve().server_port}/v1", flush=True)
    sys.stdin.read()
