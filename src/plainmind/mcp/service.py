"""One memory served over one transport, from its first client to the last."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from plainmind.agent.recalls import Asker
from plainmind.base.lazy import find_by_name
from plainmind.mcp.desk import Desk
from plainmind.mcp.tools import box_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from plainmind.agent.protocol import Tools
    from plainmind.agent.scope import SearchContext
    from plainmind.agent.tools import Tool
    from plainmind.mcp.desk import View
    from plainmind.mcp.guard import Door
    from plainmind.mcp.stdio import Wire
    from plainmind.memory.memory import Memory
    from plainmind.memory.scoped import ScopedMemory


# What a host's hooks are answered by, where they call a tool and start no program.
_HOOK = "plainmind.guests.hosts.hook:answer_call"
# What clients show to a person, of the extension MCP Apps.
_VIEW = "plainmind.guests.page.bundle:View"


def serve_on_wire(memory: Memory, context: SearchContext, tools: Sequence[Tool], wire: Wire) -> None:
    """Serve one client over standard input and output, until it closes its end or a signal comes."""
    from plainmind.mcp.stdio import serve_stdio

    with open_desk(memory, context, tools) as desk:
        serve_stdio(desk, wire)


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
    from plainmind.mcp.server import server_of

    with open_desk(memory, context, tools) as desk:
        anyio.run(serve_http, server_of(desk), bound, door, started)


@contextmanager
def open_desk(memory: Memory, context: SearchContext, tools: Sequence[Tool]) -> Iterator[Desk]:
    """Open the desk of a memory, and close the memory when nothing is using it any more."""
    desk = desk_of(memory, context, tools)
    fresh = memory.kept_fresh(_warn)
    try:
        with fresh:
            yield desk
    finally:
        # A call that takes longer than is waited for keeps its files; to be cut off does no harm to any of them.
        if desk.close() and not fresh.is_running:
            memory.close()


def desk_of(memory: Memory, context: SearchContext, tools: Sequence[Tool], token: str = "") -> Desk:
    """A desk over a memory that others use too; `token` is the name of the one that its clients show."""
    scoped = memory.within(context, asker=Asker("mcp"))

    def open_box(visited: ScopedMemory) -> tuple[Tools, Callable[[], None]]:
        return box_of(memory, visited, tools)

    def hook(event: Mapping[str, Any]) -> str:
        answer: str = find_by_name(_HOOK)(memory, event)
        return answer

    def open_view() -> View:
        view: View = find_by_name(_VIEW)(memory)
        return view

    # It recalls and keeps everything: for the owner, where notes may be written.
    has_hook = scoped.access.sees_everything and any(tool.name == "memory_append" for tool in tools)
    return Desk(scoped, tools, open_box, hook if has_hook else None, open_view, token=token)


def _warn(problem: str) -> None:
    import logging

    logging.getLogger(__name__).warning("while keeping the index up to date: %s", problem)
