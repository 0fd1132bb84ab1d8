"""`serve`, `page` and `tokens`: the memory in a browser, and for programs over HTTP."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console, plural
from plainmind.cli.options import UsageError, commands_below, describe, open_memory, whole_number, wrong_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from plainmind.agent.scope import SearchContext
    from plainmind.guests.page.gate import TokenFile
    from plainmind.guests.page.running import Running
    from plainmind.memory.memory import Memory

_HOST, _PORT = "127.0.0.1", 8738
_RIGHTS = ("read", "write", "forget", "review")


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Say what `serve` takes."""
    describe(
        parser,
        """\
Serve the memory over HTTP until you press Ctrl-C: the page for people, /v1 for programs, and /mcp for agents, in one
process. `plainmind page` opens the page in a browser; programs need a token, which `plainmind tokens add` makes.

Stays on this machine (127.0.0.1). For another address it needs a certificate, or a proxy with TLS in front. Writes into
the workspace what clients with the right for it ask for, and keeps tokens and its own state in ~/.plainmind/page.""",
        examples=(
            "plainmind serve",
            "plainmind serve --read-only --port 9000",
            "plainmind serve --host 0.0.0.0 --certificate box.pem --key box.key --allow-host box.lan:8738",
        ),
        run=run_serve,
    )
    _add_serving(parser)


def add_page(parser: argparse.ArgumentParser) -> None:
    """Say what `page` takes."""
    describe(
        parser,
        """\
Look at what the memory holds, and change it, in a browser. Opens the page of the server that is running; without one,
starts it and serves until you press Ctrl-C.

The address holds a code that works once and for a minute: nobody else on this machine can open the page. What you
change there is written into your workspace, and can be undone; nothing is sent to another machine.""",
        examples=(
            "plainmind page",
            "plainmind page --no-open",
            "plainmind page --read-only",
            "plainmind page --export notes.html --with-private",
        ),
        run=run_page,
    )
    parser.add_argument(
        "--no-open", dest="opens", action="store_false", default=True, help="print the address, open nothing"
    )
    parser.add_argument(
        "--export",
        metavar="FILE",
        help="write notes and page into one HTML file to read and search anywhere, and open nothing",
    )
    parser.add_argument(
        "--with-private", action="store_true", help="with --export: private notes too, not only shared ones"
    )
    parser.add_argument("--force", action="store_true", help="with --export: overwrite FILE")
    _add_serving(parser)


def _add_serving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--read-only", action="store_true", help="nothing can be changed through it")
    parser.add_argument(
        "--port", metavar="N", type=whole_number(0, 65_535), help=f"the port, 0 for any free one ({_PORT})"
    )
    parser.add_argument("--host", metavar="ADDRESS", help=f"the address ({_HOST})")
    parser.add_argument("--certificate", metavar="FILE", help="for TLS: the certificate, in PEM")
    parser.add_argument("--key", metavar="FILE", help="for TLS: its key, in PEM")
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        help="a name that clients use when they come through a proxy or tunnel; may be repeated",
    )


def run_serve(arguments: argparse.Namespace, console: Console) -> int:
    """Serve until a signal comes."""
    _require_packages()

    def tell(running: Running, _code: str) -> None:
        if console.json:
            facts = {"url": running.url, "pid": running.pid, "mcp": _mcp_url(running)}
            console.result(facts, lines=True)
        console.note(f"serving the page, /v1 and /mcp at {running.url} (Ctrl-C ends it)")
        console.hint("`plainmind page` opens it; `plainmind tokens add NAME` makes a token for a program")

    _serve(arguments, tell)
    return 0


def _mcp_url(running: Running) -> str | None:
    from plainmind.guests.page.server import has_mcp

    return f"{running.url}/mcp" if has_mcp() else None


def run_page(arguments: argparse.Namespace, console: Console) -> int:
    """Open the page of the server that runs, or start one."""
    from plainmind.guests.page.running import ask_for_code, find_running

    if arguments.export is not None:
        return _export(arguments, console)
    _require_packages()
    with open_memory(arguments) as memory:
        running = find_running(memory)
    if running is not None:
        _open(running, ask_for_code(running), arguments, console)
        return 0

    def tell(running: Running, code: str) -> None:
        _open(running, code, arguments, console)
        console.note("Ctrl-C ends it")

    _serve(arguments, tell)
    return 0


