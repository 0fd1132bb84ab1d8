"""`plainmind serve` as a process, and requests to it with exactly the headers that a test wants."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.mcp_process import COMMAND, INITIALIZE
from tests.support.traced import traced

from plainmind.guests.page.table import document, operations

DESCRIBED = document()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def kind(self):
        """Of a problem: `stale` of `urn:plainmind:stale`."""
        return self.json["type"].removeprefix("urn:plainmind:")


def check_described(method, target, status):
    """Whatever any test ever sees of an operation stands in its description; what is refused does under `default`."""
    path = urlsplit(target).path
    for operation in operations():
        place = operation.path.replace(":path}", "}")
        shape = re.sub(
            r"\\\{\w+(:path)?\\\}", lambda found: ".+" if found[1] else "[^/]+", re.escape(operation.path)
        )
        if operation.method == method and re.fullmatch(shape, path) and status < 400:
            described = DESCRIBED["paths"][place][method.lower()]["responses"]
            assert str(status) in described, f"{method} {place} answers {status}, which is not described"
            return


class PageServer:
    """One server and, once `sign_in` was called, a session of its page."""

    def __init__(self, workspace, home, *options, env=None, most_files=None):
        self.workspace, self.home = Path(workspace), Path(home)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the server)
        self._env = traced({**os.environ, **(env or {})})
        limit = ["sh", "-c", f'ulimit -n {most_files}; exec "$@"', "sh"] if most_files else []
        self.process = subprocess.Popen(
            [*limit, COMMAND, "serve", "--json", "--port", "0", *self.place, *map(str, options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=self._env,
        )
        told = self.process.stdout.readline()
        if not told:
            self.process.wait(60)
            self.process.stdout.close()
            raise AssertionError(f"it did not start: {self.errors}")
        self.url = json.loads(told)["url"]
        self.host = urlsplit(self.url).netloc
        self.port = urlsplit(self.url).port
        self.token = None

    @property
    def place(self):
        return "--workspace", str(self.workspace), "--home", str(self.home)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()  # what is killed cannot say which lines it ran
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
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

    def run(self, *arguments):
        """Another command on the same memory; what it printed."""
        ended = subprocess.run(
            [COMMAND, *arguments, *self.place], capture_output=True, text=True, check=False, env=self._env
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def new_code(self):
        """What `plainmind page` would open the browser with."""
        return self.run("page", "--no-open").strip().partition("#code=")[2]

    def sign_in(self):
        """Begin a session of the page, as the page does."""
        begun = self.begin(self.new_code())
        assert begun.status == 201, begun.body
        self.token = begun.json["token"]
        return self

    def begin(self, code, **headers):
        with_site = {"Sec-Fetch-Site": "same-origin", **headers}
        return self.ask("POST", "/v1/session", {"code": code}, token=None, headers=with_site)

    def ask(self, method, target, body=None, *, token="", headers=None, timeout=60):
        """Send one request; `token` is that of the session unless another one, or None, is given."""
        token = self.token if token == "" else token
        sent = {} if token is None else {"Authorization": f"Bearer {token}"}
        if body is not None:
            sent["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent |= headers or {}
        sent = {name: text for name, text in sent.items() if text is not None}
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            line.request(method, target, body, sent)
            answer = line.getresponse()
            told = {name.lower(): text for name, text in answer.getheaders()}
            answered = Answer(answer.status, told, answer.read())
        finally:
            line.close()
        check_described(method, target, answered.status)
        return answered

    def ask_mcp(self, token, method, params=None, *, client=INITIALIZE):
        """What MCP answers to one request in a session of its own: the result, or the error."""
        headers = {"Accept": "application/json, text/event-stream"}

        def send(message):
            answer = self.ask("POST", "/mcp", {"jsonrpc": "2.0", **message}, token=token, headers=headers)
            headers.setdefault("Mcp-Session-Id", answer.headers.get("mcp-session-id"))
            assert answer.status < 300, (answer.status, answer.body)
            return answer

        send({"id": 1, "method": "initialize", "params": client})
        send({"method": "notifications/initialized"})
        told = send({"id": 2, "method": method, "params": params or {}}).json
        return told.get("result") or told["error"]

    def get(self, target, **more):
        """Read, and take for granted that it works."""
        answer = self.ask("GET", target, **more)
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json

    def post(self, target, body, **more):
        answer = self.ask("POST", target, body, **more)
        assert 200 <= answer.status < 300, (answer.status, answer.body)
        return answer.json
