"""Whether a connection works: the server is started as the host would start it and asked, the host about its hooks."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.guests.hosts.catalogue import host_of
from plainmind.guests.hosts.connection import Connection, Register, entries_left
from plainmind.guests.hosts.edits import is_our_hook
from plainmind.memory.doctor import Check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.memory import Memory

_LONGEST_S = 30.0
_CLIENT = {"name": "plainmind-connect", "version": "1"}


@value
class Heard:
    """What a server said."""

    tools: tuple[str, ...]
    seconds: float  # until it had listed them


def ask_server(words: Sequence[str], environ: Mapping[str, str], cwd: str) -> Heard:
    """Start a server, greet it, and let it list its tools and say how the memory is. Raises PlainmindError."""
    begun = time.monotonic()
    with _talk_with(words, environ, cwd) as talk:
        talk.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT})
        talk.tell("notifications/initialized")
        tools = tuple(tool["name"] for tool in talk.ask("tools/list", {})["tools"])
        heard = Heard(tools, time.monotonic() - begun)
        if "memory_status" in tools:
            answer = talk.ask("tools/call", {"name": "memory_status", "arguments": {}})
            if answer.get("isError"):
                told = "".join(part.get("text", "") for part in answer.get("content", ()))
                raise PlainmindError(f"the server answers, but not from its memory: {told[:300]}")
        return heard


@value
class Trust:
    """A hook of ours as Codex sees it."""

    key: str
    hash: str
    is_given: bool


def ask_codex(program: str, environ: Mapping[str, str], cwd: str) -> list[Trust]:
    """Let Codex name the hooks of ours that it sees, and whether it runs them. Raises PlainmindError."""
    with _talk_with((program, "app-server"), environ, cwd) as talk:
        talk.ask("initialize", {"clientInfo": {"title": "Plainmind", **_CLIENT}})
        talk.tell("initialized")
        found = talk.ask("hooks/list", {"cwds": [cwd]})
    hooks = [hook for folder in found.get("data", ()) for hook in folder.get("hooks", ())]
    return [
        # Of a plugin's hook it gives two, its own first, and trust is in that one.
        Trust(hook["key"], hook["currentHash"].partition("/")[0], hook.get("trustStatus") == "trusted")
        for hook in hooks
        if is_our_hook(hook.get("command"))
    ]


@contextmanager
def _talk_with(words: Sequence[str], environ: Mapping[str, str], cwd: str) -> Iterator[_Talk]:
    try:
        server = subprocess.Popen(  # noqa: S603 (the words are those of the host's own settings)
            list(words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            cwd=cwd,
        )
    except OSError as error:
        raise PlainmindError(
            f"{words[0]} cannot be started: {error.strerror}",
            hint="install Plainmind where it stays, then connect again",
        ) from error
    try:
        yield _Talk(server, time.monotonic() + _LONGEST_S)
    finally:
        _end(server)


class _Talk:
    """One line out, one line in, until a deadline."""

    def __init__(self, server: subprocess.Popen[bytes], deadline: float) -> None:
        self._server = server
        self._deadline = deadline
        self._count = 0
        self._read = b""

    def tell(self, method: str) -> None:
        """Say something that is not answered."""
        self._send({"jsonrpc": "2.0", "method": method})

    def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask, and wait for the answer."""
        self._count += 1
        self._send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        while True:
            message = json.loads(self._line())
            if message.get("id") == self._count and "method" not in message:
                break
        if "error" in message:
            raise PlainmindError(f"the server refuses `{method}`: {message['error'].get('message')}")
        result: Mapping[str, Any] = message["result"]
        return result

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._server.stdin is not None
        try:
            self._server.stdin.write(json.dumps(message).encode() + b"\n")
            self._server.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _line(self) -> bytes:
        assert self._server.stdout is not None
        descriptor = self._server.stdout.fileno()
        while b"\n" not in self._read:
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise PlainmindError(f"the server did not answer within {_LONGEST_S:.0f} s")
            data = os.read(descriptor, 65_536)
            if not data:
                raise self._ended()
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line

    def _ended(self) -> PlainmindError:
        assert self._server.stderr is not None
        self._server.kill()
        said = self._server.stderr.read().decode(errors="replace").strip()
        return PlainmindError(f"the server ended at once: {said[-400:] or 'it said nothing'}")


def _end(server: subprocess.Popen[bytes]) -> None:
    for stream in (server.stdin, server.stdout):
        if stream is not None:
            stream.close()
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if server.stderr is not None:
        server.stderr.close()


# --- for `doctor` ---


def examine_connections(memory: Memory) -> Iterator[Check]:
    """Look at each connection: its entries, its program, and what its hooks could not do lately."""
    register = Register(memory.home)
    for connection in register.read():
        yield from _examine(connection)
    yield from _failures(register)


def _examine(connection: Connection) -> Iterator[Check]:
    name = f"connection {connection.host}"
    host = host_of(connection.host)
    title = host.title
    place = f" in {connection.project}" if connection.project else ""
    again = f"`plainmind connect {connection.host}` puts it right; `plainmind disconnect {connection.host}` ends it"
    if not os.access(connection.server[0], os.X_OK):
        yield Check(name, "problem", f"{title} starts {connection.server[0]}, which is not there", again)
        return
    left = entries_left(connection)
    if left:
        yield Check(name, "warning", f"{title}: our entries are gone from {', '.join(left)}", again)
        return
    whose = "each agent's own workspace" if host.is_plugin_only else connection.workspace
    yield Check(name, "ok", f"{title}{place} uses {whose}")


def _failures(register: Register) -> Iterator[Check]:
    from plainmind.guests.hosts.hook import last_failure

    failure = last_failure(register.folder)
    if failure is not None:
        yield Check("hooks", "warning", f"a hook could not do its work: {failure}")
