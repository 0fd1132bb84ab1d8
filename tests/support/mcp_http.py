"""`plainmind mcp --http` as a process, and requests to it with exactly the headers that a test wants."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.mcp_process import COMMAND, INITIALIZE


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class HttpServer:
    """One server, its address and its token."""

    def __init__(self, *options, env=None):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the server)
        self.process = subprocess.Popen(
            [COMMAND, "mcp", "--http", "--json", "--port", "0", *map(str, options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **(env or {})},
        )
        told = self.process.stdout.readline()
        if not told:
            self.process.wait(60)
            self.process.stdout.close()
            raise AssertionError(f"it did not start: {self.errors}")
        told = json.loads(told)
        self.url, self.token_file = told["url"], Path(told["tokenFile"])
        self.token = self.token_file.read_text().strip()
        self.port = urlsplit(self.url).port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self._errors.close()

    @property
    def errors(self):
        """What it wrote to stderr so far."""
        self._errors.seek(0)
        return self._errors.read().decode()

    def end(self, number=signal.SIGTERM, timeout=60):
        self.process.send_signal(number)
        return self.process.wait(timeout)

    def headers(self, **changes):
        """The headers of a good request; None leaves one out, a list repeats it."""
        good = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        return good | {name.replace("_", "-"): value for name, value in changes.items()}

    def send(self, method="POST", target="/mcp", headers=None, body=None, *, timeout=60):
        """Send one request, with its headers as they are, and read the whole answer."""
        headers = self.headers() if headers is None else headers
        if isinstance(body, dict | list):
            body = json.dumps(body).encode()
        lines = [f"{method} {target} HTTP/1.1"]
        for name, value in headers.items():
            given = value if isinstance(value, list) else [value]
            lines += [f"{name}: {one}" for one in given if one is not None]
        known = {name.lower() for name, value in headers.items() if value is not None}
        if body is not None and not known & {"content-length", "transfer-encoding"}:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as line:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before it had read everything
                line.sendall(head + (body or b""))
            return _response(line)

    def initialize(self, headers=None):
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
        return self.send(headers=headers, body=message)


def _response(line):
    data = b""
    try:
        while piece := line.recv(65_536):
            data += piece
    except ConnectionResetError:
        pass
    head, _, body = data.partition(b"\r\n\r\n")
    status, *rest = head.decode("latin-1").split("\r\n")
    pairs = (one.split(": ", 1) for one in rest)
    return Response(int(status.split()[1]), {name.lower(): value for name, value in pairs}, body)
