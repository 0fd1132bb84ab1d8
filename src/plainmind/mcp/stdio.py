"""The server over standard input and output, from the first message until the other side closes or a signal comes."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import AsyncIterator

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from plainmind.mcp.greeting import Begun
from plainmind.mcp.lines import MOST_BYTES, TooLong, lines_from, read_from, write_line
from plainmind.mcp.messages import NoMessage, line_of, message_of
from plainmind.mcp.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# How long what was asked before the other side closed may still take.
_LAST_ANSWERS_SECONDS = 10.0
_LAST_WRITE_SECONDS = 2.0


async def serve_stdio(server: Server[Any], wire: Wire, begun: Begun) -> None:
    """Answer until the other side closes its end, or until a signal says stop."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_at_signal, tasks.cancel_scope)
        await _Conversation(wire, begun).run(server)
        tasks.cancel_scope.cancel()


async def _end_at_signal(serving: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            serving.cancel()


class _Conversation:
    """One client, and what it asked and was not answered yet."""

    def __init__(self, wire: Wire, begun: Begun) -> None:
        self._wire = wire
        self._begun = begun
        self._already_answered = begun.answered
        self._asked: Counter[str] = Counter()
        self._all_answered = anyio.Event()
        self._writing = anyio.Lock()  # a line goes out whole
        self._scope = anyio.CancelScope()

    async def run(self, server: Server[Any]) -> None:
        """Carry messages between the wire and the server."""
        to_server, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outbox, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._take_in, to_server)
                tasks.start_soon(self._give_out, from_server)
                await server.run(inbox, outbox, server.create_initialization_options())
                self._scope.deadline = anyio.current_time() + _LAST_WRITE_SECONDS

    async def _take_in(self, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        async with to_server:
            async for line in lines_from(self._incoming()):
                try:
                    message = _message(line)
                except NoMessage as refused:
                    await self._write(refused.answer)
                    continue
                self._remember_question(message)
                await to_server.send(SessionMessage(message))
            # The server drops what it is working on when its input ends; whoever closes their end right after
            # the last question, as a shell pipe does, still wants the answer.
            if self._asked:
                self._all_answered = anyio.Event()
                with anyio.move_on_after(_LAST_ANSWERS_SECONDS):
                    await self._all_answered.wait()

    async def _incoming(self) -> AsyncIterator[bytes]:
        yield self._begun.read
        if not self._begun.has_ended:
            async for data in read_from(self._wire.reads):
                yield data

    async def _give_out(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with from_server:
            async for sent in from_server:
                if not self._was_answered(sent.message):
                    await self._write(sent.message)
                if isinstance(sent.message, JSONRPCResponse | JSONRPCError):
                    self._forget_question(sent.message.id)

    def _was_answered(self, message: JSONRPCMessage) -> bool:
        """Whether the client has this answer already, from before the server was there."""
        if self._already_answered is None or not isinstance(message, JSONRPCResponse | JSONRPCError):
            return False
        is_that = message.id == self._already_answered
        if is_that:
            self._already_answered = None  # the id may be used again
        return is_that

    async def _write(self, message: JSONRPCMessage) -> None:
        async with self._writing:
            try:
                await write_line(self._wire.writes, line_of(message))
            except (BrokenPipeError, ConnectionResetError):
                self._scope.cancel()  # nobody reads any more

    def _remember_question(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._asked[str(message.id)] += 1
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._forget_question((message.params or {}).get("requestId"))  # will not be answered

    def _forget_question(self, request_id: object) -> None:
        key = str(request_id)
        if self._asked[key] <= 1:
            del self._asked[key]
        else:
            self._asked[key] -= 1
        if not self._asked:
            self._all_answered.set()


def _message(line: bytes | TooLong) -> JSONRPCMessage:
    if isinstance(line, TooLong):
        raise NoMessage(INVALID_REQUEST, f"a message may have {MOST_BYTES:,} bytes at most")
    return message_of(line)
