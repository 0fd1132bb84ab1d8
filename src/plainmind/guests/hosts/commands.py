"""`connect` and `disconnect`: one command, and an agent remembers; another one, and everything is as it was."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.value import replace
from plainmind.cli.console import Console, is_terminal, plural
from plainmind.cli.options import describe, open_memory
from plainmind.files.safe_open import user_home, user_home_or_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.hosts.catalogue import Host, Placed, Server, Site
    from plainmind.guests.hosts.connection import Change, Connection, Register
    from plainmind.guests.hosts.edits import Edit
    from plainmind.guests.hosts.health import Heard, Trust
    from plainmind.memory.memory import Memory


def add_connect(parser: argparse.ArgumentParser) -> None:
    """Say what `connect` takes."""
    describe(
        parser,
        """\
Let an agent use this memory: its tools through MCP, and hooks that recall before a prompt and keep what was said.
Without a host it lists them all, and which are connected: Claude Code, Codex, Copilot, Gemini, opencode, OpenClaw,
Cursor, VS Code, Claude Desktop and goose.

Adds entries of ours to the settings of the host and changes nothing else in them; what was there is kept in
~/.plainmind/hosts/backups, and `plainmind disconnect` puts it back. At its end it asks the server as the host will.""",
        examples=(
            "plainmind connect claude-code",
            "plainmind connect --all --dry-run",
            "plainmind connect codex --workspace ~/notes --trust-hooks",
            "plainmind connect cursor --project",
        ),
        run=run_connect,
    )
    parser.add_argument("hosts", metavar="HOST", nargs="*", help="what to connect")
    parser.add_argument("--all", action="store_true", help="every host that is installed here")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, change nothing")
    parser.add_argument(
        "--project",
        action="store_true",
        help="write into the settings of the project in this folder; in a repository, with its own memory",
    )
    hooks = parser.add_mutually_exclusive_group()
    hooks.add_argument(
        "--with-hooks",
        dest="hooks",
        action="store_true",
        default=True,
        help="recall and keep by itself (as is)",
    )
    hooks.add_argument("--no-hooks", dest="hooks", action="store_false", help="only the tools")
    parser.add_argument(
        "--plugin",
        action="store_true",
        help="let the host install our plugin or extension instead: Claude Code, Codex, Copilot, Gemini; for Claude"
        " Desktop, make a bundle (.mcpb) to open",
    )
    parser.add_argument(
        "--trust-hooks",
        action="store_true",
        help="tell Codex that you trust these hooks; without it you are asked, or do so in Codex with /hooks",
    )


def add_disconnect(parser: argparse.ArgumentParser) -> None:
    """Say what `disconnect` takes."""
    describe(
        parser,
        """\
