"""What a server of one memory answers, whatever carries its messages: every method of MCP, its result or a refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock

from plainmind import __version__
from plainmind.agent.pool import Pool
from plainmind.agent.prompt import recall_section
from plainmind.agent.recalls import Asker
from plainmind.agent.tools import ToolBox, for_mcp
from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.mcp.prompts import prompt_messages, prompts_with
from plainmind.mcp.resources import resource_page, resource_templates, resource_text
from plainmind.mcp.tools import CONNECTOR_TOOLS, Connector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from plainmind.agent.answers import ToolAnswer
    from plainmind.agent.pool import Job
    from plainmind.agent.protocol import AgentMemory, Tools
    from plainmind.agent.tools import Tool
    from plainmind.memory.scoped import ScopedMemory

    Result: TypeAlias = dict[str, Any]
    Params: TypeAlias = Mapping[str, Any]


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

HOOK = "hook"  # a tool that is not listed
_LAST_CALLS_SECONDS = 5.0


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
        open_box: Callable[[], Tools] | None = None,
        hook: Callable[[Params], str] | None = None,
    ) -> None:
        """`open_box` makes what carries the tools out, at the first call; without it they are those of the notes.

        `hook` answers the events of a host that calls a tool for them; it is not listed, for no model should call it.
        """
        self._memory = memory
        self._tools = {tool.name: tool for tool in tools}
        self._open_box = open_box
        self._hook = hook
        self._box: Tools | None = None
        self._opening = Lock()
        self._pool = Pool()
        self.instructions = instructions_for(memory, tools)
        self._methods: Mapping[str, Callable[[Params], Result | Task]] = {
            "ping": lambda _params: {},
            "tools/list": lambda _params: {"tools": for_mcp(tools)},
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": lambda _params: resource_templates(),
            "resources/read": self._read_resource,
            "prompts/list": lambda _params: {"prompts": prompts_with(self._tools)},
            "prompts/get": self._get_prompt,
        }

    def meet(self, client: object) -> None:
        """Hear the name of the client, as it introduces itself: the recall log tells who asked."""
        name = client.get("name") if isinstance(client, Mapping) else None
        if isinstance(name, str):
            self._memory.asker = Asker("mcp", name)

    def introduction(self) -> Result:
        """What a client learns first of all."""
        told: Result = {"capabilities": {name: dict(facts) for name, facts in CAPABILITIES.items()}}
        return told if self.instructions is None else {**told, "instructions": self.instructions}

    def answer(self, method: str, params: Params) -> Result | Task:
        """The result of a request, or the task that makes it. Raises Refusal."""
        handle = self._methods.get(method)
        if handle is None:
            raise Refusal(METHOD_NOT_FOUND, f"there is no method `{method[:100]}` here", method[:100])
        return handle(params)

    def start(self, task: Task, on_end: Callable[[], None]) -> Job[Result]:
        """Give a task to a thread; `on_end` is called there. Raises TimedOut when too many go on beyond their time."""
        return self._pool.start(task.work, has_deadline=task.seconds is not None, on_end=on_end)

    def close(self) -> bool:
        """Wait for calls that are still running; False when one takes longer."""
        is_idle = self._pool.wait(_LAST_CALLS_SECONDS)
        if self._box is not None:
            self._box.close()
        return is_idle

    def _call_tool(self, params: Params) -> Task:
        name, arguments = _text_in(params, "name"), params.get("arguments")
        tool = self._tools.get(name)
        if arguments is not None and not isinstance(arguments, Mapping):
            raise Refusal(INVALID_PARAMS, "`arguments` must be an object")
        if tool is None and name == HOOK and self._hook is not None:
            return Task(partial(_hook_result, self._hook, arguments or {}))
        if tool is None:
            known = ", ".join(self._tools)
            raise Refusal(INVALID_PARAMS, f"there is no tool `{name[:100]}` here, only {known}")
        box = Connector(self._memory) if tool in CONNECTOR_TOOLS else self._toolbox()
        call, late = box.prepare(name, arguments or {}), None
        if call.late is not None:
            late = partial(_after, call.late, partial(_tool_result, tool))
        return Task(partial(_after, call.work, partial(_tool_result, tool)), call.seconds, late)

    def _toolbox(self) -> Tools:
        with self._opening:
            if self._box is None:
                self._box = ToolBox(self._memory) if self._open_box is None else self._open_box()
            return self._box

    def _list_resources(self, params: Params) -> Task:
        cursor = None if params.get("cursor") is None else _text_in(params, "cursor")
        return Task(partial(resource_page, self._memory, cursor))

    def _read_resource(self, params: Params) -> Task:
        return Task(partial(resource_text, self._memory, _text_in(params, "uri")))

    def _get_prompt(self, params: Params) -> Task:
        name, arguments = _text_in(params, "name"), params.get("arguments") or {}
        if not isinstance(arguments, Mapping):
            raise Refusal(INVALID_PARAMS, "`arguments` must be an object")
        return Task(partial(prompt_messages, self._tools, name, arguments, self._found_for))

    def _found_for(self, query: str) -> str:
        return self._toolbox().call("memory_search", {"query": query}).text


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
