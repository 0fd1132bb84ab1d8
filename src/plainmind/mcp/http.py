"""The server over HTTP: streamable, behind the guard, on one address of this machine."""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections.abc import Callable, Iterator

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from plainmind.mcp.guard import MOST_BODY_BYTES, Bucket, Door, Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any

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
