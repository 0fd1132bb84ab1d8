"""OpenClaw's gateway, asked line by line: python openclaw_open.py COMMAND…, which is OpenClaw's own."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

_STARTS_WITHIN_S = 300.0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Until somebody listens."""
    until = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    sys.exit("the gateway does not listen")


def ask(connection: http.client.HTTPConnection, text: str) -> list[dict[str, str]]:
    """Let the gateway use the tool that its agents use."""
    body = json.dumps({"tool": "memory_search", "args": {"query": text, "maxResults": 6}})
    headers = {
        "Authorization": f"Bearer {os.environ['OPENCLAW_GATEWAY_TOKEN']}",
        "Content-Type": "application/json",
    }
    connection.request("POST", "/tools/invoke", body, headers)
    answer: dict[str, Any] = json.loads(connection.getresponse().read())
    found = json.loads(answer["result"]["content"][0]["text"])
    if found.get("disabled") or found.get("error"):
        sys.exit(f"the gateway does not search: {found}")
    return [{"path": hit["path"], "text": hit["snippet"]} for hit in found["results"]]


def main(*command: str) -> None:
    """Start the gateway, and answer until the input ends."""
    port = free_port()
    options = ["--port", str(port), "--bind", "loopback", "--allow-unconfigured", "--auth", "token"]
    gateway = subprocess.Popen([*command, "gateway", *options], stdin=subprocess.DEVNULL, stdout=sys.stderr)
    wait_for(port)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)  # it looks for changed files by itself
        shown = ask(connection, request["search"]) if "search" in request else []
        print(json.dumps({"shown": shown}), flush=True)
    gateway.terminate()
    gateway.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
