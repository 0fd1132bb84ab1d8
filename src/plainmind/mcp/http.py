"""The desk over HTTP: the official SDK carries its answers, one address is served, and MCP stands behind its guard.

Either generation of the SDK will do. Who may hold a connection, and when it ends, is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from typing import cast

import anyio
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from plainmind.agent.tool_calls import TimedOut
from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import find_by_name
from plainmind.mcp.desk import IDENTITY, Client, Desk, Refusal, Task, client_of, refusal_of
from plainmind.mcp.guard import MOST_BODY_BYTES, PATH, Bucket, Door, Guard, Slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from pydantic import BaseModel

    Ask: TypeAlias = Callable[[str, BaseModel | None, Any], Awaitable[dict[str, Any]]]
    KnowsToken: TypeAlias = Callable[[list[tuple[bytes, bytes]]], bool]


_AT_ONCE = 4  # no more than the pool searches at a time: it refuses those above that
# Every method that the SDK leaves to us: what it calls the request, the result, and the place of its handler.
_METHODS: Mapping[str, tuple[str, str, str]] = {
    "tools/list": ("ListToolsRequest", "ListToolsResult", "on_list_tools"),
    "tools/call": ("CallToolRequest", "CallToolResult", "on_call_tool"),
    "resources/list": ("ListResourcesRequest", "ListResourcesResult", "on_list_resources"),
    "resources/templates/list": (
        "ListResourceTemplatesRequest",
        "ListResourceTemplatesResult",
        "on_list_resource_templates",
    ),
    "resources/read": ("ReadResourceRequest", "ReadResourceResult", "on_read_resource"),
    "prompts/list": ("ListPromptsRequest", "ListPromptsResult", "on_list_prompts"),
    "prompts/get": ("GetPromptRequest", "GetPromptResult", "on_get_prompt"),
}


def server_of(desk: Desk) -> Server[Any]:
    """Make a server; the transport is its caller's choice."""
    places = anyio.CapacityLimiter(_AT_ONCE)

    async def ask(method: str, params: BaseModel | None, session: Any) -> dict[str, Any]:
        try:
            answer = desk.answer(method, _plain(params), _client_in(session))
            return await _carry_out(desk, answer, places) if isinstance(answer, Task) else answer
        except Exception as error:  # noqa: BLE001 (told to the client, or kept for the log)
            raise refusal_of(error) from None

    is_first = find_spec("mcp_types") is None
    server: Server[Any] = _first_generation(desk, ask) if is_first else _second_generation(desk, ask)
    return server


def _second_generation(desk: Desk, ask: Ask) -> Any:
    make_error = find_by_name("mcp.shared.exceptions:MCPError")

    def handler(method: str, kind: Any) -> Callable[..., Awaitable[Any]]:
        async def handle(context: Any, params: BaseModel | None) -> Any:
            try:
                return kind.model_validate(await ask(method, params, context.session))
            except Refusal as refusal:
                raise make_error(refusal.code, str(refusal), refusal.data) from None

        return handle

    handlers = {
        place: handler(method, find_by_name(f"mcp_types:{result}"))
        for method, (_, result, place) in _METHODS.items()
    }
    return find_by_name("mcp.server.lowlevel:Server")(
        IDENTITY["name"],
        version=IDENTITY["version"],
        title=IDENTITY["title"],
        description=IDENTITY["description"],
        instructions=desk.instructions,
        **handlers,
    )


def _first_generation(desk: Desk, ask: Ask) -> Any:
    """Versions before 2: handlers stand in a table, by the kind of request."""
    make_error, make_data, wrap = (
        find_by_name(name)
        for name in ("mcp.shared.exceptions:McpError", "mcp.types:ErrorData", "mcp.types:ServerResult")
    )
    server = find_by_name("mcp.server.lowlevel:Server")(
        IDENTITY["name"], version=IDENTITY["version"], instructions=desk.instructions
    )

    def handler(method: str, kind: Any) -> Callable[..., Awaitable[Any]]:
        async def handle(request: Any) -> Any:
            try:
                session = server.request_context.session
                return wrap(kind.model_validate(await ask(method, request.params, session)))
            except Refusal as refusal:
                data = make_data(code=refusal.code, message=str(refusal), data=refusal.data)
                raise make_error(data) from None

        return handle

    for method, (request, result, _) in _METHODS.items():
        kind = find_by_name(f"mcp.types:{request}")
        server.request_handlers[kind] = handler(method, find_by_name(f"mcp.types:{result}"))
    return server


def _plain(model: BaseModel | None) -> dict[str, Any]:
    return {} if model is None else model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _client_in(session: Any) -> Client:
    """The client of a session; one that introduces itself with each request has said so with this one."""
    said = _plain(session.client_params)
    return client_of(said.get("clientInfo"), said.get("capabilities"))


async def _carry_out(desk: Desk, task: Task, places: anyio.CapacityLimiter) -> dict[str, Any]:
    """Wait for a task in its thread. A client that cancels stops the waiting, and so does the deadline; it goes on."""
    async with places:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(ended.set)

        try:
            job = desk.start(task, wake)
        except TimedOut:
            return task.give_up()
        with anyio.move_on_after(task.seconds):
            await ended.wait()
        return job.result() if job.is_done else task.give_up()


_WAITING = 100


