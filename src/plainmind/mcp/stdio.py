"""The server over standard input and output, from the first message until the other side closes or a signal comes."""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json

from plainmind.mcp.introduction import Begun, Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


MOST_BYTES = 4_000_000  # of one message
_AT_ONCE = 65_536
# What a pipe or socket takes without blocking once it says that it takes something.
_PIECE = 4_096


class TooLong(Exception):
    """A line was longer than any message may be; what was left of it has been passed over."""


async def lines_from(source: AsyncIterable[bytes]) -> AsyncIterator[bytes | TooLong]:
    """Yield each line, without its end and without empty ones, until there is no more."""
    rest = bytearray()
    is_passing_over = False
    async for data in source:
        *ended, last = data.split(b"\n")
        for line in ended:
            rest += line
            if is_passing_over or len(rest) > MOST_BYTES:
                yield TooLong()
            elif rest.strip():
                yield bytes(rest)
            rest.clear()
            is_passing_over = False
        rest += last
        if len(rest) > MOST_BYTES:
            is_passing_over = True
            rest.clear()
    if is_passing_over:
        yield TooLong()
    elif rest.strip():
        yield bytes(rest)


async def read_from(descriptor: int) -> AsyncIterator[bytes]:
    """Yield what comes, until the other side closes."""
    while data := await _read(descriptor):
        yield data


async def write_line(descriptor: int, line: bytes) -> None:
    """Write one line, waiting while the other side does not read. Raises BrokenPipeError when it is gone."""
    left = memoryview(line + b"\n")
    while left:
        await _until_it_can(anyio.wait_writable, descriptor)
        left = left[os.write(descriptor, left[:_PIECE]) :]


async def _read(descriptor: int) -> bytes:
    try:
        await _until_it_can(anyio.wait_readable, descriptor)
        return os.read(descriptor, _AT_ONCE)
    except ConnectionResetError:
        return b""


async def _until_it_can(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:  # a regular file cannot be waited for, and never blocks
        await anyio.lowlevel.checkpoint()


_log = logging.getLogger(__name__)


class NoMessage(Exception):
    """What came in is no message; `answer` is what the other side gets to read."""

    def __init__(self, code: int, reason: str, request_id: RequestId | None = None) -> None:
        super().__init__(reason)
        self.answer = JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=reason))


def message_of(line: bytes) -> JSONRPCMessage:
    """Read one message. Raises NoMessage."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        pass
    try:
        found = from_json(line)
    except ValueError:
        raise NoMessage(
            PARSE_ERROR, "this line is not valid JSON; a message is one JSON object on one line"
        ) from None
    if isinstance(found, list):
        raise NoMessage(INVALID_REQUEST, "batches are not taken; send each message on a line of its own")
    raise NoMessage(INVALID_REQUEST, "this is not a JSON-RPC 2.0 message", _id_in(found))


def line_of(message: JSONRPCMessage) -> bytes:
    """Write one message; one that cannot be written becomes an error, so that nobody waits for it in vain."""
    try:
        return _dumped(message)
    except PydanticSerializationError:
        _log.exception("an answer could not be written as JSON")
        error = ErrorData(code=INTERNAL_ERROR, message="the answer cannot be written as JSON")
        answered = None if isinstance(message, JSONRPCNotification) else message.id
        return _dumped(JSONRPCError(jsonrpc="2.0", id=answered, error=error))


def _dumped(message: JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _id_in(found: Any) -> RequestId | None:
    """The id that an answer can be given under."""
    request_id = found.get("id") if isinstance(found, dict) else None
    return request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None


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
