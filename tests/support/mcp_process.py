"""`plainmind mcp` as a process, spoken to line by line: every byte that it writes is kept, to be judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).with_name("plainmind"))
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}


def code_in(preview):
    """The code that a preview of `memory_forget` gives."""
    return preview.rpartition('"confirm": "')[2].partition('"')[0]


class McpProcess:
    """One server and what it wrote."""

    def __init__(self, *options, env=None, command=(COMMAND, "mcp")):
        self.process = subprocess.Popen(
            [*command, *map(str, options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.written = bytearray()
        self.errors = bytearray()
        self._messages: list[dict[str, Any]] = []
        self._read_to = 0  # of what is written
        self._grown = threading.Condition()
        self._readers = [
            threading.Thread(target=self._keep, args=(self.process.stdout, self.written), daemon=True),
            threading.Thread(target=self._keep, args=(self.process.stderr, self.errors), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait()
        for reader in self._readers:
            reader.join(60)
        self.process.stdout.close()
        self.process.stderr.close()

    @property
    def messages(self):
        """What it said so far, one object for each line; a line that is no JSON raises."""
        with self._grown:
            end = self.written.rfind(b"\n") + 1
            lines = bytes(self.written[self._read_to : end]).splitlines()
            self._messages += [json.loads(line) for line in lines]
            self._read_to = end
        return self._messages

    def say(self, line):
        """Send bytes as they are, or an object as JSON."""
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def tell(self, method, **params):
        self.say({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    def ask(self, request_id, method, timeout=60, **params):
        """Ask and wait for the answer: its whole message."""
        self.say(
            {"jsonrpc": "2.0", "id": request_id, "method": method, **({"params": params} if params else {})}
        )
        return self.answer_to(request_id, timeout)

    def answer_to(self, request_id, timeout=60):
        def answer():
            return next(
                (one for one in self.messages if one.get("id") == request_id and "method" not in one), None
            )

        return self.until(answer, timeout)

    def until(self, found, timeout=60):
        """Wait until a look at what it wrote finds something."""
        deadline = time.monotonic() + timeout
        with self._grown:
            while not (result := found()):
                left = deadline - time.monotonic()
                has_ended = not any(reader.is_alive() for reader in self._readers)
                reason = f"nothing came; stderr: {bytes(self.errors)[-2000:].decode()}"
                assert left > 0, reason
                assert not has_ended, reason
                self._grown.wait(min(left, 0.5))
        return result

    def begin(self):
        """Shake hands."""
        answer = self.ask("begin", "initialize", **INITIALIZE)
        self.tell("notifications/initialized")
        return answer["result"]

    def call(self, request_id, tool, **arguments):
        return self.ask(request_id, "tools/call", name=tool, arguments=arguments)["result"]

    def end(self, timeout=60):
        """Close its input and wait for it to leave."""
        self.process.stdin.close()
        status = self.process.wait(timeout)
        for reader in self._readers:
            reader.join(60)
        return status

    def _keep(self, stream, kept):
        while data := stream.read1(65_536):
            with self._grown:
                kept += data
                self._grown.notify_all()
