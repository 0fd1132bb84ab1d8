"""`mcp`: serve the memory to programs that speak MCP."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console, is_terminal
from plainmind.cli.options import UsageError, describe, open_memory, whole_number, wrong_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from plainmind.agent.scope import SearchContext
    from plainmind.agent.tools import Tool
    from plainmind.memory.memory import Memory

_HOST, _PORT = "127.0.0.1", 8737


def add_mcp(parser: argparse.ArgumentParser) -> None:
    """Say what `mcp` takes."""
    describe(
        parser,
        """\
Serve the memory to any program that speaks MCP: Claude Code, Codex, Claude Desktop, Cursor, VS Code and others.

By itself it speaks over standard input and output, for a program that starts it. With --http it serves on this machine
until you press Ctrl-C; clients then need the token in ~/.plainmind/mcp-token, which is made at the first start.

Serves the workspace that --workspace or your settings name, else ~/.plainmind/workspace, which is made at the first
start: never one that merely lies in the folder where a client happens to start this. With --project it is the memory of
the repository there, kept beside yours in ~/.plainmind/projects, the same for all its clones.

Keeps its index in ~/.plainmind, and writes notes when a client asks for it.""",
        examples=(
            "claude mcp add --scope user plainmind -- plainmind mcp",
            "plainmind mcp --read-only --tools memory_search,memory_get",
            "plainmind mcp --http --port 8737",
        ),
        run=run_mcp,
    )
    parser.add_argument(
        "--project",
        action="store_true",
        help="serve the memory of the repository that this is started in, not yours",
    )
    parser.add_argument("--read-only", action="store_true", help="offer no tool that writes")
    parser.add_argument(
        "--tools",
        metavar="NAMES",
        type=_names,
        help="offer only these tools, with commas between them; `notes`, `entries` and `upkeep` name all of a kind",
    )
    parser.add_argument(
        "--connector",
        action="store_true",
        help="offer `search` and `fetch`, which ChatGPT connectors ask for",
    )
    http = parser.add_argument_group("over HTTP")
    http.add_argument("--http", action="store_true", help="serve over HTTP")
    http.add_argument(
        "--port", metavar="N", type=whole_number(0, 65_535), help=f"the port, 0 for any free one ({_PORT})"
    )
    http.add_argument("--host", metavar="ADDRESS", help=f"the address ({_HOST})")
    http.add_argument(
        "--expose",
        action="store_true",
        help="allow an address that other machines reach; put TLS in front of it",
    )
    http.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        help="a name that clients use when they come through a proxy or tunnel; may be repeated",
    )
    add_context(parser)


def add_context(parser: argparse.ArgumentParser) -> None:
    """Say how a command is told for whom the memory is used."""
    context = parser.add_argument_group("for whom, when it is not the owner at their own machine")
    context.add_argument(
        "--principal", metavar="ID", help="who asks, by the id that their channel gives them"
    )
    context.add_argument(
        "--owner", action="store_true", help="the owner asks; no id says that, not even `owner`"
    )
    context.add_argument(
        "--chat-type", choices=("direct", "group", "channel"), help="where the answers will be seen"
    )
    context.add_argument("--session-key", metavar="KEY", help="the conversation")
    context.add_argument("--channel", metavar="NAME", help="what it runs over, such as telegram")
    context.add_argument("--group", metavar="ID", help="the group or channel that will see the answers")


def run_mcp(arguments: argparse.Namespace, console: Console) -> int:
    """Serve until the client goes or a signal comes."""
    if arguments.owner and arguments.principal is not None:
        raise UsageError("--owner and --principal say two different things", "leave one of them out")
    if (arguments.principal or "").strip().casefold() == "owner":
        console.note("`--principal owner` is somebody with that id; --owner says that the owner asks")
    if arguments.http:
        _log_to_stderr()
        _serve_at_address(arguments, console)
        return 0
    for name in ("port", "host", "expose", "allow_host"):
        if vars(arguments)[name]:
            raise PlainmindError(
                f"--{name.replace('_', '-')} is about HTTP", hint="add --http, or leave it out"
            )
    _serve_on_wire(arguments, console)
    return 0


def _serve_on_wire(arguments: argparse.Namespace, console: Console) -> None:
    from plainmind.mcp.stdio import take_wire

    if sys.stdin is not None and is_terminal(sys.stdin):
        console.note("waiting for an MCP client on standard input; Ctrl-C ends it")
        console.hint("`plainmind mcp --help` shows how a client starts this; --http serves over HTTP")
    wire = take_wire()  # before anything might print
    from plainmind.mcp.desk import serve_on_wire

    memory = _open_memory(arguments)
    serve_on_wire(memory, context_of(arguments), _tools(arguments, memory), wire)


def _serve_at_address(arguments: argparse.Namespace, console: Console) -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        from plainmind.base.extras import install_hint

        raise PlainmindError(
            "MCP over HTTP needs a package that is not installed", hint=f"install it: {install_hint('mcp')}"
        )
    from plainmind.mcp.desk import serve_at_address
    from plainmind.mcp.guard import token_in, token_path
    from plainmind.mcp.http import door_of, listen, url_of

    memory = _open_memory(arguments)
    context, tools = context_of(arguments), _tools(arguments, memory)
    home = memory.home

    def tell() -> None:
        if console.json:
            console.result({"url": url_of(bound), "tokenFile": token_path(home)}, lines=True)
        console.note(f"serving MCP at {url_of(bound)} (Ctrl-C ends it)")
        console.hint(f"clients send the token in {token_path(home)} as `Authorization: Bearer …`")

    port = _PORT if arguments.port is None else arguments.port
    with listen(arguments.host or _HOST, port, exposed=arguments.expose) as bound:
        door = door_of(bound, token_in(home), arguments.allow_host or ())
        serve_at_address(memory, context, tools, bound=bound, door=door, started=tell)


def _open_memory(arguments: argparse.Namespace) -> Memory:
    """Open the memory that was named, never one that was only found; ours is made when it is not there yet."""
    if arguments.project:
        from plainmind.config.load import home_folder
        from plainmind.memory.workspace_setup import project_workspace

        if arguments.workspace is not None:
            raise UsageError("--project and --workspace name two memories", "leave one of them out")
        named = {} if arguments.home is None else {"PLAINMIND_HOME": os.path.abspath(arguments.home)}
        arguments.workspace = project_workspace(os.getcwd(), home_folder({**os.environ, **named}))
    memory = open_memory(arguments, looks_around=False)
    is_ours = arguments.project or memory.workspace_origin.kind == "default"
    if is_ours and not os.path.lexists(memory.workspace):
        from plainmind.memory.workspace_setup import make_place

        make_place(memory.notes)
    return memory


def _log_to_stderr() -> None:
    import logging

    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )


def _tools(arguments: argparse.Namespace, memory: Memory) -> Sequence[Tool]:
    from plainmind.mcp.offers import offered_tools

    return offered_tools(
        memory, arguments.tools, read_only=arguments.read_only, connector=arguments.connector
    )


def context_of(arguments: argparse.Namespace) -> SearchContext:
    """Who asks. As soon as a gateway says anything about that, nothing else is taken for granted."""
    from plainmind.agent.scope import OWNER, THE_OWNER, SearchContext

    named = (
        arguments.principal,
        arguments.chat_type,
        arguments.session_key,
        arguments.channel,
        arguments.group,
    )
    if all(one is None for one in named):
        return THE_OWNER
    principal, chat_type, session_key, channel, group = (one or "" for one in named)
    return SearchContext(OWNER if arguments.owner else principal, chat_type, session_key, channel, group)


def _names(text: str) -> Sequence[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise wrong_value("name at least one tool")
    return names
