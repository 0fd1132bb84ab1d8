"""What a server of one memory answers, whatever carries its messages: every method of MCP; and who serves it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock

from plainmind import __version__
from plainmind.agent.recalls import Asker
from plainmind.agent.tool_calls import Pool
from plainmind.agent.tools import ToolBox, for_mcp, recall_section
from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import find_by_name
from plainmind.base.value import value
from plainmind.mcp.offers import (
    CONNECTOR_TOOLS,
    Connector,
    box_of,
    prompt_messages,
    prompts_with,
    resource_page,
    resource_templates,
    resource_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    from plainmind.agent.answers import ToolAnswer
    from plainmind.agent.scope import AgentMemory, SearchContext, Tools
    from plainmind.agent.tool_calls import Job
    from plainmind.agent.tools import Tool
    from plainmind.mcp.guard import Door
    from plainmind.mcp.stdio import Wire
    from plainmind.memory.memory import Memory
    from plainmind.memory.scoped import ScopedMemory

    Result: TypeAlias = dict[str, Any]
    Params: TypeAlias = Mapping[str, Any]

    class View(Protocol):
        """What a person looks at inside the client."""

        def html(self) -> str:
            """All of it."""

        def answer(self, scoped: ScopedMemory, asked: Mapping[str, Any]) -> tuple[Result, bool]:
            """What it asked for, and whether that is refused."""


IDENTITY: Mapping[str, str] = {
    "name": "plainmind",
    "title": "Plainmind",
    "version": __version__,
    "description": "The memory of AI agents, kept in plain Markdown",
}
# Nothing here changes while a server runs, and nobody is told when a file does: a client reads it again.
CAPABILITIES: Mapping[str, Mapping[str, bool]] = {
    "prompts": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": False},
    "tools": {"listChanged": False},
}

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR, TOO_MANY, UNSUPPORTED_VERSION = -32602, -32603, -32000, -32022

# The extension MCP Apps: what a client that shows a view says, where ours is, and the tools whose calls it shows.
APPS, APP_KIND = "io.modelcontextprotocol/ui", "text/html;profile=mcp-app"
VIEW_ADDRESS = "ui://plainmind/memory.html"
_SHOWN = frozenset({"memory_search", "memory_get"})
_VIEW = {"ui": {"resourceUri": VIEW_ADDRESS}}
# For the view alone: hosts show a model no tool that is only for apps. It carries requests of the page.
PAGE_TOOL: Mapping[str, Any] = {
    "name": "memory_page",
    "title": "What the view of the memory asks for",
    "description": "For the view alone, which shows the memory to a person.",
    "inputSchema": {
        "type": "object",
        "properties": {"method": {"type": "string"}, "path": {"type": "string"}, "body": {"type": "object"}},
        "required": ["method", "path"],
    },
    "annotations": {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False},
    "_meta": {"ui": {"resourceUri": VIEW_ADDRESS, "visibility": ["app"]}},
}
HOOK = "hook"  # a tool that is not listed
_LAST_CALLS_SECONDS = 5.0
_MOST_NAMES = 16  # of clients that are told apart in the recall log


@value
class Client:
    """Who asks, as it introduces itself."""

    name: str = ""
    shows_apps: bool = False  # of the extension MCP Apps


def client_of(info: object, capabilities: object = None) -> Client:
    """A client by what it sends of itself, which may be anything."""
    name = info.get("name") if isinstance(info, Mapping) else None
    return Client(name if isinstance(name, str) else "", _shows_apps(capabilities))


def _shows_apps(capabilities: object) -> bool:
    found = capabilities
    for key in ("extensions", APPS, "mimeTypes"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return isinstance(found, Sequence) and APP_KIND in found


NOBODY = Client()


class Refusal(Exception):
    """A request that gets no result; the message is for whoever sent it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def refusal_of(error: BaseException) -> Refusal:
    """Say in a sentence what went wrong; our own mistakes go to the log, and what is in them to nobody else."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, PlainmindError):
        return Refusal(INVALID_PARAMS, f"{error}; {error.hint}" if error.hint else str(error))
    import logging

    logging.getLogger(__name__).error("a request failed", exc_info=error)
    return Refusal(INTERNAL_ERROR, f"this failed inside ({type(error).__name__})")


@value
class Task:
    """A request that takes its time, in a thread; when that is more than `seconds`, `late` answers it."""

    work: Callable[[], Result]
    seconds: float | None = None  # None: it is waited for as long as it takes
    late: Callable[[], Result] | None = None

    def give_up(self) -> Result:
        """Answer without its result, after the time is over."""
        assert self.late is not None  # what has a deadline says what comes after it
        return self.late()


def instructions_for(memory: AgentMemory, tools: Iterable[Tool]) -> str | None:
    """What a model should know about the tools before it uses any; None when there is nothing to say."""
    names = [tool.name for tool in tools]
    return recall_section(names, shows_citations=memory.shows_citations) or None


class Desk:
    """Answers the requests of all clients of one server."""

    def __init__(
        self,
        memory: ScopedMemory,
        tools: Sequence[Tool],
        open_box: Callable[[ScopedMemory], tuple[Tools, Callable[[], None]]] | None = None,
        hook: Callable[[Params], str] | None = None,
        open_view: Callable[[], View] | None = None,
        *,
        token: str = "",
    ) -> None:
        """`open_box` makes what carries the tools out, and what closes it; without it they are those of the notes.

        `hook` answers the events of a host that calls a tool for them; it is not listed, for no model should call it.
        `open_view` makes what clients of MCP Apps show, when one asks for it.
        `token` is the name of the token that all clients of this desk show, for the recall log.
        """
        self._memory = memory
        self._tools = {tool.name: tool for tool in tools}
        self._open_box = open_box or _box_of_notes
        self._hook = hook
        self._open_view = open_view
        self._view: View | None = None
        self._token = token
        self._visitors: dict[str, _Visitor] = {}
        self._opening = Lock()
        self._pool = Pool()
        self.instructions = instructions_for(memory, tools)
        self._methods: Mapping[str, Callable[[Params, Client], Result | Task]] = {
            "ping": lambda _params, _client: {},
            "tools/list": lambda _params, client: {"tools": self._listed(client)},
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": lambda _params, _client: resource_templates(),
            "resources/read": self._read_resource,
            "prompts/list": lambda _params, _client: {"prompts": prompts_with(self._tools)},
            "prompts/get": self._get_prompt,
        }

    def introduction(self, client: Client = NOBODY) -> Result:
        """What a client learns first of all."""
        told: Result = {"capabilities": {name: dict(facts) for name, facts in CAPABILITIES.items()}}
        if self._shows_view(client):
            told["capabilities"]["extensions"] = {APPS: {}}
        return told if self.instructions is None else {**told, "instructions": self.instructions}

    def answer(self, method: str, params: Params, client: Client = NOBODY) -> Result | Task:
        """The result of a request, or the task that makes it. Raises Refusal."""
        handle = self._methods.get(method)
        if handle is None:
            raise Refusal(METHOD_NOT_FOUND, f"there is no method `{method[:100]}` here", method[:100])
        return handle(params, client)

    def start(self, task: Task, on_end: Callable[[], None]) -> Job[Result]:
        """Give a task to a thread; `on_end` is called there. Raises TimedOut when too many go on beyond their time."""
        return self._pool.start(task.work, has_deadline=task.seconds is not None, on_end=on_end)

    def close(self) -> bool:
        """Wait for calls that are still running; False when one takes longer, and keeps what it uses."""
        is_idle = self._pool.wait(_LAST_CALLS_SECONDS)
        for visitor in self._visitors.values():
            visitor.close(is_idle=is_idle)
        return is_idle

    def _shows_view(self, client: Client) -> bool:
        return client.shows_apps and self._open_view is not None and not self._tools.keys().isdisjoint(_SHOWN)

    def _opened_view(self) -> View:
        assert self._open_view is not None  # or it would not be shown
        with self._opening:
            self._view = self._view or self._open_view()
            return self._view

    def _listed(self, client: Client) -> list[Result]:
        listed = for_mcp([*self._tools.values()])
        if not self._shows_view(client):
            return listed
        for tool in listed:
            if tool["name"] in _SHOWN:
                tool["_meta"] = {**tool.get("_meta", {}), **_VIEW}
        return [*listed, dict(PAGE_TOOL)]

    def _answer_view(self, visitor: _Visitor, asked: Params) -> Result:
        answer, is_refused = self._opened_view().answer(visitor.memory, asked)
        told = "this is for the view, which shows it"
        return {
            "content": [{"type": "text", "text": told}],
            "structuredContent": answer,
            "isError": is_refused,
        }

    def _visitor(self, client: Client) -> _Visitor:
        """What a client of this name is served with. Those of too many names are served as one without."""
        with self._opening:
            known = self._visitors
            name = client.name if client.name in known or len(known) < _MOST_NAMES else ""
            if name not in known:
                known[name] = _Visitor(self._memory.for_asker(self._asker(name)), self._open_box)
            return known[name]

    def _asker(self, name: str) -> Asker:
        return Asker("mcp", f"{name} ({self._token})" if name and self._token else name or self._token)

    def _call_tool(self, params: Params, client: Client) -> Task:
        name, arguments = _text_in(params, "name"), params.get("arguments")
        tool = self._tools.get(name)
        if arguments is not None and not isinstance(arguments, Mapping):
            raise Refusal(INVALID_PARAMS, "`arguments` must be an object")
        if tool is None and name == HOOK and self._hook is not None:
            return Task(partial(_hook_result, self._hook, arguments or {}))
        if tool is None and name == PAGE_TOOL["name"] and self._shows_view(client):
            return Task(partial(self._answer_view, self._visitor(client), arguments or {}))
        if tool is None:
            known = ", ".join(self._tools)
            raise Refusal(INVALID_PARAMS, f"there is no tool `{name[:100]}` here, only {known}")
        visitor = self._visitor(client)
        box = Connector(visitor.memory) if tool in CONNECTOR_TOOLS else visitor.box
        call, late = box.prepare(name, arguments or {}), None
        if call.late is not None:
            late = partial(_after, call.late, partial(_tool_result, tool))
        return Task(partial(_after, call.work, partial(_tool_result, tool)), call.seconds, late)

    def _list_resources(self, params: Params, _client: Client) -> Task:
        cursor = None if params.get("cursor") is None else _text_in(params, "cursor")
        return Task(partial(resource_page, self._memory, cursor))

    def _read_resource(self, params: Params, client: Client) -> Task:
        address = _text_in(params, "uri")
        if address == VIEW_ADDRESS and self._shows_view(client):
            return Task(self._read_view)
        return Task(partial(resource_text, self._visitor(client).memory, address))

    def _read_view(self) -> Result:
        view = {"uri": VIEW_ADDRESS, "mimeType": APP_KIND, "text": self._opened_view().html()}
        return {"contents": [{**view, "_meta": {"ui": {"prefersBorder": True}}}]}

    def _get_prompt(self, params: Params, client: Client) -> Task:
        name, arguments = _text_in(params, "name"), params.get("arguments") or {}
        if not isinstance(arguments, Mapping):
            raise Refusal(INVALID_PARAMS, "`arguments` must be an object")
        find = partial(_found_for, self._visitor(client))
        return Task(partial(prompt_messages, self._tools, name, arguments, find))


class _Visitor:
    """A client by its name: the memory that notes down who asks, and the tools over it, opened at the first call."""

    def __init__(
        self, memory: ScopedMemory, open_box: Callable[[ScopedMemory], tuple[Tools, Callable[[], None]]]
    ) -> None:
        self.memory = memory
        self._open = open_box
        self._opening = Lock()
        self._opened: tuple[Tools, Callable[[], None]] | None = None

    @property
    def box(self) -> Tools:
        """What carries the tools out."""
        with self._opening:
            self._opened = self._opened or self._open(self.memory)
            return self._opened[0]

    def close(self, *, is_idle: bool) -> None:
        """Let the box go, and unless something is still using it, what is beneath."""
        if self._opened is not None:
            self._opened[0].close()
            if is_idle:
                self._opened[1]()


def _box_of_notes(memory: ScopedMemory) -> tuple[Tools, Callable[[], None]]:
    return ToolBox(memory), lambda: None


def _found_for(visitor: _Visitor, query: str) -> str:
    return visitor.box.call("memory_search", {"query": query}).text


def _after(make: Callable[[], ToolAnswer], shape: Callable[[ToolAnswer], Result]) -> Result:
    return shape(make())


def _tool_result(tool: Tool, answer: ToolAnswer) -> Result:
    """An answer as MCP gives it.

    Some clients hand on the text, some the structure, some both: recalled text stands in one of them alone, between
    its marks.
    """
    result: Result = {"content": [{"type": "text", "text": answer.text}], "isError": answer.is_error}
    if tool.is_structured and answer.content:
        result["structuredContent"] = dict(answer.content)
    return result


def _hook_result(answer: Callable[[Params], str], event: Params) -> Result:
    return {"content": [{"type": "text", "text": answer(event)}], "isError": False}


def _text_in(params: Params, name: str) -> str:
    found = params.get(name)
    if not isinstance(found, str):
        raise Refusal(INVALID_PARAMS, f"`{name}` must be there, and a text")
    return found


# What a host's hooks are answered by, where they call a tool and start no program.
_HOOK = "plainmind.guests.hosts.hook:answer_call"
# What clients show to a person, of the extension MCP Apps.
_HOSTED = "plainmind.guests.page.bundle:View"


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

    from plainmind.mcp.http import serve_http, server_of

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
        view: View = find_by_name(_HOSTED)(memory)
        return view

    # It recalls and keeps everything: for the owner, where notes may be written.
    has_hook = scoped.access.sees_everything and any(tool.name == "memory_append" for tool in tools)
    return Desk(scoped, tools, open_box, hook if has_hook else None, open_view, token=token)


def _warn(problem: str) -> None:
    import logging

    logging.getLogger(__name__).warning("while keeping the index up to date: %s", problem)
