"""How a conversation over standard input and output begins: the streams taken, and `initialize` answered at once."""

from __future__ import annotations

import fcntl
import json
import os
import select
import sys
import threading
from collections.abc import Iterable, Mapping

from plainmind import __version__
from plainmind.agent.prompt import recall_section
from plainmind.base.errors import PlainmindError
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.agent.protocol import AgentMemory
    from plainmind.agent.tools import Tool


IDENTITY: Mapping[str, str] = {
    "name": "plainmind",
    "title": "Plainmind",
    "version": __version__,
    "description": "The memory of AI agents, kept in plain Markdown",
}


def instructions_for(memory: AgentMemory, tools: Iterable[Tool]) -> str | None:
    """What a model should know about the tools before it uses any; None when there is nothing to say."""
    names = [tool.name for tool in tools]
    return recall_section(names, shows_citations=memory.shows_citations) or None


def introduction(instructions: str | None, protocol_version: str) -> dict[str, Any]:
    """The answer to `initialize`, as the SDK gives it too: a test holds one against the other."""
    return {
        "capabilities": {
            "resources": {"listChanged": False, "subscribe": False},
            "tools": {"listChanged": False},
        },
        **({} if instructions is None else {"instructions": instructions}),
        "protocolVersion": protocol_version,
        "serverInfo": dict(IDENTITY),
    }


@value
class Wire:
    """Where messages come in, and where they go out."""

    reads: int
    writes: int


def take_wire() -> Wire:
    """Take both for messages: from now on a `print` goes to stderr, a prompt reads nothing, and so do children."""
    if _is_nothing(0) or _is_nothing(1):  # or closed: the command line opens on nothing what was closed
        raise PlainmindError(
            "standard input or output is closed or /dev/null, and MCP is spoken over both",
            hint="let an MCP client start this command, or serve over HTTP: plainmind mcp --http",
        )
    sys.stdout.flush()
    reads = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    writes = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        os.dup2(nothing, 1)
    os.close(nothing)
    return Wire(reads, writes)


def _is_nothing(descriptor: int) -> bool:
    return os.path.samestat(os.fstat(descriptor), os.stat(os.devnull))


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