def _export(arguments: argparse.Namespace, console: Console) -> int:
    from plainmind.cli.notes import new_file
    from plainmind.guests.page.bundle import make_page

    target = os.path.abspath(arguments.export)
    with open_memory(arguments) as memory:
        exported = make_page(memory, with_private=arguments.with_private)
    with new_file(target, overwrite=arguments.force) as stream:
        stream.write(exported.html.encode("utf-8"))
    if console.json:
        console.result({"output": target, "files": exported.files, "leftOut": exported.left_out})
        return 0
    console.say(f"wrote {plural(exported.files, 'note')} to {arguments.export}")
    if exported.left_out:
        console.note(f"{plural(exported.left_out, 'private note')} left out: --with-private takes them along")
    return 0


def _open(running: Running, code: str, arguments: argparse.Namespace, console: Console) -> None:
    """Show the page to the person who asked for it; the code stands in the fragment, which no server is sent."""
    address = f"{running.url}/#code={code}"
    if console.json:
        console.result({"url": running.url, "address": address}, lines=True)
        return
    if not arguments.opens:
        console.answer(address)
        sys.stdout.flush()
        return
    import webbrowser

    if webbrowser.open(address):
        console.note(f"the page is open in your browser ({running.url})")
    else:
        console.answer(address)
        sys.stdout.flush()
        console.note("no browser could be started: open this address yourself, within a minute")


def _require_packages() -> None:
    from importlib.util import find_spec

    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        from plainmind.base.extras import install_hint

        raise PlainmindError(
            "the page needs packages that are not installed", hint=f"install them: {install_hint('page')}"
        )


def _serve(arguments: argparse.Namespace, tell: Callable[[Running, str], None]) -> None:
    import logging
    import secrets
    import threading
    from functools import partial

    from plainmind.agent.scope import THE_OWNER
    from plainmind.guests.page.call import Keeper
    from plainmind.guests.page.gate import RIGHTS, Callers, Gate, PageSessions, TokenFile
    from plainmind.guests.page.parts import warm_entries
    from plainmind.guests.page.running import Running, hold_place, tell_running
    from plainmind.guests.page.server import PageApp, run_server
    from plainmind.mcp.desk import open_desk
    from plainmind.mcp.guard import token_in
    from plainmind.mcp.http import door_of
    from plainmind.mcp.offers import offered_tools

    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    tls = _tls(arguments)
    memory = open_memory(arguments)
    memory.notes.require_workspace()
    memory.notes.workspace.expect_more_looks()
    with hold_place(memory) as place, _listen(arguments, tls) as bound:
        scheme = "https" if tls else "http"
        door = door_of(bound, token_in(memory.home), arguments.allow_host or (), scheme=scheme)
        rights = frozenset({"read"} if arguments.read_only else RIGHTS)
        secret = secrets.token_urlsafe(32)
        sessions = PageSessions(rights)
        callers = Callers(sessions, TokenFile(memory.home), secret, read_only=arguments.read_only)
        gate = Gate(door.hosts, door.origins, callers, arguments.read_only)
        keeper = Keeper(memory, callers, read_only=arguments.read_only)
        running = Running(_url(bound, scheme), secret, os.getpid(), tls and os.path.abspath(tls[0]))

        def started() -> None:
            tell_running(place, running)
            tell(running, sessions.make_code()[0])
            warm = partial(warm_entries, memory, read_only=arguments.read_only)
            threading.Thread(target=warm, name="plainmind entries", daemon=True).start()

        tools = offered_tools(memory, None, read_only=arguments.read_only, connector=False)
        with open_desk(memory, THE_OWNER, tools) as desk:
            app = PageApp(memory, keeper, gate)
            run_server(app, desk, tools, door, bound, started=started, tls=tls)


def _tls(arguments: argparse.Namespace) -> tuple[str, str] | None:
    if (arguments.certificate is None) != (arguments.key is None):
        raise UsageError("TLS needs both --certificate and --key", "give both, or neither")
    if arguments.certificate is None:
        return None
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(arguments.certificate, arguments.key)
    except (OSError, ssl.SSLError) as error:
        raise PlainmindError(
            f"the certificate or its key cannot be used: {error}", hint="give both as PEM files"
        ) from error
    return arguments.certificate, arguments.key


def _listen(arguments: argparse.Namespace, tls: tuple[str, str] | None) -> socket.socket:
    from plainmind.mcp.http import listen

    host, port = arguments.host or _HOST, arguments.port
    instead = "give --certificate and --key"
    is_fixed = port is not None or arguments.command == "serve"
    try:
        return listen(host, _PORT if port is None else port, exposed=tls is not None, instead=instead)
    except PlainmindError:
        if is_fixed:
            raise
    return listen(
        host, 0, exposed=tls is not None, instead=instead
    )  # the usual port is taken: any other will do


