"""A provider of embeddings on loopback that answers each request after a fixed time, and counts them.

Prints its address; when its input ends, how many requests came and how many of them at once at most.
"""

from __future__ import annotations

import hmac
import json
import math
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from zlib import crc32

DIMS = 256
SHAPES = 64  # different vectors; making one for each text would measure this program instead


def unit_vectors() -> list[str]:
    """Write the vectors down once, as they stand in answers."""
    chance = Random(7)
    rows = []
    for _ in range(SHAPES):
        row = [chance.gauss(0, 1) for _ in range(DIMS)]
        norm = math.hypot(*row)
        rows.append(json.dumps([round(number / norm, 7) for number in row]))
    return rows


class Counter:
    """How many requests came, and how many are being answered."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self.requests = self.most = self._now = 0

    def begin(self) -> None:
        """Count one more."""
        with self._turn:
            self.requests += 1
            self._now += 1
            self.most = max(self.most, self._now)

    def end(self) -> None:
        """Count one less under way."""
        with self._turn:
            self._now -= 1


def main(key: str, latency_s: float) -> None:
    """Serve until the input ends."""
    vectors, counter = unit_vectors(), Counter()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            started = time.monotonic()
            counter.begin()
            try:
                self._answer(started)
            finally:
                counter.end()

        def _answer(self, started: float) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            if not hmac.compare_digest(self.headers.get("Authorization", ""), f"Bearer {key}"):
                self.send_error(401)
                return
            texts = json.loads(raw)["input"]
            rows = (
                f'{{"index":{index},"embedding":{vectors[crc32(text.encode()) % SHAPES]}}}'
                for index, text in enumerate(texts)
            )
            used = sum(map(len, texts)) // 4
            body = f'{{"data":[{",".join(rows)}],"usage":{{"total_tokens":{used}}}}}'.encode()
            time.sleep(max(0.0, latency_s - (time.monotonic() - started)))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="provider", daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    sys.stdin.read()
    print(counter.requests, counter.most, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
