"""The desk behind the official SDK, which carries its answers over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from plainmind.agent.pool import TimedOut
from plainmind.mcp.desk import IDENTITY, Desk, Task, refusal_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from pydantic import BaseModel

    Handler: TypeAlias = Callable[[ServerRequestContext[Any, Any], Any], Awaitable[Any]]

_AT_ONCE = 4  # no more than the pool searches at a time: it refuses those above that


def server_of(desk: Desk) -> Server[Any]:
    """Make a server; the transport is its caller's choice."""
    places = anyio.CapacityLimiter(_AT_ONCE)

    def handler(method: str, kind: type[BaseModel]) -> Handler:
        async def handle(_context: ServerRequestContext[Any, Any], params: BaseModel | None) -> BaseModel:
            given = {} if params is None else params.model_dump(by_alias=True, mode="json", exclude_none=True)
            try:
                answer = desk.answer(method, given)
                result = await _carry_out(desk, answer, places) if isinstance(answer, Task) else answer
            except Exception as error:  # noqa: BLE001 (told to the client, or kept for the log)
                refusal = refusal_of(error)
                raise MCPError(refusal.code, str(refusal), refusal.data) from None
            return kind.model_validate(result)

        return handle

    return Server(
        IDENTITY["name"],
        version=IDENTITY["version"],
        title=IDENTITY["title"],
        description=IDENTITY["description"],
        instructions=desk.instructions,
        on_list_tools=handler("tools/list", types.ListToolsResult),
        on_call_tool=handler("tools/call", types.CallToolResult),
        on_list_resources=handler("resources/list", types.ListResourcesResult),
        on_list_resource_templates=handler("resources/templates/list", types.ListResourceTemplatesResult),
        on_read_resource=handler("resources/read", types.ReadResourceResult),
        on_list_prompts=handler("prompts/list", types.ListPromptsResult),
        on_get_prompt=handler("prompts/get", types.GetPromptResult),
    )


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
            return _late(task)
        with anyio.move_on_after(task.seconds):
            await ended.wait()
        return job.result() if job.is_done else _late(task)


def _late(task: Task) -> dict[str, Any]:
    assert task.late is not None  # what has a deadline says what comes after it
    return task.late()
