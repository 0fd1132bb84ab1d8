"""The desk behind the official SDK, which carries its answers over HTTP; either generation of the SDK will do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec

import anyio

from plainmind.agent.pool import TimedOut
from plainmind.base.lazy import find_by_name
from plainmind.mcp.desk import IDENTITY, Client, Desk, Refusal, Task, client_of, refusal_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from mcp.server.lowlevel import Server
    from pydantic import BaseModel

    Ask: TypeAlias = Callable[[str, BaseModel | None, Any], Awaitable[dict[str, Any]]]

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
            return _late(task)
        with anyio.move_on_after(task.seconds):
            await ended.wait()
        return job.result() if job.is_done else _late(task)


def _late(task: Task) -> dict[str, Any]:
    assert task.late is not None  # what has a deadline says what comes after it
    return task.late()