def listen(host: str, port: int, *, exposed: bool, instead: str = "add --expose") -> socket.socket:
    """Take an address: one that only this machine can reach, unless it was meant to be `exposed`.

    `instead` says what else to do than to stay on this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        if not exposed and not is_loopback(str(address[0])):
            raise PlainmindError(
                f"other machines can reach {host}, and whoever is on the way can read the token and the notes",
                hint=f"stay on 127.0.0.1 behind a proxy with TLS (--allow-host names it), or {instead}",
            )
        taken = socket.socket(family, kind, protocol)
        try:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(address)
            taken.listen(_WAITING)
        except BaseException:
            taken.close()
            raise
    except OSError as error:
        raise PlainmindError(
            f"cannot serve on {host} port {port}: {error.strerror or error}",
            hint="choose another with --port or --host",
        ) from error
    return taken


def door_of(
    bound: socket.socket, token: str, more_hosts: Iterable[str] = (), *, scheme: str = "http"
) -> Door:
    """Let in whoever names this machine as it is bound, or one of the names that were given."""
    host, port = bound.getsockname()[:2]
    spelled = {f"[{host}]" if ":" in host else host}
    if is_loopback(host):
        spelled |= {"localhost", "127.0.0.1", "[::1]"}
    hosts = {f"{name}:{port}" for name in spelled}
    hosts |= spelled if port == {"http": 80, "https": 443}[scheme] else set()
    more = {name.lower() for name in more_hosts}
    origins = {f"{scheme}://{name}" for name in hosts | more} | {f"https://{name}" for name in more}
    return Door(frozenset(hosts | more), frozenset(origins), token)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return ip_address(host.partition("%")[0]).is_loopback  # without the zone that IPv6 may name


def url_of(bound: socket.socket) -> str:
    """Where clients find the server."""
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


_MOST_REQUESTS = 100  # at a time, of those who have the token
# Connections that have not shown the token yet. Each has its seconds, and the oldest goes at once when there are more:
# whoever has the token shows it right away.
_MOST_STRANGERS = 256
_STRANGER_SECONDS = 5.0
_ACCEPTED_AT_ONCE = 128  # fewer than those, so that nobody is let go before what they sent is looked at
_FILES_OF_OUR_OWN = 200
_MOST_SESSIONS = 1_000  # clients often leave without saying so; after half an hour theirs ends
_BURST, _EACH_SECOND = 200, 20.0
_LAST_ANSWERS_SECONDS = 3


async def serve_http(
    server: Server[Any], bound: socket.socket, door: Door, started: Callable[[], None]
) -> None:
    """Serve MCP until a signal says stop; `started` is called once requests are answered."""
    async with mcp_app(server, door) as app:
        await serve_app(app, bound, door.knows_token, started)


@contextlib.asynccontextmanager
async def mcp_app(server: Server[Any], door: Door) -> AsyncIterator[ASGIApp]:
    """MCP as an application, behind its guard; its sessions end with the block."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    sessions = StreamableHTTPSessionManager(
        server, json_response=True, max_request_body_size=MOST_BODY_BYTES, max_sessions=_MOST_SESSIONS
    )
    bucket = Bucket(burst=_BURST, each_second=_EACH_SECOND, clock=time.monotonic)
    async with sessions.run():
        yield Guard(_within(sessions), door, bucket, Slots(_MOST_REQUESTS))


async def serve_app(
    app: ASGIApp,
    bound: socket.socket,
    knows_token: KnowsToken,
    started: Callable[[], None],
    *,
    tls: tuple[str, str] | None = None,
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Serve an application until a signal says stop. Who does not show a token gets little time and few places.

    `tls` names the files of a certificate and its key. `stopping` is called before the last answers are waited for.
    """
    lobby = Lobby(_places_for_strangers())
    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", partial(_Protocol, lobby, knows_token)),  # it is only called
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,  # an address may hold what somebody should not have put there
        server_header=False,
        proxy_headers=False,
        backlog=_ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    program = _Program(config, started, stopping)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_at_signal, program)
        await program.serve(sockets=[bound])
        tasks.cancel_scope.cancel()


def _within(sessions: StreamableHTTPSessionManager) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await sessions.handle_request(scope, receive, send)

    return app


async def _end_at_signal(program: _Program) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            program.handle_exit(number, None)  # open streams listen for this too


class _Program(uvicorn.Server):
    """Uvicorn, without its own idea of signals: it would raise them once more at its end."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], None], stopping: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._started = started
        self._stopping = stopping

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        await super().shutdown(sockets)


def _places_for_strangers() -> int:
    """As many as the process can have open beside its own files and those who have the token."""
    most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = most_files - _FILES_OF_OUR_OWN - _MOST_REQUESTS
    return _MOST_STRANGERS if most_files == resource.RLIM_INFINITY else max(16, min(_MOST_STRANGERS, spare))


class Lobby:
    """The connections that have not shown the token yet: a small share of all, so that they cannot use it up."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside: dict[_Protocol, None] = {}  # the oldest first

    def enter(self, stranger: _Protocol) -> None:
        """Let one wait, and the one go that has waited longest when there is no place."""
        if len(self._inside) >= self._most:
            self.throw_out(next(iter(self._inside)))
        self._inside[stranger] = None

    def leave(self, stranger: _Protocol) -> None:
        """They have shown the token, or are gone."""
        self._inside.pop(stranger, None)

    def throw_out(self, stranger: _Protocol) -> None:
        """Hang up on one who is still here."""
        if stranger in self._inside:
            self.leave(stranger)
            stranger.transport.abort()


class _Protocol(H11Protocol):
    """HTTP, for clients that send their headers in time."""

    def __init__(self, lobby: Lobby, knows_token: KnowsToken, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._lobby, self._knows_token = lobby, knows_token

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._lobby.enter(self)
        self.loop.call_later(_STRANGER_SECONDS, self._lobby.throw_out, self)

    def handle_events(self) -> None:
        super().handle_events()
        if self.headers is not None and self._knows_token(self.headers):
            self._lobby.leave(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lobby.leave(self)
        super().connection_lost(exc)
