"""MCP beside the page: the owner's token has all tools, a named one those that it has the right for, in its context."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_text
from plainmind.base.value import replace
from plainmind.guests.page.gate import header_map, token_in
from plainmind.guests.page.problems import Problem
from plainmind.guests.page.tokens import Caller, Callers
from plainmind.mcp.desk import desk_of
from plainmind.mcp.guard import Refused, refuse
from plainmind.mcp.http import mcp_app, server_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from anyio.abc import TaskGroup, TaskStatus

    from plainmind.agent.tools import Tool
    from plainmind.mcp.desk import Desk
    from plainmind.mcp.guard import Door
    from plainmind.memory.memory import Memory


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
