"""The server over standard input and output: one loop reads, answers and writes; what takes its time has threads."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from plainmind.agent.tool_calls import Job, TimedOut
from plainmind.base.errors import PlainmindError
from plainmind.base.value import record, value
from plainmind.mcp.desk import (
    IDENTITY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOBODY,
    PARSE_ERROR,
    TOO_MANY,
    UNSUPPORTED_VERSION,
    Desk,
    Refusal,
    Task,
    client_of,
    refusal_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Self, TypeAlias

    Id: TypeAlias = str | int
    Answer: TypeAlias = dict[str, Any]
    Send: TypeAlias = Callable[[Answer | None], None]  # None: there will be no answer


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


MOST_BYTES = 4_000_000  # of one message
_AT_ONCE = 65_536
# What a pipe or socket takes without blocking once it says that it takes something.
_PIECE = 4_096


class TooLong(Exception):
    """A line was longer than any message may be; what was left of it has been passed over."""


class Lines:
    """Puts lines together from what comes in."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._is_passing_over = False

    def take(self, data: bytes) -> Iterator[bytes | TooLong]:
        """Yield each line that ends in here, without its end and without empty ones."""
        *ended, last = data.split(b"\n")
        for line in ended:
            self._rest += line
            yield from self.finish()
        self._rest += last
        if len(self._rest) > MOST_BYTES:
            self._is_passing_over = True
            self._rest.clear()

    def finish(self) -> Iterator[bytes | TooLong]:
        """Yield what there is as the end of a line."""
        if self._is_passing_over or len(self._rest) > MOST_BYTES:
            yield TooLong()
        elif self._rest.strip():
            yield bytes(self._rest)
        self._rest.clear()
        self._is_passing_over = False


def message_in(line: bytes | TooLong) -> Any:
    """What a line says, as JSON. Raises Refusal."""
    if isinstance(line, TooLong):
        raise Refusal(INVALID_REQUEST, f"a message may have {MOST_BYTES:,} bytes at most")
    try:
        found = json.loads(line.decode(), parse_constant=_refuse_constant)
        if b"\\u" in line:
            json.dumps(found, ensure_ascii=False).encode()  # half a character cannot be written back
    except (ValueError, RecursionError):
        raise Refusal(
            PARSE_ERROR, "this line is not valid JSON; a message is one JSON object on one line"
        ) from None
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


# Revisions that begin with `initialize`, the newest last: it is what a client of an unknown one is offered.
_HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_WITH_BATCHES = "2025-03-26"
# Those in which each request says by itself which one it is of.
_STATELESS = ("2026-07-28",)
_OF_PROTOCOL = "io.modelcontextprotocol/"
_VERSION = _OF_PROTOCOL + "protocolVersion"
_CLIENT_CAPABILITIES = _OF_PROTOCOL + "clientCapabilities"
_CLIENT_INFO = _OF_PROTOCOL + "clientInfo"
# What is the same tomorrow may be kept by a client; here it may not: files change at any time.
_NOT_TO_BE_KEPT: Mapping[str, Any] = {"cacheScope": "private", "ttlMs": 0}
_CACHEABLE = frozenset(
    {
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tools/list",
    }
)


def version_for(params: Mapping[str, Any]) -> str:
    """The revision that both sides will speak after `initialize`. Raises Refusal."""
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        raise Refusal(INVALID_PARAMS, "`initialize` needs `protocolVersion`, such as 2025-11-25")
    return wanted if wanted in _HANDSHAKES else _HANDSHAKES[-1]


def is_stateless(params: Mapping[str, Any]) -> bool:
    """Whether a request brings its own revision along. Raises Refusal when it is one that is not spoken here."""
    facts = params.get("_meta")
    if not isinstance(facts, Mapping) or _VERSION not in facts:
        return False
    wanted = facts[_VERSION]
    if wanted not in _STATELESS:
        data = {"supported": list(_STATELESS), "requested": wanted if isinstance(wanted, str) else ""}
        raise Refusal(UNSUPPORTED_VERSION, "this revision of the protocol is not spoken here", data)
    if not isinstance(facts.get(_CLIENT_CAPABILITIES), Mapping):
        raise Refusal(INVALID_PARAMS, f"`_meta` needs `{_CLIENT_CAPABILITIES}`, an object")
    return True


