"""All ways in which something of the memory comes out. Whoever adds one adds a line to SURFACES."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.scope_world import ARCHIVED, FULL, QUERIES, SPELLINGS, TEXTS, Text, as_flags

from plainmind import OWNER, Memory, PlainmindError, SearchContext
from plainmind.agent.tools import TOOLS, ToolBox

Surface = Callable[[Memory, SearchContext], Iterator[str]]


def shown(ask: Callable[[], Any]) -> str:
    """What comes out of a call, also if that is an error; the question itself is no answer."""
    try:
        answer = ask()
    except PlainmindError as error:
        causes = [error, error.__cause__, None if error.__suppress_context__ else error.__context__]
        return " ".join(f"{cause!r} {getattr(cause, 'hint', '')}" for cause in causes)
    return repr(answer)


def searching(memory: Memory, context: SearchContext) -> Iterator[str]:
    scoped = memory.within(context)
    for query in QUERIES:
        yield shown(partial(scoped.search, query, max_results=50, min_score=0.0))


def reading(memory: Memory, context: SearchContext) -> Iterator[str]:
    scoped = memory.within(context)
    for text in TEXTS:
        for spelled in SPELLINGS:
            yield shown(partial(scoped.get, spelled(text.path)))


def listing(memory: Memory, context: SearchContext) -> Iterator[str]:
    scoped = memory.within(context)
    yield shown(scoped.list)


def beginning(memory: Memory, context: SearchContext) -> Iterator[str]:
    scoped = memory.within(context)
    yield shown(scoped.start_context)


def asking_for_status(memory: Memory, context: SearchContext) -> Iterator[str]:
    scoped = memory.within(context)
    yield shown(scoped.status)


def planning_to_forget(memory: Memory, context: SearchContext) -> Iterator[str]:
    scoped = memory.within(context)
    for text in TEXTS:
        yield shown(partial(scoped.forget, text.ask, dry_run=True))
        yield shown(partial(scoped.forget, f"{text.path}#L1", dry_run=True))


def using_tools(memory: Memory, context: SearchContext) -> Iterator[str]:
    scoped = memory.within(context)
    tools = ToolBox(scoped)
    calls = [("memory_search", {"query": query, "maxResults": 50, "minScore": 0}) for query in QUERIES]
    for text in TEXTS:
        calls += [("memory_forget", {"what": what}) for what in (text.ask, f"{text.path}#L1")]
        nothing = {"old": "no such text", "new": "x"}
        calls += [
            ("memory_edit", {"path": spelled(text.path), **nothing}) for spelled in some_spellings(text)
        ]
    calls.append(("memory_status", {}))
    yield from called(tools, calls)


def reading_with_a_tool(memory: Memory, context: SearchContext) -> Iterator[str]:
    paths = [spelled(text.path) for text in TEXTS for spelled in SPELLINGS]
    yield from called(ToolBox(memory.within(context)), [("memory_get", {"path": path}) for path in paths])


def called(tools: ToolBox, calls: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    for name, arguments in calls:
        answer = tools.call(name, arguments)
        yield f"{answer.text} {json.dumps(answer.content)}"
    tools.close()


def using_the_memory_tool(memory: Memory, context: SearchContext) -> Iterator[str]:
    scoped = memory.within(context)
    tool = scoped.memory_tool()
    paths = ["/memories", "/memories/..", "/memories/../..", "/memories/%2e%2e", "/memories/shared-with"]
    for text in TEXTS:
        below = text.path.removeprefix("memory/")
        paths += [f"/memories/{path}" for path in (text.path, below, f"../{below}", f"../../{text.path}")]
    for path in paths:
        for command in (
            {"command": "view", "path": path},
            {"command": "str_replace", "path": path, "old_str": "no such text", "new_str": ""},
            {"command": "rename", "old_path": path, "new_path": f"{path}/no/such.txt"},
        ):
            yield tool.call(command).text


def through_mcp(memory: Memory, context: SearchContext) -> Iterator[str]:
    pytest.importorskip("mcp")
    if context.chat_type not in {"", "direct", "group", "channel"}:
        yield memory.within(context).access.reason  # the program takes no such kind of chat
        return
    flags = {
        "principal": "" if context.principal is OWNER else context.principal,
        "chat-type": context.chat_type,
        "session-key": context.session_key,
    }
    flags |= {"channel": context.channel, "group": context.group}
    argv = [
        sys.executable,
        "-m",
        "plainmind",
        "--home",
        memory.places.home,
        "--workspace",
        memory.workspace,
    ]
    argv += as_flags(Path(memory.workspace).parent, memory)
    argv += ["mcp", "--tools", ",".join((*(tool.name for tool in TOOLS), "search", "fetch"))]
    argv += [*(f"--{name}={given}" for name, given in flags.items() if given)]
    if context.principal is OWNER:
        argv.append("--owner")
    if context == SearchContext("", "", ""):
        argv.append("--principal=")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for number, (method, params) in enumerate(mcp_requests()):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            answer = server.stdout.readline()
            assert json.loads(answer)["id"] == number
            if method == "initialize":
                server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
            else:
                yield answer
        server.stdin.close()


def mcp_requests() -> Iterator[tuple[str, dict[str, Any]]]:
    client = {"name": "matrix", "version": "1"}
    yield "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    yield "resources/list", {}
    yield "tools/call", {"name": "memory_status", "arguments": {}}
    for text in TEXTS:
        yield "tools/call", {"name": "memory_search", "arguments": {"query": text.ask, "minScore": 0}}
        yield "tools/call", {"name": "search", "arguments": {"query": text.ask}}
        yield "tools/call", {"name": "memory_forget", "arguments": {"what": text.ask}}
        for spelled in some_spellings(text):
            path = spelled(text.path)
            yield "tools/call", {"name": "memory_get", "arguments": {"path": path}}
            yield "tools/call", {"name": "fetch", "arguments": {"id": path}}
            yield "resources/read", {"uri": f"memory:///{path}"}
        yield "resources/read", {"uri": f"memory:///memory/%2e%2e/{text.path}"}


def some_spellings(text: Text) -> list[Callable[[str], str]]:
    """As it is, and some in one other way: all of them are tried by those who read, without a server between."""
    number = TEXTS.index(text)
    others = SPELLINGS[1 + number % (len(SPELLINGS) - 1) :][: 1 if FULL or number % 3 == 0 else 0]
    return [SPELLINGS[0], *others]


SURFACES: dict[str, Surface] = {
    "search": searching,
    "get": reading,
    "list": listing,
    "start context": beginning,
    "status": asking_for_status,
    "forget": planning_to_forget,
    "tools": using_tools,
    "reading tool": reading_with_a_tool,
    "memory tool": using_the_memory_tool,
    "mcp": through_mcp,
}
# What they say depends on where the index is kept. Tools ask in the same way: on one store, and on all in full.
BY_INDEX = {"search", "status", "forget"}
# What must come out of a surface where it may: else a surface that is simply broken would pass.
SHOWN: dict[str, Callable[[Text], bool]] = {
    "search": lambda text: text.scope != "past",
    "get": lambda text: text.scope != "past" and text is not ARCHIVED,
    "tools": lambda text: text.scope != "past",
    "reading tool": lambda text: text.scope != "past" and text is not ARCHIVED,
    "mcp": lambda text: text.scope != "past",
}
