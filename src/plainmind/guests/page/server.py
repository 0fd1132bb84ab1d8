"""One process that serves the page, `/v1` and MCP: requests in, threads for the work, answers out."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from importlib.util import find_spec
from urllib.parse import parse_qsl

import anyio
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_bytes, sha256_text
from plainmind.base.value import replace, value
from plainmind.guests.page.call import Call, Event, Keeper, Lookout, Reply
from plainmind.guests.page.compat import COMPAT, compatible_operations, refusal
from plainmind.guests.page.gate import (
    HEADERS,
    MOST_BODY_BYTES,
    Caller,
    Callers,
    Gate,
    check_body,
    header_map,
    token_in,
    too_large,
    versions_in,
)
from plainmind.guests.page.table import Operation, listen, operations
from plainmind.guests.page.wire import Problem, as_json, problem_of, read
from plainmind.mcp.desk import desk_of
from plainmind.mcp.guard import PATH as MCP_PATH
from plainmind.mcp.guard import Door, Refused, refuse
from plainmind.mcp.http import mcp_app, serve_app, server_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    import socket
    from typing import Any

    from anyio.abc import TaskGroup, TaskStatus

    from plainmind.agent.tools import Tool
    from plainmind.mcp.desk import Desk
    from plainmind.mcp.guard import Door
    from plainmind.memory.memory import Memory


STATIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_QUICK_PLACES, _SLOW_PLACES = 6, 2
_MOST_WAITING = 64  # of those who have a token; the others are told to come again
_BODY_SECONDS = 30.0
_MOST_QUERY = 4_000
_MOST_STREAMS = 32
_PAUSE_SECONDS = 0.1
_QUIET_SECONDS = 15.0


@value
class _Route:
    operation: Operation
    matches: re.Pattern[str]


class PageApp:
    """The page and `/v1` as an application."""

    def __init__(self, memory: Memory, keeper: Keeper, gate: Gate) -> None:
        self.memory, self._keeper, self.gate = memory, keeper, gate
        self._routes = [
            _Route(one, compile_path(one.path)[0]) for one in (*operations(), *compatible_operations())
        ]
        self._quick = anyio.CapacityLimiter(_QUICK_PLACES)
        self._slow = anyio.CapacityLimiter(_SLOW_PLACES)
        self._listening = anyio.CapacityLimiter(1)  # who listens waits for no work of others
        self._waiting = 0
        self._lookout = Lookout(memory, keeper.journal, keeper.files.by_path)
        self._streams = 0
        self._is_ending = False

    def end_streams(self) -> None:
        """Let those who listen go: the server ends."""
        self._is_ending = True

    def close(self) -> None:
        """Let go of the memory."""
        self._lookout.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            reply = await self._answer(scope, receive, send)
        except Exception as error:  # noqa: BLE001 (told to who asked, or kept for the log)
            await _send_problem(problem_of(error), send, with_body=scope["method"] != "HEAD")
        else:
            if reply is not None:
                await _send_reply(reply, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply | None:
        headers = header_map(scope["headers"])
        self.gate.check_place(headers)
        path: str = scope["path"]
        if path.startswith(COMPAT):
            return await self._answer_vendor(headers, scope, receive)
        if not path.startswith("/v1/"):
            self.gate.check_page(headers)
            return await anyio.to_thread.run_sync(
                _static, scope["method"], path, headers, limiter=self._quick
            )
        self.gate.check_site(headers)
        operation, parameters = self._find(scope["method"], path)
        caller = None if not operation.right else self.gate.caller_of(headers, operation)
        if operation.body is not None:
            check_body(headers)
        if operation.handle is listen:
            call = await self._call(operation, caller, parameters, headers, scope, receive=receive)
            await self._stream(call, receive, send)
            return None
        with self._one_more():
            call = await self._call(operation, caller, parameters, headers, scope, receive=receive)
            limiter = self._slow if operation.slow else self._quick
            return await anyio.to_thread.run_sync(operation.handle, call, limiter=limiter)

    @contextmanager
    def _one_more(self) -> Iterator[None]:
        """Count a request that is under way. Raises Problem when there are too many."""
        if self._waiting >= _MOST_WAITING:
            raise Problem("too-many", "too many requests are under way", headers=(("retry-after", "1"),))
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def _stream(self, call: Call, receive: Receive, send: Send) -> None:
        """Tell a client what happens until it goes, its token is void, or the server ends."""
        if self._streams >= _MOST_STREAMS:
            raise Problem("too-many", "too many are listening already", headers=(("retry-after", "10"),))
        self._streams += 1
        try:
            await anyio.to_thread.run_sync(self._lookout.begin, limiter=self._listening)
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), *HEADERS]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
                await self._tell(call, send)
                tasks.cancel_scope.cancel()
        finally:
            self._streams -= 1

    async def _tell(self, call: Call, send: Send) -> None:
        journal = self._keeper.journal
        wanted = call.header("last-event-id")
        place = journal.place_of(wanted) if wanted else journal.last
        if place is None:
            place = journal.last
            await _send_event(send, "reset", {}, journal.name_of(place))
        elif not wanted:
            await _send_event(send, "hello", {"last": journal.name_of(place)}, journal.name_of(place))
        quiet = 0.0
        while not self._is_ending:
            events = journal.since(place)
            if events is None:
                await _send_event(send, "reset", {}, journal.name_of(journal.last))
                place = journal.last
                continue
            for event in events:
                place = event.number
                if _may_hear(call, event):
                    quiet = 0.0
                    await _send_event(send, event.kind, event.facts, journal.name_of(event.number))
            quiet += _PAUSE_SECONDS
            if quiet >= _QUIET_SECONDS:
                quiet = 0.0
                if self.gate.callers.find(call.token) is None:
                    break  # revoked, or too old
                await send({"type": "http.response.body", "body": b": still here\n\n", "more_body": True})
            await anyio.sleep(_PAUSE_SECONDS)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answer_vendor(self, headers: Mapping[str, str], scope: Scope, receive: Receive) -> Reply:
        """Answer the client of another vendor, refusals too as it reads them."""
        path: str = scope["path"]
        try:
            self.gate.check_site(headers)
            operation, parameters = self._find(scope["method"], path)
            caller = None if not operation.right else self.gate.caller_of(headers, operation)
            asked = dict(parse_qsl(scope["query_string"].decode("latin-1")[:_MOST_QUERY]))
            who = caller or Caller("", frozenset(), self._keeper.nobody)
            with self._one_more():
                has_body = scope["method"] in {"POST", "PUT"}
                body = _parsed(await _whole_body(receive)) if has_body else None
                call = Call(
                    who, self.memory, self._keeper, parameters, asked, body, headers, token_in(headers)
                )
                return await anyio.to_thread.run_sync(operation.handle, call, limiter=self._quick)
        except Exception as error:  # noqa: BLE001 (told to who asked, or kept for the log)
            return refusal(path, problem_of(error))

    def _find(self, method: str, path: str) -> tuple[Operation, Mapping[str, str]]:
        fitting = [(route.operation, found) for route in self._routes if (found := route.matches.match(path))]
        for operation, found in fitting:
            if operation.method == method:
                return operation, found.groupdict()
        if fitting:
            allowed = ", ".join(dict.fromkeys(operation.method for operation, _ in fitting))
            raise Problem("method", f"{path} takes {allowed}", headers=(("allow", allowed),))
        raise Problem(
            "not-found", f"there is nothing at {path[:200]}", "/v1/openapi.json lists what there is"
        )

    async def _call(
        self,
        operation: Operation,
        caller: Caller | None,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
        scope: Scope,
        *,
        receive: Receive,
    ) -> Call:
        asked: bytes = scope["query_string"]
        if len(asked) > _MOST_QUERY:
            raise Problem("bad-request", "the address is too long")
        said = dict(parse_qsl(asked.decode("latin-1"), keep_blank_values=True))
        query: Any = read(operation.query, said, what="the address", is_text=True)
        body: Any = None
        if operation.body is not None:
            body = read(operation.body, _parsed(await _whole_body(receive)))
        nobody = Caller("", frozenset(), self._keeper.nobody)
        return Call(
            caller or nobody, self.memory, self._keeper, parameters, query, body, headers, token_in(headers)
        )


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _send_event(send: Send, kind: str, facts: Mapping[str, Any], name: str) -> None:
    said = f"id: {name}\nevent: {kind}\ndata: ".encode() + _json(facts) + b"\n\n"
    await send({"type": "http.response.body", "body": said, "more_body": True})


def _may_hear(call: Call, event: Event) -> bool:
    """Whether an event is for who listens: others than the owner hear of the notes that they may see."""
    if call.caller.is_owner:
        return True
    path = event.facts.get("path")
    checkpoint = call.memory.policy.checkpoint
    return event.kind == "reset" or (path is not None and checkpoint.admits(call.scoped.access, path))


async def _whole_body(receive: Receive) -> bytes:
    body = bytearray()
    with anyio.move_on_after(_BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Problem("bad-request", "the body ended early")
            body += message.get("body", b"")
            if len(body) > MOST_BODY_BYTES:
                raise too_large()
            if not message.get("more_body", False):
                return bytes(body)
    raise Problem("too-slow", "the body took too long")


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise PlainmindError("the body is not valid JSON in UTF-8", hint="see /v1/openapi.json") from error


def _static(method: str, path: str, headers: Mapping[str, str]) -> Reply:
    """A file of the page: only what lies below its folder has a name here."""
    if method not in {"GET", "HEAD"}:
        raise Problem("method", "this can only be read", headers=(("allow", "GET, HEAD"),))
    name = (
        "index.html" if path == "/" else path.removeprefix("/static/") if path.startswith("/static/") else ""
    )
    place = _files().get(name)
    kind = _KINDS.get(os.path.splitext(name)[1])
    if place is None or kind is None:
        raise Problem("not-found", f"there is nothing at {path[:200]}", "the page is at /")
    with open(place, "rb") as file:
        data = file.read()
    etag = sha256_bytes(data)
    told = (("content-type", kind), ("cache-control", "no-cache"))
    if versions_in(headers.get("if-none-match", "")).has(etag):
        return Reply(None, 304, etag, told)
    return Reply(data if method == "GET" else b"", 200, etag, told)


def _files() -> dict[str, str]:
    found: dict[str, str] = {}
    for folder, _, names in os.walk(STATIC):
        for name in names:
            place = os.path.join(folder, name)
            found[os.path.relpath(place, STATIC).replace(os.sep, "/")] = place
    return found


async def _send_reply(reply: Reply, send: Send) -> None:
    headers = [(name.encode(), text.encode("latin-1")) for name, text in reply.headers]
    if isinstance(reply.body, bytes):
        body = reply.body
    elif reply.body is None:
        body = b""
    else:
        facts = reply.body if isinstance(reply.body, dict | list) else as_json(reply.body)
        body = _json(facts)
        headers.append((b"content-type", b"application/json"))
    if not any(name == b"cache-control" for name, _ in headers):
        headers.append((b"cache-control", b"no-store"))
    if reply.etag is not None:
        headers.append((b"etag", f'"{reply.etag}"'.encode()))
    await _send(reply.status, headers, body, send)


async def _send_problem(problem: Problem, send: Send, *, with_body: bool) -> None:
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),  # who was refused does not get to hold a connection, nor to send the rest
        *((name.encode(), text.encode("latin-1")) for name, text in problem.headers),
    ]
    await _send(problem.status, headers, _json(problem.as_json()) if with_body else b"", send)


async def _send(status: int, headers: list[tuple[bytes, bytes]], body: bytes, send: Send) -> None:
    length = [] if status in {204, 304} else [(b"content-length", str(len(body)).encode())]
    start = {"type": "http.response.start", "status": status, "headers": [*headers, *length, *HEADERS]}
    await send(start)
    await send({"type": "http.response.body", "body": body})


def _json(facts: object) -> bytes:
    # Half a character, which a damaged file may hold, has no place in UTF-8.
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


# --- MCP beside the page: the owner's token has all tools, a named one those that it has the right for ---


def right_for(tool: Tool) -> str:
    """The right that a token needs for a tool."""
    if tool.is_read_only:
        return "read"
    return "forget" if tool.name == "memory_forget" else "write"


class Agents:
    """An application that serves each client of MCP by the token that it shows."""

    def __init__(self, memory: Memory, tools: Sequence[Tool], door: Door, callers: Callers) -> None:
        """`door` is the owner's; who may come by another token, `callers` know."""
        self._memory, self._tools, self._door, self._callers = memory, tools, door, callers
        self._apps: dict[str, ASGIApp] = {}  # by the hash of the token
        self._opening = anyio.Lock()

    @asynccontextmanager
    async def run(self, desk: Desk) -> AsyncIterator[None]:
        """Serve within a block; `desk` is the owner's."""
        async with mcp_app(server_of(desk), self._door) as self._of_owner, anyio.create_task_group() as tasks:
            self._tasks: TaskGroup = tasks
            yield
            tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        token, caller = self._caller_of(scope)
        if caller is None:
            await self._of_owner(scope, receive, send)  # or of nobody, which it says
        elif "read" not in caller.rights:
            await refuse(
                Refused(403, f"the token `{caller.name}` has no right to read, which MCP needs"), send
            )
        else:
            await (await self._app_of(token, caller))(scope, receive, send)

    def _caller_of(self, scope: Scope) -> tuple[str, Caller | None]:
        """The named token of a request and whose it is; a session of the page is for the page alone."""
        try:
            token = token_in(header_map(scope["headers"]))
            caller = self._callers.find(token)
        except (Problem, PlainmindError):
            return "", None
        return (token, caller) if caller is not None and caller.is_named else ("", None)

    async def _app_of(self, token: str, caller: Caller) -> ASGIApp:
        hashed = sha256_text(token)
        async with self._opening:
            if hashed not in self._apps:
                self._apps[hashed] = await self._tasks.start(self._keep_app, token, caller)
            return self._apps[hashed]

    async def _keep_app(self, token: str, caller: Caller, *, task_status: TaskStatus[ASGIApp]) -> None:
        """Hold the sessions of one token open until the server ends; a revoked one finds no way to them."""
        tools = [tool for tool in self._tools if right_for(tool) in caller.rights]
        desk = desk_of(self._memory, caller.context, tools, caller.name)
        try:
            async with mcp_app(server_of(desk), replace(self._door, token=token)) as app:
                task_status.started(app)
                await anyio.sleep_forever()
        finally:
            desk.close()


# --- both of them ---


def has_mcp() -> bool:
    """Whether what carries MCP over HTTP is installed."""
    return find_spec("mcp") is not None


def run_server(
    app: PageApp,
    desk: Desk,
    tools: Sequence[Tool],
    door: Door,
    bound: socket.socket,
    *,
    started: Callable[[], None],
    tls: tuple[str, str] | None,
) -> None:
    """Serve until a signal says stop: MCP at its path, all the rest by the page."""
    mcp = Agents(app.memory, tools, door, app.gate.callers) if has_mcp() else None

    async def both(scope: Scope, receive: Receive, send: Send) -> None:
        is_mcp = mcp is not None and scope["type"] == "http" and scope["path"] == MCP_PATH
        chosen: Any = mcp if is_mcp else app
        await chosen(scope, receive, send)

    def knows_token(headers: list[tuple[bytes, bytes]]) -> bool:
        return door.knows_token(headers) or app.gate.knows_token(headers)

    async def serve() -> None:
        async with mcp.run(desk) if mcp is not None else nullcontext():
            await serve_app(both, bound, knows_token, started, tls=tls, stopping=app.end_streams)

    try:
        anyio.run(serve)
    finally:
        app.close()
