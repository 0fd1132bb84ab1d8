"""The hosts that can be connected: how each is recognised, which of its files we edit, and what we put there."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from shutil import which

from plainmind import __version__
from plainmind.base.errors import PlainmindError
from plainmind.base.value import field, value
from plainmind.guests.hosts.edits import NAME, Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias


@value
class Site:
    """Where hosts keep their settings: in a home, or in a project of it."""

    home: str
    environ: Mapping[str, str]
    project: str | None = None
    platform: str = sys.platform

    def folder(self, variable: str, usual: str) -> str:
        """A host's own folder, which a variable may move."""
        given = self.environ.get(variable) if variable else None
        return os.path.join(self.home, given or usual)

    @property
    def config(self) -> str:
        """Where programs keep their settings."""
        return self.environ.get("XDG_CONFIG_HOME") or os.path.join(self.home, ".config")

    def applications(self, name: str) -> str:
        """The folder of a program with windows."""
        if self.platform == "darwin":
            return os.path.join(self.home, "Library", "Application Support", name)
        return os.path.join(self.config, name)


@value
class Server:
    """How a host starts this memory: as a server, and for its hooks."""

    command: str
    arguments: tuple[str, ...]
    hook: str  # for a shell
    line: tuple[str, ...]  # the same as words, for a program that starts it without one


Placed: TypeAlias = "tuple[str, Edit]"


@value
class Plugin:
    """A plugin that the host installs itself: what it is told, and what to tell it to be rid of it."""

    tree: str  # its name in this package
    install: tuple[tuple[str, ...], ...]  # `{tree}` stands for where it was unpacked
    remove: tuple[tuple[str, ...], ...]
    touches: Callable[[Site], Sequence[str]]  # the host's settings, which it changes thereby
    check: tuple[str, ...] = ()  # what makes the host ask us
    answer: str = ""  # what the host asks for beside its flags
    bundle: str = ""  # the file that it is packed into, for a host that opens such files


@value
class Host:
    """One program in which agents live."""

    name: str
    title: str
    programs: tuple[str, ...]  # any of these on the PATH means that it is installed
    places: Callable[[Site], Sequence[str]]  # any of these on the disk means so too
    server: Callable[[Site, Server], Sequence[Placed]]
    hooks: Callable[[Site, Server], Sequence[Placed]] = field(default=lambda _site, _server: ())
    plugin: Plugin | None = None
    is_plugin_only: bool = False  # its settings have no place for us, or too small a one
    takes_projects: bool = True
    remark: str = ""  # what a person has to know or do

    def is_installed(self, site: Site) -> bool:
        """Whether the program is here, as far as can be told."""
        path = site.environ.get("PATH")
        on_path = any(which(program, path=path) for program in self.programs)
        return on_path or any(os.path.exists(place) for place in self.places(site))


def host_of(name: str) -> Host:
    """The host of that name. Raises PlainmindError."""
    for host in HOSTS:
        if host.name == name:
            return host
    names = ", ".join(host.name for host in HOSTS)
    raise PlainmindError(f"there is no host `{name[:40]}`", hint=f"the hosts are {names}")


# --- what is the same in several of them ---


def _stdio(server: Server, **more: Any) -> dict[str, Any]:
    return {"command": server.command, "args": list(server.arguments), **more}


def _in_servers(path: str, entry: Mapping[str, Any], key: str = "mcpServers") -> list[Placed]:
    return [(path, Edit("member", (key, NAME), entry))]


def _hook_groups(path: str, server: Server, seconds: Mapping[str, int], **more: Any) -> list[Placed]:
    """Hooks as Claude Code writes them, and several after it."""
    return [
        (
            path,
            Edit(
                "item",
                ("hooks", event),
                {"hooks": [{**more, "type": "command", "command": server.hook, "timeout": timeout}]},
            ),
        )
        for event, timeout in seconds.items()
    ]


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a basic string of TOML is written like one of JSON


def own_program() -> tuple[str, ...]:
    """The words that start this program, wherever they are started."""
    given = os.path.abspath(sys.argv[0]) if sys.argv[0] else ""
    if os.path.basename(given) == NAME and os.access(given, os.X_OK) and os.path.isfile(given):
        return (given,)
    beside = os.path.join(os.path.dirname(sys.executable), NAME)
    found = beside if os.access(beside, os.X_OK) else which(NAME)
    return (found,) if found else (sys.executable, "-m", NAME)


