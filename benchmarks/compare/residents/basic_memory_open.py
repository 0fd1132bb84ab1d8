"""basic-memory's MCP server, asked line by line: python basic_memory_open.py COMMAND…, which is its own."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count
from typing import IO, Any

BEGIN = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "compare", "version": "1"},
}


class Server:
    """A server for MCP behind a pair of pipes."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._numbers = count(1)
        self.ask("initialize", BEGIN)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request, and read until its answer comes."""
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": params})
        pipe: IO[bytes] | None = self.process.stdout
        assert pipe is not None
        for line in pipe:
            message = json.loads(line)
            if message.get("id") == number:
                if "error" in message:
                    sys.exit(f"the server says: {message['error']}")
                return message["result"]
        sys.exit("the server has ended")

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()


def search(server: Server, text: str) -> list[dict[str, str]]:
    """Use the tool that agents use."""
    arguments = {"query": text, "page_size": 6, "output_format": "json"}
    answer = server.ask("tools/call", {"name": "search_notes", "arguments": arguments})
    found = json.loads(answer["content"][0]["text"])
    if not isinstance(found, dict):
        sys.exit(f"the server shows {found!r:.300}")
    return [
        {"path": one["file_path"], "text": one.get("matched_chunk") or one.get("content") or ""}
        for one in found["results"]
    ]


def main(*command: str) -> None:
    """Start the server, and answer until the input ends."""
    server = Server(command)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)  # it watches the folder by itself
        shown = search(server, request["search"]) if "search" in request else []
        print(json.dumps({"shown": shown}), flush=True)
    server.process.terminate()
    server.process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
