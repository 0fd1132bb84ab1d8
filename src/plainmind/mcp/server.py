"""The MCP server of one memory in one context: tools, resources, and what it says about itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from plainmind.agent.pool import Pool, TimedOut
from plainmind.agent.tools import Tool, ToolBox, for_mcp
from plainmind.base.errors import PlainmindError
from plainmind.mcp.introduction import IDENTITY, instructions_for
from plainmind.mcp.resources import resource_page, resource_templates, resource_text
from plainmind.mcp.tools import CONNECTOR_TOOLS, Connector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    from plainmind.agent.protocol import Tools
    from plainmind.memory.scoped import ScopedMemory

    T = TypeVar("T")
    Context: TypeAlias = ServerRequestContext[Any, Any]

_log = logging.getLogger(__name__)
_LAST_CALLS_SECONDS = 5.0
_AT_ONCE = 4  # no more than the pool searches at a time: it refuses those above that


def server_of(desk: Desk) -> Server[Any]:
    """Make a server; the transport is its caller's choice."""
    return Server(
        IDENTITY["name"],
        version=IDENTITY["version"],
        title=IDENTITY["title"],
        description=IDENTITY["description"],
        instructions=desk.instructions,
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        on_list_resources=desk.list_resources,
        on_list_resource_templates=desk.list_templates,
        on_read_resource=desk.read_resource,
    )


class Desk:
    """Answers the requests of all clients of one server."""

    def __init__(self, memory: ScopedMemory, tools: Sequence[Tool], box: Tools | None = None) -> None:
        """`box` carries the tools out, those of the notes when none is given; it is closed with this."""
        self._memory = memory
        self._pool = Pool()
        self._places = anyio.CapacityLimiter(_AT_ONCE)
        self.instructions = instructions_for(memory, tools)
        self._listed = [types.Tool.model_validate(tool) for tool in for_mcp(tools)]
        connector = Connector(memory)
        self._toolbox: Tools = ToolBox(memory) if box is None else box
        special = {tool.name for tool in CONNECTOR_TOOLS}
        self._boxes: dict[str, Tools | Connector] = {
            tool.name: connector if tool.name in special else self._toolbox for tool in tools
        }

    def close(self) -> bool:
        """Wait for calls that are still running; False when one takes longer."""
        is_idle = self._pool.wait(_LAST_CALLS_SECONDS)
        self._toolbox.close()
        return is_idle

    async def list_tools(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Which tools there are."""
        return types.ListToolsResult(tools=self._listed)

    async def call_tool(self, _context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Carry out a tool."""
        box = self._boxes.get(params.name)
        if box is None:
            known = ", ".join(self._boxes)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool `{params.name[:100]}` here, only {known}")
        call = box.prepare(params.name, params.arguments or {})
        try:
            answer = await self._run(call.work, call.seconds)
        except TimedOut:
            assert call.late is not None  # what has a deadline says what comes after it
            answer = call.late()
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=dict(answer.content) or None,
            is_error=answer.is_error,
        )

    async def list_resources(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """One page of the memory files."""
        cursor = params.cursor if params else None
        page = await self._run(lambda: resource_page(self._memory, cursor))
        return types.ListResourcesResult.model_validate(page)

    async def list_templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """How files are addressed."""
        return types.ListResourceTemplatesResult.model_validate(resource_templates())

    async def read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """The text of a file."""
        found = await self._run(lambda: resource_text(self._memory, str(params.uri)))
        return types.ReadResourceResult.model_validate(found)

    async def _run(self, work: Callable[[], T], seconds: float | None = None) -> T:
        """Run a blocking call; what goes wrong is said in a sentence, and our own mistakes are kept for the log.

        A client that cancels stops the waiting, and so does the deadline (TimedOut); the call itself goes on.
        """
        try:
            async with self._places:
                return await self._wait_for(work, seconds)
        except PlainmindError as error:
            said = f"{error}; {error.hint}" if error.hint else str(error)
            raise MCPError(types.INVALID_PARAMS, said) from None
        except (MCPError, TimedOut):
            raise
        except Exception as mistake:  # noqa: BLE001 (logged, and answered without what is in it)
            _log.exception("a request failed")
            raise MCPError(types.INTERNAL_ERROR, f"this failed inside ({type(mistake).__name__})") from None

    async def _wait_for(self, work: Callable[[], T], seconds: float | None) -> T:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(ended.set)

        job = self._pool.start(work, has_deadline=seconds is not None, on_end=wake)
        with anyio.move_on_after(seconds):
            await ended.wait()
        if not job.is_done:
            raise TimedOut
        return job.result()
