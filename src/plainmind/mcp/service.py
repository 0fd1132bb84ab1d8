"""One memory served over one transport, from its first client to the last: the SDK is imported only in here."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from plainmind.mcp.introduction import Greeter, Wire, instructions_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcp.server.lowlevel import Server

    from plainmind.agent.scope import SearchContext
    from plainmind.agent.tools import Tool
    from plainmind.mcp.guard import Door
    from plainmind.memory.memory import Memory


def serve_on_wire(memory: Memory, context: SearchContext, tools: Sequence[Tool], wire: Wire) -> None:
    """Serve one client over standard input and output, until it closes its end or a signal comes."""
    greeter = Greeter(wire, instructions_for(memory.within(context), tools))
    import anyio

    from plainmind.mcp.stdio import serve_stdio

    with _server(memory, context, tools) as server:
        anyio.run(serve_stdio, server, wire, greeter.finish())


def serve_at_address(
    memory: Memory,
    context: SearchContext,
    tools: Sequence[Tool],
    *,
    bound: socket.socket,
    door: Door,
    started: Callable[[], None],
) -> None:
    """Serve over HTTP until a signal comes; `started` is called when clients can connect."""
    import anyio

    from plainmind.mcp.http import serve_http

    with _server(memory, context, tools) as server:
        anyio.run(serve_http, server, bound, door, started)


@contextmanager
def _server(memory: Memory, context: SearchContext, tools: Sequence[Tool]) -> Iterator[Server[Any]]:
    """Make the server, and close the memory when nothing is using it any more."""
    from plainmind.mcp.server import Desk, server_of
    from plainmind.mcp.tools import box_of

    scoped = memory.within(context)
    box, close_guest = box_of(memory, scoped, tools)
    desk = Desk(scoped, tools, box)
    fresh = memory.kept_fresh(_warn)
    try:
        with fresh:
            yield server_of(desk)
    finally:
        # A call that takes longer than is waited for keeps its files; to be cut off does no harm to any of them.
        if desk.close() and not fresh.is_running:
            close_guest()
            memory.close()


def _warn(problem: str) -> None:
    import logging

    logging.getLogger(__name__).warning("while keeping the index up to date: %s", problem)