TREES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trees")


def tree_files(tree: str, server: Server) -> dict[str, str]:
    """The files of a plugin of ours, by their paths, with the words that start this program in place of its name.

    They have our version: a host that keeps copies of plugins tells a newer one by it.
    """
    top = os.path.join(TREES, tree)
    found: dict[str, str] = {}
    for folder, _, names in os.walk(top):
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                found[os.path.relpath(path, top)] = _filled(file.read(), server)
    return found


def _filled(text: str, server: Server) -> str:
    arguments = json.dumps(list(server.arguments), ensure_ascii=False)
    return (
        text.replace('"version": "0.0.0"', f'"version": "{__version__}"')
        .replace(f'["{NAME}", "hook"]', json.dumps(list(server.line), ensure_ascii=False))
        .replace(f'"{NAME} hook"', json.dumps(server.hook, ensure_ascii=False))
        .replace(f"exec {NAME} mcp", f"exec {shlex.join([*server.line[: server.line.index('hook')], 'mcp'])}")
        .replace(
            f'"command": "{NAME}", "args": ["mcp"]',
            f'"command": {json.dumps(server.command, ensure_ascii=False)}, "args": {arguments}',
        )
    )


# --- Claude Code ---

_CLAUDE_HOOKS = {"SessionStart": 10, "UserPromptSubmit": 5, "Stop": 10, "PostCompact": 10, "SessionEnd": 10}


def _claude_folder(site: Site) -> str:
    return site.folder("CLAUDE_CONFIG_DIR", ".claude")


def _claude_server(site: Site, server: Server) -> list[Placed]:
    if site.project is not None:
        path = os.path.join(site.project, ".mcp.json")
    else:
        moved = site.environ.get("CLAUDE_CONFIG_DIR")
        path = os.path.join(moved or site.home, ".claude.json")
    return _in_servers(path, {"type": "stdio", **_stdio(server), "alwaysLoad": True})


def _claude_hooks(site: Site, server: Server) -> list[Placed]:
    if site.project is not None:
        return _hook_groups(
            os.path.join(site.project, ".claude", "settings.local.json"), server, _CLAUDE_HOOKS
        )
    return _hook_groups(os.path.join(_claude_folder(site), "settings.json"), server, _CLAUDE_HOOKS)


# --- Codex ---

_CODEX_HOOKS = {"SessionStart": 10, "UserPromptSubmit": 5, "Stop": 10, "SessionEnd": 3}


def codex_folder(site: Site) -> str:
    """Where Codex keeps its settings."""
    if site.project is not None:
        return os.path.join(site.project, ".codex")
    return site.folder("CODEX_HOME", ".codex")


def _codex_server(site: Site, server: Server) -> list[Placed]:
    words = ", ".join(_toml_text(word) for word in server.arguments)
    table = (
        f"[mcp_servers.{NAME}]\ncommand = {_toml_text(server.command)}\nargs = [{words}]\n"
        "startup_timeout_sec = 30\n"
    )
    return [(os.path.join(codex_folder(site), "config.toml"), Edit("table", ("mcp_servers", NAME), table))]


def _codex_hooks(site: Site, server: Server) -> list[Placed]:
    return _hook_groups(os.path.join(codex_folder(site), "hooks.json"), server, _CODEX_HOOKS)


# --- GitHub Copilot ---

_COPILOT_HOOKS = {"SessionStart": 10, "UserPromptSubmit": 5, "Stop": 10, "SessionEnd": 5}


def _copilot_folder(site: Site) -> str:
    return site.folder("COPILOT_HOME", ".copilot")


def _copilot_server(site: Site, server: Server) -> list[Placed]:
    path = os.path.join(_copilot_folder(site), "mcp-config.json")
    return _in_servers(path, {"type": "local", **_stdio(server), "tools": ["*"]})


def _copilot_hooks(site: Site, server: Server) -> list[Placed]:
    path = os.path.join(_copilot_folder(site), "hooks", f"{NAME}.json")
    return _hook_groups(path, server, _COPILOT_HOOKS)


# --- Gemini ---

_GEMINI_HOOKS = {"SessionStart": 10_000, "BeforeAgent": 5_000, "AfterAgent": 10_000, "SessionEnd": 5_000}