Take our entries out of the settings of a host. A file that nobody has changed since becomes what it was, byte for byte;
in another one, our entries alone go. The memory itself stays, and so do the copies in ~/.plainmind/hosts/backups.""",
        examples=("plainmind disconnect claude-code", "plainmind disconnect --all --dry-run"),
        run=run_disconnect,
    )
    parser.add_argument("hosts", metavar="HOST", nargs="*", help="what to disconnect")
    parser.add_argument("--all", action="store_true", help="everything that is connected")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, change nothing")
    parser.add_argument("--project", action="store_true", help="from the project in this folder")


# --- connect ---


def run_connect(arguments: argparse.Namespace, console: Console) -> int:
    """Connect hosts, one after the other, and say what was done."""
    from plainmind.guests.hosts.catalogue import HOSTS, host_of
    from plainmind.guests.hosts.connection import Register

    site = _site(arguments)
    with _open(arguments) as memory:
        register = Register(memory.home)
        if not arguments.hosts and not arguments.all:
            return _list(register, site, console)
        hosts = [host for host in HOSTS if host.is_installed(site)] if arguments.all else []
        hosts += [host for name in arguments.hosts if (host := host_of(name)) not in hosts]
        if arguments.project:
            hosts = _fit_for_projects(hosts, is_asked=not arguments.all)
        if not hosts:
            raise PlainmindError(
                "none of the hosts that Plainmind knows is installed here",
                hint="name one: `plainmind connect` lists them",
            )
        _say_what_is_here(memory, hosts, arguments, console)
        connecting = _Connecting(memory, register, site, arguments, console)
        rows = [_or_say(host, len(hosts), console, connecting.connect) for host in hosts]
        if console.json:
            console.result({"workspace": memory.workspace, "hosts": rows, "dryRun": arguments.dry_run})
        return int(any(row["problem"] for row in rows))


def _or_say(
    host: Host, count: int, console: Console, work: Callable[[Host], dict[str, Any]]
) -> dict[str, Any]:
    """Do something to one of several hosts, or say why that cannot be: it is done to the others all the same."""
    try:
        return work(host)
    except PlainmindError as error:
        if count == 1:
            raise
        if not console.json:
            console.error(type(error).__name__, f"{host.title}: {error}", error.hint)
        return {"host": host.name, "files": [], "problem": str(error)}


class _Connecting:
    """One run of the command: what is connected to what."""

    def __init__(
        self, memory: Memory, register: Register, site: Site, arguments: argparse.Namespace, console: Console
    ) -> None:
        self._memory = memory
        self._register = register
        self._site = site
        self._arguments = arguments
        self._console = console
        self._server = _server(memory, arguments)
        self._has_begun_to_read = False

    def connect(self, host: Host) -> dict[str, Any]:
        """Connect one host; what there is to say of it, ready for JSON."""
        from plainmind.guests.hosts.connection import plan

        console, hooks = self._console, self._arguments.hooks
        if host.is_plugin_only or self._arguments.plugin:
            return self._install(host)
        with self._register.held():
            known = self._register.find(host.name, self._site.project)
            if known is not None and known.is_plugin and not self._arguments.dry_run:
                self._end(known)
                known = None
            trust = _trust_given(known) if hooks else []
            changes = plan(host, self._site, self._server, known, with_hooks=hooks, more=trust)
            files = [change.path for change in changes if change.is_needed]
            row: dict[str, Any] = {"host": host.name, "files": files, "problem": None}
            if self._arguments.dry_run:
                _show_changes(host, changes, console)
                return row
            if self._memory.create_workspace():
                console.say(f"made a workspace: {self._memory.workspace}")
            connection = self._write(host, changes)
        self._read_notes()
        heard, problem = self._ask()
        row |= {"problem": problem, "tools": [] if heard is None else list(heard.tools)}
        _say_connected(host, connection, changes, heard, console)
        if problem and not console.json:
            console.error(
                "PlainmindError", f"{host.title} is connected, but {problem}", "run `plainmind doctor`"
            )
        if host.name == "codex" and hooks:
            self._see_to_trust(host, is_given=bool(trust))
        return row

    def _install(self, host: Host) -> dict[str, Any]:
        """Let the host install our plugin."""
        from plainmind.guests.hosts.connection import install_plugin

        console, plugin = self._console, host.plugin
        row: dict[str, Any] = {"host": host.name, "files": [], "problem": None}
        if self._arguments.dry_run:
            console.say(f"{console.style(host.title, 'bold')}: would be told")
            for words in plugin.install if plugin else ():
                console.say(f"  {' '.join(words)}")
            return row
        if not host.is_plugin_only and self._memory.create_workspace():
            console.say(f"made a workspace: {self._memory.workspace}")
        if plugin and plugin.install:
            console.say(f"{host.title} installs the plugin, which may take it a minute …")
        with self._register.held():
            known = self._register.find(host.name, self._site.project)
            if known is not None and not host.is_plugin_only:
                self._end(known)  # also a plugin of before: hosts keep copies, with the memory of then
            connection = install_plugin(
                self._register,
                host,
                self._site,
                server=self._server_of(host),
                workspace=self._memory.workspace,
                more=self._trust if host.name == "codex" else tuple,
            )
        if not host.is_plugin_only:
            self._read_notes()
        answer, problem = self._check(host)
        row |= {"files": [file.path for file in connection.files], "problem": problem}
        _say_installed(host, connection, os.path.join(self._register.folder, "plugins"), answer, console)
        if problem and not console.json:
            console.error("PlainmindError", f"the plugin is installed, but {problem}", None)
        return row

    def _read_notes(self) -> None:
        """Have the notes indexed before the first prompt, which does not wait for that; once, however many hosts."""
        from plainmind.guests.hosts import hook

        if not self._has_begun_to_read:
            self._has_begun_to_read = True
            hook.catch_up_later(self._memory, _sources(self._memory))

    def _end(self, known: Connection) -> None:
        """Take out what an earlier connection put there, so that nothing is there twice."""
        from plainmind.guests.hosts.connection import disconnect, plan_removal

        for problem in disconnect(self._register, known, plan_removal(known), self._site):
            self._console.note(problem)

    def _check(self, host: Host) -> tuple[str | None, str | None]:
        """Make the host ask us where it can, else ask the server; what was answered, or what is wrong."""
        from plainmind.guests.hosts.connection import run_host

        words = host.plugin.check if host.plugin else ()
        if not words:
            heard, problem = self._ask()
            return None if heard is None else f"the server answers: {_tools(heard)}", problem
        try:
            return f"`{' '.join(words)}` answers: {run_host(words, self._site).splitlines()[0]}", None
        except (PlainmindError, IndexError) as error:
            return None, str(error)

    def _server_of(self, host: Host) -> Server:
        """How a host starts us: OpenClaw names the workspace of each of its agents itself."""
        if not host.is_plugin_only:
            return self._server
        line = self._server.line
        return replace(self._server, line=line[: line.index("hook") + 1])

    def _write(self, host: Host, changes: Sequence[Change]) -> Connection:
        from plainmind.guests.hosts.connection import connect

        return connect(
            self._register, host, self._site, changes, server=self._server, workspace=self._memory.workspace
        )

    def _ask(self) -> tuple[Heard | None, str | None]:
        """Ask the server as the host would: in another folder, and with nothing of ours but what it was told."""
        from plainmind.guests.hosts.health import ask_server

        given = self._site.environ.items()
        environ = {name: text for name, text in given if not name.startswith("PLAINMIND_")}
        try:
            return ask_server((self._server.command, *self._server.arguments), environ, self._site.home), None
        except PlainmindError as error:
            return None, str(error)

    def _see_to_trust(self, host: Host, *, is_given: bool) -> None:
        """Tell Codex that the user trusts these hooks, if they say so; else say what they can do."""
        from plainmind.guests.hosts.connection import plan

        trust = self._trust(is_given=is_given)
        if trust:
            with self._register.held():
                known = self._register.find(host.name, self._site.project)
                self._write(host, plan(host, self._site, self._server, known, with_hooks=True, more=trust))

    def _trust(self, *, is_given: bool = False) -> list[Placed]:
        """What Codex has to be told, if it has to be and the user agrees."""
        from shutil import which

        from plainmind.guests.hosts.health import ask_codex

        site, console = self._site, self._console
        program = which("codex", path=site.environ.get("PATH"))
        try:
            hooks = ask_codex(program, site.environ, site.project or site.home) if program else []
        except (PlainmindError, KeyError, ValueError) as error:
            console.note(f"Codex could not be asked about its hooks: {error}")
            hooks = []
        if hooks and all(hook.is_given for hook in hooks):
            return []
        if not hooks or not (is_given or self._arguments.trust_hooks or _agrees(console)):
            console.note(_IN_CODEX)
            return []
        console.say(f"  Codex is told that you trust {plural(len(hooks), 'hook')}")
        path = os.path.join(site.folder("CODEX_HOME", ".codex"), "config.toml")
        return [(path, _trust_in(hook)) for hook in hooks]


# Codex runs no hook that the user has not trusted.
_IN_CODEX = (
    "Codex runs no hook that you have not trusted: type /hooks in Codex, or connect again with --trust-hooks"
)


def _trust_in(hook: Trust) -> Edit:
    """How Codex writes down that a hook is trusted."""
    from plainmind.guests.hosts.edits import Edit

    name, digest = json.dumps(hook.key, ensure_ascii=False), json.dumps(hook.hash)
    return Edit("table", ("hooks", "state", hook.key), f"[hooks.state.{name}]\ntrusted_hash = {digest}\n")


def _trust_given(known: Connection | None) -> list[Placed]:
    """What an earlier connection has told Codex."""
    files = known.files if known else ()
    return [(file.path, edit) for file in files for edit in file.edits if edit.keys[:2] == ("hooks", "state")]


def _agrees(console: Console) -> bool:
    if console.json or not is_terminal(sys.stdin) or not is_terminal(sys.stderr):
        return False
    print(
        "Codex runs hooks only when you trust them. Trust these? [Y/n] ", end="", file=sys.stderr, flush=True
    )
    return sys.stdin.readline().strip().casefold() in {"", "y", "yes"}


def _say_connected(
    host: Host, connection: Connection, changes: Sequence[Change], heard: Heard | None, console: Console
) -> None:
    needed = [change for change in changes if change.is_needed]
    verb = "is connected" if needed else "was connected already"
    console.say(f"{console.style(host.title, 'bold')} {verb} to {connection.workspace}")
    kept = {file.path: file.before for file in connection.files}
    for change in needed:
        console.say(f"  {_short(change.path)}: {_in_words(change)}")
        if kept.get(change.path):
            console.say(f"    as it was: {_short(kept[change.path] or '')}")
    if heard is not None:
        console.say(f"  the server answers: {_tools(heard)}")
    if host.remark and needed:
        console.say(f"  {host.remark}")
    undo = f"plainmind disconnect {host.name}" + (" --project" if connection.project else "")
    console.say(f"  to undo this: {undo}")


def _tools(heard: Heard) -> str:
    return f"{plural(len(heard.tools), 'tool')} after {heard.seconds:.1f} s"


def _say_installed(
    host: Host, connection: Connection, folder: str, answer: str | None, console: Console
) -> None:
    bundle = host.plugin.bundle if host.plugin else ""
    if bundle:
        console.say(f"open this file with {host.title}: {_short(os.path.join(folder, host.name, bundle))}")
    else:
        console.say(f"{console.style(host.title, 'bold')} has the plugin `plainmind`")
    for file in connection.files:
        if file.before:
            console.say(f"  {_short(file.path)}, as it was: {_short(file.before)}")
    if answer is not None:
        console.say(f"  {answer}")
    if host.remark:
        console.say(f"  {host.remark}")
    console.say(f"  to undo this: plainmind disconnect {host.name}")


def _in_words(change: Change) -> str:
    servers = sum(
        edit.kind in {"table", "block"} or edit.keys[-1:] == ("plainmind",) for edit in change.edits
    )
    hooks = sum(edit.kind == "item" for edit in change.edits)
    parts = ["the server `plainmind`"] if servers else []
    parts += [plural(hooks, "hook")] if hooks else []
    parts += ["a plugin"] if any(edit.kind == "file" for edit in change.edits) else []
    return " and ".join(parts) or "our entries are out"


def _list(register: Register, site: Site, console: Console) -> int:
    from plainmind.guests.hosts.catalogue import HOSTS

    connected = {one.host: one for one in register.read() if one.project == site.project}
    rows: list[dict[str, Any]] = []
    for host in HOSTS:
        one = connected.get(host.name)
        rows.append(
            {
                "host": host.name,
                "title": host.title,
                "installed": host.is_installed(site),
                "connected": one is not None,
                "workspace": one.workspace if one else None,
            }
        )
    if console.json:
        console.result({"hosts": rows})
        return 0
    for row in rows:
        state = f"connected to {_short(row['workspace'])}" if row["connected"] else "not connected"
        if not row["installed"] and not row["connected"]:
            state = "not found here"
        console.answer(f"{row['host']:15} {row['title']:20} {state}")
    console.hint("connect one: plainmind connect HOST; all that are here: plainmind connect --all")
    return 0


def _fit_for_projects(hosts: Sequence[Host], *, is_asked: bool) -> list[Host]:
    for host in hosts:
        if not host.takes_projects and is_asked:
            raise PlainmindError(
                f"{host.title} has no settings of a project", hint="connect it without --project"
            )
    return [host for host in hosts if host.takes_projects]


# --- disconnect ---


def run_disconnect(arguments: argparse.Namespace, console: Console) -> int:
    """Disconnect hosts, and say what was done."""
    from plainmind.guests.hosts.catalogue import host_of
    from plainmind.guests.hosts.connection import Register, disconnect, plan_removal

    site = _site(arguments)
    with _open(arguments) as memory:
        register = Register(memory.home)
        with register.held():
            chosen = {one.host: one for one in _chosen(register, site, arguments)}

            def end(host: Host) -> dict[str, Any]:
                connection = chosen[host.name]
                changes = plan_removal(connection)
                if arguments.dry_run:
                    _show_changes(host, changes, console)
                else:
                    for problem in disconnect(register, connection, changes, site):
                        console.note(problem)
                    _say_disconnected(host, changes, console)
                files = [one.path for one in changes if one.is_needed]
                return {"host": host.name, "files": files, "problem": None}

            rows = [_or_say(host_of(name), len(chosen), console, end) for name in chosen]
    if console.json:
        console.result({"hosts": rows, "dryRun": arguments.dry_run})
    return int(any(row["problem"] for row in rows))


def _chosen(register: Register, site: Site, arguments: argparse.Namespace) -> list[Connection]:
    from plainmind.guests.hosts.catalogue import host_of

    there = [one for one in register.read() if one.project == site.project]
    if arguments.all:
        return there
    if not arguments.hosts:
        names = ", ".join(one.host for one in there) or "none"
        raise PlainmindError("which host?", hint=f"connected: {names}; or --all")
    by_name = {one.host: one for one in there}
    for name in arguments.hosts:
        host = host_of(name)
        if name not in by_name:
            raise PlainmindError(
                f"{host.title} is not connected{' in this project' if site.project else ''}",
                hint="`plainmind connect` lists what is",
            )
    return [by_name[name] for name in dict.fromkeys(arguments.hosts)]


def _say_disconnected(host: Host, changes: Iterable[Change], console: Console) -> None:
    console.say(f"{console.style(host.title, 'bold')} is disconnected")
    for change in changes:
        if change.is_needed:
            became = "gone, as before" if change.new is None else "without our entries"
            console.say(f"  {_short(change.path)}: {became}")


# --- what all of this needs ---


def _open(arguments: argparse.Namespace) -> Memory:
    """Open the memory that hosts are to use: never one that merely lies where this is typed.

    In a project it is that of the repository, wherever its clones are.
    """
    memory = open_memory(arguments, looks_around=False)
    if not arguments.project or arguments.workspace is not None:
        return memory
    from plainmind.memory.workspace_setup import project_workspace, repository_of

    if repository_of(os.getcwd()) is None:
        return memory
    memory.close()
    arguments.workspace = project_workspace(os.getcwd(), memory.home)
    return open_memory(arguments, looks_around=False)


def _say_what_is_here(
    memory: Memory, hosts: Sequence[Host], arguments: argparse.Namespace, console: Console
) -> None:
    """Say that a memory in or above this folder is not the one that is connected, and how it would be."""
    if arguments.project or arguments.workspace is not None:
        return
    from plainmind.config.load import resolve_workspace

    cwd = os.getcwd()
    here = resolve_workspace(None, {"HOME": user_home()}, None, cwd, memory.home)
    if here.origin.kind != "found" or os.path.realpath(here.path) == os.path.realpath(memory.workspace):
        return
    names = " ".join(host.name for host in hosts)
    console.note(
        f"not connected to {_short(here.path)}, where you are: plainmind connect {names}"
        f" --workspace {os.path.relpath(here.path, cwd)}"
    )


def _site(arguments: argparse.Namespace) -> Site:
    from plainmind.guests.hosts.catalogue import Site

    project = os.getcwd() if arguments.project else None
    return Site(user_home(), os.environ, project)


def _server(memory: Memory, arguments: argparse.Namespace) -> Server:
    from plainmind.guests.hosts.catalogue import Server, own_program

    program = own_program()
    pinned = ["--workspace", memory.workspace]
    if arguments.home or os.environ.get("PLAINMIND_HOME"):
        pinned += ["--home", memory.home]
    if arguments.agent:
        pinned += ["--agent", memory.agent_id]
    hook = (*program, "hook", *pinned)
    sources = () if memory.has_chosen_sources else ("--config", f"sources={','.join(_sources(memory))}")
    return Server(program[0], (*program[1:], "mcp", *pinned, *sources), shlex.join(hook), hook)


def _sources(memory: Memory) -> Sequence[str]:
    """What is searched for hosts."""
    from plainmind.guests.hosts.hook import SOURCES

    return memory.sources if memory.has_chosen_sources else SOURCES


def _show_changes(host: Host, changes: Iterable[Change], console: Console) -> None:
    needed = [change for change in changes if change.is_needed]
    console.say(f"{console.style(host.title, 'bold')}: {'would change' if needed else 'nothing to change'}")
    for change in needed:
        before = (change.current or b"").decode(errors="replace").splitlines()
        after = (change.new or b"").decode(errors="replace").splitlines()
        name = _short(change.path)
        for line in difflib.unified_diff(before, after, name, name, n=1, lineterm=""):
            console.say(f"  {console.printable(line)}")


def _short(path: str) -> str:
    home = user_home_or_root()
    return "~" + path[len(home) :] if path.startswith(home + "/") else path