def _url(bound: socket.socket, scheme: str) -> str:
    from plainmind.mcp.http import url_of

    return f"{scheme}://" + url_of(bound).removeprefix("http://").removesuffix("/mcp")


# --- tokens ---


def add_tokens(parser: argparse.ArgumentParser) -> None:
    """Say what `tokens` takes."""
    describe(
        parser,
        """\
Let programs use /v1 and /mcp, each with a token of its own: a name, what it may do, and for whom it asks. Without a
word more, lists them. Only a hash of a token is kept, in ~/.plainmind/page/tokens.json; what is revoked is refused.""",
        examples=(
            "plainmind tokens add shortcuts --rights read,write",
            "plainmind tokens add family-bot --rights read,write --chat-type group --channel telegram --group -100",
            "plainmind tokens revoke shortcuts",
        ),
        run=run_list_tokens,
    )
    add = commands_below(parser)
    add("list", "list the tokens", "plainmind tokens list", run_list_tokens)
    adding = add(
        "add",
        "make a token, and print it this once",
        "plainmind tokens add shortcuts --rights read",
        run_add_token,
    )
    adding.add_argument("name", metavar="NAME", help="what it is for")
    adding.add_argument(
        "--rights",
        metavar="NAMES",
        type=_rights,
        default=("read",),
        help=f"what it may do: some of {', '.join(_RIGHTS)}, with commas between them (read)",
    )
    _add_context(adding)
    revoking = add("revoke", "remove a token", "plainmind tokens revoke shortcuts", run_revoke_token)
    revoking.add_argument("name", metavar="NAME", help="the name it was made with")


def _add_context(parser: argparse.ArgumentParser) -> None:
    from plainmind.cli.mcp import add_context

    add_context(parser)


def _rights(text: str) -> Sequence[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    strange = [name for name in names if name not in _RIGHTS]
    if strange or not names:
        raise wrong_value(f"`{text}` must be some of {', '.join(_RIGHTS)}")
    return tuple(right for right in _RIGHTS if right in names)


def run_list_tokens(arguments: argparse.Namespace, console: Console) -> int:
    """Print one line a token."""
    from plainmind.guests.page.gate import context_facts

    with open_memory(arguments) as memory:
        known = _token_file(memory).all()
    if console.json:
        rows = [
            {
                "name": one.name,
                "rights": list(one.rights),
                "createdAt": one.created_at,
                "context": context_facts(one.context),
            }
            for one in known
        ]
        console.result({"tokens": rows})
        return 0
    for one in known:
        console.answer(
            f"{console.style(one.name, 'path')}  {', '.join(one.rights)}  {_for_whom(one.context)}"
        )
    if not known:
        console.note("there are no tokens")
        console.hint("`plainmind tokens add NAME --rights read,write` makes one")
    return 0


def _for_whom(context: SearchContext) -> str:
    from plainmind.agent.scope import Owner

    if isinstance(context.principal, Owner):
        return "the owner"
    said = (context.principal, context.chat_type, context.channel, context.group, context.session_key)
    return " ".join(filter(None, said))


def run_add_token(arguments: argparse.Namespace, console: Console) -> int:
    """Make a token and print it."""
    from plainmind.cli.mcp import context_of

    context = context_of(arguments)
    with open_memory(arguments) as memory:
        access = memory.policy.access_of(context)
        if not access.is_allowed:
            raise PlainmindError(
                f"a token for this could see nothing: {access.reason}",
                hint="allow it (`scope.rules` in docs/guides/share-with-groups.md), or say more about who asks",
            )
        at = memory.now().isoformat(timespec="seconds")
        token = _token_file(memory).add(arguments.name, arguments.rights, context, at)
    if console.json:
        console.result({"name": arguments.name, "token": token, "rights": list(arguments.rights)})
        return 0
    console.answer(token)
    console.note("keep it: it is not shown again")
    console.hint(
        "send it as `Authorization: Bearer …`; `plainmind serve` answers at http://127.0.0.1:8738/v1"
    )
    return 0


def run_revoke_token(arguments: argparse.Namespace, console: Console) -> int:
    """Remove a token."""
    with open_memory(arguments) as memory:
        _token_file(memory).revoke(arguments.name)
    if console.json:
        console.result({"name": arguments.name, "revoked": True})
    else:
        console.say(f"revoked {arguments.name}; a running server refuses it from now on")
    return 0


def _token_file(memory: Memory) -> TokenFile:
    from plainmind.guests.page.gate import TokenFile

    return TokenFile(memory.home)
