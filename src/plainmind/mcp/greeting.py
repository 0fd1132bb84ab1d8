"""Answers `initialize` while the SDK is still being imported, which takes half a second that no client should wait.

The SDK gets to see the same request once it is there, and comes to the same answer, which is then not sent again.
Whatever is not plainly the beginning of a conversation is left to it.
"""

from __future__ import annotations

import json
import os
import select
import threading

from plainmind.base.value import value
from plainmind.mcp.about import introduction
from plainmind.mcp.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Those that begin with `initialize`. One that is missing here is only answered later.
_VERSIONS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
_MOST_BYTES = 65_536


@value
class Begun:
    """How far a conversation has come: what was read of it, and which request was answered already."""

    read: bytes = b""
    answered: str | int | None = None
    has_ended: bool = False  # the client closed its end; a terminal says so only once


class Greeter:
    """Waits for the first line in a thread of its own, until it is told to finish."""

    def __init__(self, wire: Wire, instructions: str | None) -> None:
        self._wire = wire
        self._instructions = instructions
        self._read = b""
        self._answered: str | int | None = None
        self._has_ended = False
        self._told_to_finish, self._tell = os.pipe()
        self._thread = threading.Thread(target=self._greet, name="plainmind mcp greeting", daemon=True)
        self._thread.start()

    def finish(self) -> Begun:
        """End the waiting, and say what has happened so far."""
        os.close(self._tell)
        self._thread.join()
        os.close(self._told_to_finish)
        return Begun(self._read, self._answered, self._has_ended)

    def _greet(self) -> None:
        waiting = select.poll()
        waiting.register(self._wire.reads, select.POLLIN)
        waiting.register(self._told_to_finish, select.POLLIN)
        while b"\n" not in self._read and len(self._read) < _MOST_BYTES:
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if self._wire.reads not in ready:
                return
            try:
                data = os.read(self._wire.reads, _MOST_BYTES)
            except OSError:  # the other side is gone: the server will see it too, and end
                return
            self._read += data
            self._has_ended = not data
            if self._has_ended:
                return
        self._answer(self._read.partition(b"\n")[0])

    def _answer(self, line: bytes) -> None:
        asked = beginning_in(line)
        if asked is None:
            return
        request_id, version = asked
        result = introduction(self._instructions, version)
        answer = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}, ensure_ascii=False)
        data = answer.encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._wire.writes, data) :]
        except OSError:  # as above
            return
        self._answered = request_id


def beginning_in(line: bytes) -> tuple[str | int, str] | None:
    """The id and the version of a request to begin; None when the line is anything else, or odd in any way."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.keys() != {"jsonrpc", "id", "method", "params"}:
        return None
    request_id, params = message["id"], message["params"]
    is_plain = (
        message["jsonrpc"] == "2.0"
        and message["method"] == "initialize"
        and (type(request_id) is int or (type(request_id) is str and request_id.isprintable()))
        and _are_plain(params)
    )
    return (request_id, params["protocolVersion"]) if is_plain else None


def _are_plain(params: Any) -> bool:
    if not isinstance(params, dict) or params.keys() != {"protocolVersion", "capabilities", "clientInfo"}:
        return False
    capabilities, client = params["capabilities"], params["clientInfo"]
    return (
        isinstance(params["protocolVersion"], str)
        and params["protocolVersion"] in _VERSIONS
        and isinstance(capabilities, dict)
        and all(isinstance(one, dict) for one in capabilities.values())
        and isinstance(client, dict)
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version"), str)
    )