def _gemini_settings(site: Site) -> str:
    folder = os.path.join(site.project or site.folder("GEMINI_CLI_HOME", ""), ".gemini")
    return os.path.join(folder, "settings.json")


def _gemini_files(site: Site) -> list[str]:
    """What Gemini writes into when it is given an extension; of the last two it takes nothing out again."""
    settings = _gemini_settings(site)
    folder = os.path.dirname(settings)
    return [
        settings,
        os.path.join(folder, "trustedFolders.json"),
        os.path.join(folder, "extension_integrity.json"),
    ]


def _gemini_server(site: Site, server: Server) -> list[Placed]:
    return _in_servers(_gemini_settings(site), _stdio(server))


def _gemini_hooks(site: Site, server: Server) -> list[Placed]:
    return _hook_groups(_gemini_settings(site), server, _GEMINI_HOOKS, name=NAME)


# --- opencode ---


def _opencode_folder(site: Site) -> str:
    return os.path.join(site.config, "opencode")


def _opencode_server(site: Site, server: Server) -> list[Placed]:
    folder = site.project or _opencode_folder(site)
    commented = os.path.join(folder, "opencode.jsonc")
    path = commented if os.path.exists(commented) else os.path.join(folder, "opencode.json")
    entry = {"type": "local", "command": [server.command, *server.arguments], "enabled": True}
    return _in_servers(path, entry, "mcp")


def _opencode_hooks(site: Site, server: Server) -> list[Placed]:
    folder = os.path.join(site.project, ".opencode") if site.project else _opencode_folder(site)
    text = tree_files("opencode", server)[f"{NAME}.js"]
    return [(os.path.join(folder, "plugin", f"{NAME}.js"), Edit("file", (), text))]


# --- OpenClaw ---

_IN_OPENCLAW = f"plugins.entries.{NAME}"


def _openclaw_folder(site: Site) -> str:
    return site.folder("OPENCLAW_STATE_DIR", ".openclaw")


def _openclaw_settings(site: Site) -> list[str]:
    moved = site.environ.get("OPENCLAW_CONFIG_PATH")
    return [moved or os.path.join(_openclaw_folder(site), "openclaw.json")]


def _nothing(_site: Site, _server: Server) -> list[Placed]:
    return []


# --- editors and windows ---