def with_envelope(method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """A result as the revisions without a handshake want it."""
    facts = dict(_NOT_TO_BE_KEPT) if method in _CACHEABLE else {}
    return {
        **facts,
        **result,
        "resultType": "complete",
        "_meta": {_OF_PROTOCOL + "serverInfo": dict(IDENTITY)},
    }


@record
class _Asked:
    """A request that waits for its answer."""

    id: Id
    task: Task
    shape: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    send: Send
    job: Job[Any] | None = None
    until: float | None = None  # by the clock; None while it waits for a place, and when it has no end


_RUNNING = 4  # no more than the pool searches at a time: it refuses those above that
_WAITING = 1_000
_UNREAD_BYTES = 16_000_000  # of answers: then nothing more is asked of us
# How long what was asked before the other side closed may still take, and how long it may read none of it.
_LAST_ANSWERS_SECONDS = 10.0
_LAST_WRITE_SECONDS = 2.0
_NEVER = float("inf")


def serve_stdio(desk: Desk, wire: Wire) -> None:
    """Answer until the other side closes its end, or until a signal says stop."""
    with _Bell() as bell:
        _Conversation(desk, wire, bell).run()


class _Bell:
    """Wakes the loop from other threads, and at a signal."""

    def __init__(self) -> None:
        self.reads, self._writes = os.pipe()
        self.was_signalled = False

    def __enter__(self) -> Self:
        os.set_blocking(self.reads, False)
        os.set_blocking(self._writes, False)
        self._before = {one: signal.signal(one, self._stop) for one in (signal.SIGTERM, signal.SIGINT)}
        self._waker = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the signals. The pipe stays: a call that takes longer than we do still rings."""
        signal.set_wakeup_fd(self._waker)
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def ring(self) -> None:
        """Wake whoever waits."""
        try:
            os.write(self._writes, b".")
        except BlockingIOError:  # it is full: the loop will wake
            return

    def hear(self) -> None:
        """Take in all that was rung."""
        os.read(self.reads, _AT_ONCE)

    def _stop(self, *_: object) -> None:
        self.was_signalled = True


class _Conversation:
    """One client: what it sent, what it waits for, and what it has not read yet. All of it belongs to one thread."""

    def __init__(self, desk: Desk, wire: Wire, bell: _Bell) -> None:
        self._desk, self._wire, self._bell = desk, wire, bell
        self._lines = Lines()
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._waiting: deque[_Asked] = deque()
        self._running: list[_Asked] = []
        self._version = ""
        self._client = NOBODY
        self._reads = True
        self._is_heard = True  # whether anybody reads what is written
        self._ends_at = _NEVER  # by the clock; while there is more to come, it is not known

    def run(self) -> None:
        """Go on until everything is answered that will be."""
        while self._is_heard and not self._bell.was_signalled and not self._is_over():
            self._turn()

    def _is_over(self) -> bool:
        """Whether nothing more will be asked, and all is answered and read, or has had its time."""
        if self._reads:
            return False
        return not (self._running or self._waiting or self._unsent) or time.monotonic() >= self._ends_at

    def _turn(self) -> None:
        """Wait until something can be done, and do it."""
        waits = select.poll()
        waits.register(self._bell.reads, select.POLLIN)
        if self._reads and self._unsent_bytes < _UNREAD_BYTES:
            waits.register(self._wire.reads, select.POLLIN)
        if self._unsent:
            waits.register(self._wire.writes, select.POLLOUT)
        until = min([self._ends_at, *(one.until for one in self._running if one.until is not None)])
        left = None if until == _NEVER else max(0.0, until - time.monotonic()) * 1000 + 1
        ready = {descriptor for descriptor, _ in waits.poll(left)}
        if self._bell.reads in ready:
            self._bell.hear()
        if self._wire.writes in ready:
            self._write()
        self._give_answers()
        if self._wire.reads in ready:
            self._read()
        self._start_waiting()

    def _read(self) -> None:
        try:
            data = os.read(self._wire.reads, _AT_ONCE)
        except OSError:  # the other side is gone
            data = b""
        self._reads = bool(data)
        if not data:
            self._ends_at = time.monotonic() + _LAST_ANSWERS_SECONDS
        for line in self._lines.take(data) if data else self._lines.finish():
            self._take(line)

    def _take(self, line: bytes | TooLong) -> None:
        try:
            message = message_in(line)
        except Refusal as refusal:
            self._send(_error(None, refusal))
            return
        if not isinstance(message, list):
            self._take_message(message, self._send)
        elif message and self._version == _WITH_BATCHES:
            self._take_batch(message)
        else:
            self._send(_error(None, Refusal(INVALID_REQUEST, "send each message on a line of its own")))

    def _take_batch(self, messages: list[Any]) -> None:
        """Answer all of them at once, when the last one is answered."""
        answers: list[Answer | None] = []
        wanted = sum(not _is_unanswered(message) for message in messages)

        def keep(answer: Answer | None) -> None:
            answers.append(answer)
            if len(answers) == wanted:
                self._send([one for one in answers if one is not None] or None)

        for message in messages:
            self._take_message(message, keep)

    def _take_message(self, message: Any, send: Send) -> None:
        if _is_unanswered(message):
            self._note(message)
            return
        id_ = _id_in(message)
        try:
            self._answer(message, id_, send)
        except Exception as error:  # noqa: BLE001 (told to the client, or kept for the log)
            send(_error(id_, refusal_of(error)))

    def _answer(self, message: Any, id_: Id | None, send: Send) -> None:
        method, params = _request_in(message, id_)
        assert id_ is not None  # or it would have been refused
        shape: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
        if method != "initialize" and is_stateless(params):
            shape = partial(with_envelope, method)
        result = self._result_of(method, params, is_modern=shape is not dict)
        if not isinstance(result, Task):
            send(_answer(id_, shape(result)))
        elif len(self._waiting) >= _WAITING:
            raise Refusal(TOO_MANY, "too many requests are waiting; send the next one after an answer")
        else:
            self._waiting.append(_Asked(id_, result, shape, send))

    def _result_of(
        self, method: str, params: Mapping[str, Any], *, is_modern: bool
    ) -> Mapping[str, Any] | Task:
        if method == "initialize":
            self._version = version_for(params)
            self._client = client_of(params.get("clientInfo"), params.get("capabilities"))
            return {
                **self._desk.introduction(self._client),
                "protocolVersion": self._version,
                "serverInfo": dict(IDENTITY),
            }
        client = self._client
        if is_modern:
            facts = params["_meta"]
            client = client_of(facts.get(_CLIENT_INFO), facts[_CLIENT_CAPABILITIES])
            if method == "server/discover":
                return {**self._desk.introduction(client), "supportedVersions": list(_STATELESS)}
        return self._desk.answer(method, params, client)

    def _note(self, message: Mapping[str, Any]) -> None:
        """Hear what gets no answer. What is cancelled will get none, and what it was doing is of no use to anybody."""
        params = message.get("params")
        if message.get("method") == "notifications/cancelled" and isinstance(params, Mapping):
            id_ = params.get("requestId")
            cancelled = [one for one in (*self._waiting, *self._running) if one.id == id_]
            self._waiting = deque(one for one in self._waiting if one.id != id_)
            self._running = [one for one in self._running if one.id != id_]
            for one in cancelled:
                one.send(None)

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < _RUNNING:
            asked = self._waiting.popleft()
            try:
                asked.job = self._desk.start(asked.task, self._bell.ring)
            except TimedOut:
                self._give(asked, asked.task.give_up)
                continue
            if asked.task.seconds is not None:
                asked.until = time.monotonic() + asked.task.seconds
            self._running.append(asked)

    def _give_answers(self) -> None:
        """Answer what is done, and what has taken too long; that goes on by itself."""
        now = time.monotonic()
        for asked in list(self._running):
            assert asked.job is not None  # it runs
            if asked.job.is_done:
                self._running.remove(asked)
                self._give(asked, asked.job.result)
            elif asked.until is not None and now >= asked.until:
                self._running.remove(asked)
                self._give(asked, asked.task.give_up)

    def _give(self, asked: _Asked, result: Callable[[], Mapping[str, Any]]) -> None:
        try:
            answer = _answer(asked.id, asked.shape(result()))
        except Exception as error:  # noqa: BLE001 (told to the client, or kept for the log)
            answer = _error(asked.id, refusal_of(error))
        asked.send(answer)

    def _send(self, message: Answer | list[Answer] | None) -> None:
        if message is None:
            return
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        data = memoryview(line.encode("utf-8", "replace") + b"\n")
        self._unsent.append(data)
        self._unsent_bytes += len(data)

    def _write(self) -> None:
        data = self._unsent[0]
        try:
            written = os.write(self._wire.writes, data[:_PIECE])
        except OSError:  # nobody reads any more
            self._is_heard = False
            return
        self._unsent_bytes -= written
        if not self._reads:
            self._ends_at = max(self._ends_at, time.monotonic() + _LAST_WRITE_SECONDS)
        if written < len(data):
            self._unsent[0] = data[written:]
        else:
            self._unsent.popleft()


def _is_unanswered(message: Any) -> bool:
    """Whether a message is one that nobody waits for: a notification, or an answer to what was never asked."""
    if not isinstance(message, Mapping) or message.get("jsonrpc") != "2.0":
        return False
    if "method" in message:
        return "id" not in message and isinstance(message["method"], str)
    return "id" in message and ("result" in message or "error" in message)


def _request_in(message: Any, id_: Id | None) -> tuple[str, Mapping[str, Any]]:
    """The method and the params of a request. Raises Refusal."""
    if not isinstance(message, Mapping) or message.get("jsonrpc") != "2.0" or id_ is None:
        raise Refusal(INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise Refusal(INVALID_REQUEST, "a request needs a `method`")
    if params is not None and not isinstance(params, Mapping):
        raise Refusal(INVALID_REQUEST, "`params` must be an object")
    return method, params or {}


def _id_in(message: Any) -> Id | None:
    """The id that an answer can be given under."""
    found = message.get("id") if isinstance(message, Mapping) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _answer(id_: Id, result: Mapping[str, Any]) -> Answer:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def _error(id_: Id | None, refusal: Refusal) -> Answer:
    error: dict[str, Any] = {"code": refusal.code, "message": str(refusal)}
    if refusal.data is not None:
        error["data"] = refusal.data
    return {"jsonrpc": "2.0", "id": id_, "error": error}
