"""A model hub on this machine: the hub's real paths and headers, a second server for the bytes, and its faults."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

COMMIT = "a" * 40


@dataclass
class Asked:
    """One request as the server saw it."""

    server: str  # "hub" or "store"
    method: str
    path: str
    range: str | None
    authorization: str | None


@dataclass
class HubServer:
    """`files` by "org/repo/path". Large ones (`stored`) are redirected to the store, as the real hub does."""

    files: dict[str, bytes]
    stored: set[str] = field(default_factory=set)
    breaks_after: list[int] = field(
        default_factory=list
    )  # bytes of the next downloads before the line is cut
    statuses: list[int] = field(default_factory=list)  # of the next requests for bytes
    delivers: bytes | None = None  # other bytes than promised
    ignores_ranges: bool = False
    redirects_to: str | None = None
    promised_size: int | None = None
    private: bool = False
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._servers = [self._serve("hub"), self._serve("store")]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._servers[0].server_port}"

    def downloads(self) -> list[Asked]:
        return [one for one in self.asked if one.method == "GET" and one.server == "store"]

    def _serve(self, name: str) -> ThreadingHTTPServer:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                hub.answer(self, name)

            def do_GET(self) -> None:
                hub.answer(self, name)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                pass  # a client that has enough hangs up

        server = Server(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return server

    def answer(self, request: BaseHTTPRequestHandler, server: str) -> None:
        headers = request.headers
        self.asked.append(
            Asked(server, request.command, request.path, headers.get("Range"), headers.get("Authorization"))
        )
        if server == "store":
            return self._bytes(request, self.files[request.path.removeprefix("/bytes/")])
        if self.private:
            return _send(request, 401, {"X-Error-Code": "GatedRepo"})
        name = request.path.lstrip("/").replace("/resolve/main/", "/")
        content = self.files.get(name)
        if content is None:
            return _send(request, 404, {"X-Error-Code": "EntryNotFound"})
        if name not in self.stored:
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            if request.command == "HEAD":
                return _send(
                    request,
                    200,
                    {"ETag": f'"{blob}"', "X-Repo-Commit": COMMIT, "Content-Length": str(len(content))},
                )
            return self._bytes(request, content)
        target = self.redirects_to or f"http://127.0.0.1:{self._servers[1].server_port}/bytes/{name}"
        return _send(
            request,
            302,
            {
                "Location": target,
                "X-Repo-Commit": COMMIT,
                "X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"',
                "X-Linked-Size": str(self.promised_size or len(content)),
            },
        )

    def _bytes(self, request: BaseHTTPRequestHandler, content: bytes) -> None:
        if self.statuses:
            return _send(request, self.statuses.pop(0), {})
        content = self.delivers if self.delivers is not None else content
        wanted, status, headers = request.headers.get("Range"), 200, {}
        if wanted and not self.ignores_ranges:
            first = int(wanted.removeprefix("bytes=").rstrip("-"))
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
            content, status = content[first:], 206
        headers["Content-Length"] = str(len(content))
        _send(request, status, headers, content[: self.breaks_after[0]] if self.breaks_after else content)
        if self.breaks_after:
            self.breaks_after.pop(0)
            request.close_connection = True
        return None


def _send(request: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes = b"") -> None:
    request.send_response(status)
    for name, value in {"Content-Length": "0", **headers}.items():
        request.send_header(name, value)
    request.end_headers()
    if request.command == "GET":
        request.wfile.write(body)