_CURSOR_HOOKS = ("sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "stop", "sessionEnd")


def _cursor_folder(site: Site) -> str:
    return os.path.join(site.project or site.home, ".cursor")


def _cursor_server(site: Site, server: Server) -> list[Placed]:
    return _in_servers(os.path.join(_cursor_folder(site), "mcp.json"), _stdio(server))


def _cursor_hooks(site: Site, server: Server) -> list[Placed]:
    path = os.path.join(_cursor_folder(site), "hooks.json")
    version: list[Placed] = [(path, Edit("member", ("version",), 1))]
    return version + [
        (path, Edit("item", ("hooks", event), {"command": server.hook})) for event in _CURSOR_HOOKS
    ]


def _vscode_folder(site: Site) -> str:
    return os.path.join(site.applications("Code"), "User")


def _vscode_server(site: Site, server: Server) -> list[Placed]:
    folder = os.path.join(site.project, ".vscode") if site.project else _vscode_folder(site)
    return _in_servers(os.path.join(folder, "mcp.json"), {"type": "stdio", **_stdio(server)}, "servers")


def _desktop_folder(site: Site) -> str:
    return site.applications("Claude")


def _desktop_server(site: Site, server: Server) -> list[Placed]:
    return _in_servers(os.path.join(_desktop_folder(site), "claude_desktop_config.json"), _stdio(server))


def _goose_file(site: Site) -> str:
    return os.path.join(site.config, "goose", "config.yaml")


def _goose_server(site: Site, server: Server) -> list[Placed]:
    words = "".join(f"    - {_toml_text(word)}\n" for word in server.arguments)
    block = (
        f"{NAME}:\n  enabled: true\n  type: stdio\n  name: {NAME}\n"
        f"  cmd: {_toml_text(server.command)}\n  args:\n{words}  envs: {{}}\n  timeout: 300\n"
    )
    return [(_goose_file(site), Edit("block", ("extensions", NAME), block))]


# --- all of them ---

HOSTS: tuple[Host, ...] = (
    Host(
        "claude-code",
        "Claude Code",
        ("claude",),
        lambda site: [_claude_folder(site)],
        _claude_server,
        _claude_hooks,
        remark="sessions that are open now see it when they are started again",
        plugin=Plugin(
            "marketplace",
            (("claude", "plugin", "install", NAME, "--marketplace", "{tree}"),),
            (
                ("claude", "plugin", "uninstall", f"{NAME}@{NAME}"),
                ("claude", "plugin", "marketplace", "remove", NAME),
            ),
            lambda site: [os.path.join(_claude_folder(site), "settings.json")],
        ),
    ),
    Host(
        "codex",
        "Codex",
        ("codex",),
        lambda site: [site.folder("CODEX_HOME", ".codex")],
        _codex_server,
        _codex_hooks,
        remark="sessions that are open now see it when they are started again",
        plugin=Plugin(
            "marketplace",
            (
                ("codex", "plugin", "marketplace", "add", "{tree}"),
                ("codex", "plugin", "add", f"{NAME}@{NAME}"),
            ),
            (
                ("codex", "plugin", "remove", f"{NAME}@{NAME}"),
                ("codex", "plugin", "marketplace", "remove", NAME),
            ),
            lambda site: [os.path.join(codex_folder(site), "config.toml")],
        ),
    ),
    Host(
        "copilot",
        "GitHub Copilot CLI",
        ("copilot",),
        lambda site: [_copilot_folder(site)],
        _copilot_server,
        _copilot_hooks,
        takes_projects=False,
        plugin=Plugin(
            "marketplace",
            (
                ("copilot", "plugin", "marketplace", "add", "{tree}"),
                ("copilot", "plugin", "install", f"{NAME}@{NAME}"),
            ),
            (
                ("copilot", "plugin", "uninstall", f"{NAME}@{NAME}"),
                ("copilot", "plugin", "marketplace", "remove", NAME),
            ),
            lambda site: [os.path.join(_copilot_folder(site), "settings.json")],
        ),
    ),
    Host(
        "gemini",
        "Gemini CLI",
        ("gemini",),
        lambda site: [_gemini_settings(site)],
        _gemini_server,
        _gemini_hooks,
        remark="Gemini asks no server of yours in a folder that you do not trust",
        plugin=Plugin(
            "gemini",
            (("gemini", "extensions", "install", "{tree}", "--consent", "--skip-settings"),),
            (("gemini", "extensions", "uninstall", NAME),),
            _gemini_files,
            answer="y\n",  # that the folder of the extension, which is ours, is trusted
        ),
    ),
    Host(
        "opencode",
        "opencode",
        ("opencode",),
        lambda site: [_opencode_folder(site)],
        _opencode_server,
        _opencode_hooks,
    ),
    Host(
        "openclaw",
        "OpenClaw",
        ("openclaw",),
        lambda site: [_openclaw_folder(site)],
        _nothing,
        plugin=Plugin(
            "openclaw",
            (
                ("openclaw", "plugins", "install", "--link", "{tree}", "--force", "--accept-capabilities"),
                ("openclaw", "config", "set", f"{_IN_OPENCLAW}.hooks.allowConversationAccess", "true"),
            ),
            (("openclaw", "plugins", "uninstall", NAME, "--force"),),
            _openclaw_settings,
            ("openclaw", "memory", "index"),
        ),
        is_plugin_only=True,
        takes_projects=False,
        remark="each agent's own workspace is its memory; restart the gateway",
    ),
    Host(
        "cursor",
        "Cursor",
        ("cursor",),
        lambda site: [os.path.join(site.home, ".cursor")],
        _cursor_server,
        _cursor_hooks,
        remark="switch the server on in Cursor's settings, under MCP, if it is not",
    ),
    Host(
        "vscode",
        "Visual Studio Code",
        ("code",),
        lambda site: [_vscode_folder(site)],
        _vscode_server,
        remark="its agent has no hooks of its own: `plainmind connect copilot` writes those that it shares",
    ),
    Host(
        "claude-desktop",
        "Claude Desktop",
        (),
        lambda site: [_desktop_folder(site)],
        _desktop_server,
        plugin=Plugin("claude-desktop", (), (), lambda _site: [], bundle=f"{NAME}.mcpb"),
        takes_projects=False,
        remark="quit Claude Desktop and start it again",
    ),
    Host(
        "goose",
        "goose",
        ("goose",),
        lambda site: [os.path.dirname(_goose_file(site))],
        _goose_server,
        takes_projects=False,
    ),
)
