"""The server over HTTP: streamable, behind the guard, on one address of this machine."""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from plainmind.base.errors import PlainmindError
from plainmind.mcp.guard import MOST_BODY_BYTES, PATH, Bucket, Door, Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any


_WAITING = 100


def listen(host: str, port: int, *, exposed: bool) -> socket.socket:
    """Take an address: one that only this machine can reach, unless it was meant to be `exposed`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        if not exposed and not is_loopback(str(address[0])):
            raise PlainmindError(
                f"other machines can reach {host}, and whoever is on the way can read the token and the notes",
                hint="stay on 127.0.0.1 behind a proxy with TLS (--allow-host names it), or add --expose",
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


def door_of(bound: socket.socket, token: str, more_hosts: Iterable[str] = ()) -> Door:
    """Let in whoever names this machine as it is bound, or one of the names that were given."""
    host, port = bound.getsockname()[:2]
    spelled = {f"[{host}]" if ":" in host else host}
    if is_loopback(host):
        spelled |= {"localhost", "127.0.0.1", "[::1]"}
    hosts = {f"{name}:{port}" for name in spelled} | (spelled if port == 80 else set())
    more = {name.lower() for name in more_hosts}
    origins = {f"http://{name}" for name in hosts | more} | {f"https://{name}" for name in more}
    return Door(frozenset(hosts | more), frozenset(origins), token)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return ip_address(host.partition("%")[0]).is_loopback  # without the zone that IPv6 may name


def url_of(bound: socket.socket) -> str:
    """Where clients find the server."""
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


_MOST_CONNECTIONS = 100
_MOST_SESSIONS = 1_000  # clients often leave without saying so; after half an hour theirs ends
_BURST, _EACH_SECOND = 200, 20.0
_HEADER_SECONDS = 30.0
_LAST_ANSWERS_SECONDS = 3


async def serve_http(
    server: Server[Any], bound: socket.socket, door: Door, started: Callable[[], None]
) -> None:
    """Serve until a signal says stop; `started` is called once requests are answered."""
    sessions = StreamableHTTPSessionManager(
        server, json_response=True, max_request_body_size=MOST_BODY_BYTES, max_sessions=_MOST_SESSIONS
    )
    app = Guard(_within(sessions), door, Bucket(burst=_BURST, each_second=_EACH_SECOND, clock=time.monotonic))
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,  # an address may hold what somebody should not have put there
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
    )
    program = _Program(config, started)
    async with sessions.run(), anyio.create_task_group() as tasks:
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

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()


class _Protocol(H11Protocol):
    """HTTP, for clients that send their headers in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(_HEADER_SECONDS, self._hang_up_on_the_silent)

    def _hang_up_on_the_silent(self) -> None:
        if not self.cycle:  # no request so far
            self.transport.close()
