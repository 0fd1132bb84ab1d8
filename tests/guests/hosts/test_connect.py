"""Hosts are connected and disconnected: what a home looks like before, meanwhile and afterwards."""

from __future__ import annotations

import json
import os
import shlex
import sys
import zipfile
from pathlib import Path

import pytest

from plainmind import __version__
from plainmind.guests.hosts.catalogue import HOSTS, Server, tree_files

FILES = {
    ".claude.json": '{"numStartups": 3}',
    ".claude/settings.json": '{\n  // mine\n  "model": "opus",\n  "hooks": {"Stop": [{"hooks": []}]}\n}\n',
    ".codex/config.toml": '# mine\nmodel = "gpt-5"\n',
    ".copilot/mcp-config.json": '{"mcpServers": {"x": {"command": "y"}}}\n',
    ".gemini/settings.json": '{\n\t"theme": "x"\n}\n',
    ".config/opencode/opencode.jsonc": '{\n  // a comment\n  "theme": "x",\n}\n',
    ".cursor/mcp.json": '{\n  "mcpServers": {}\n}',
    ".config/Code/User/mcp.json": '{"servers": {}, "inputs": []}',
    ".config/Claude/claude_desktop_config.json": "{}",
    ".config/goose/config.yaml": "# mine\nextensions:\n  developer:\n    enabled: true\n",
}
NAMES = [host.name for host in HOSTS if not host.is_plugin_only]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No program is started: that they do what they should are other tests."""
    from plainmind.guests.hosts import health, hook

    monkeypatch.setattr(hook, "catch_up_later", lambda *_: None)
    monkeypatch.setattr(health, "ask_server", lambda *_: health.Heard(("memory_search",), 0.1))
    monkeypatch.setattr(health, "ask_codex", lambda *_: [])
    for variable in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A home in which every host has settings."""
    monkeypatch.setattr(sys, "platform", "linux")
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def everything(folder: Path) -> dict[str, bytes]:
    """All files below a folder but those of our own home, and all folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if (folder / "home") not in (path, *path.parents)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_host_is_connected_and_afterwards_every_file_is_what_it_was(name, written, cli):
    before = everything(written)

    assert cli("connect", name).status == 0
    connected = everything(written)
    assert connected != before
    assert cli("connect", name).status == 0
    assert everything(written) == connected
    assert cli("disconnect", name).status == 0

    assert everything(written) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_host_without_settings_gets_some_and_loses_them_again(name, tmp_path, cli):
    before = everything(tmp_path)

    assert cli("connect", name).status == 0
    assert everything(tmp_path) != before
    assert cli("disconnect", name).status == 0

    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "name", [host.name for host in HOSTS if host.takes_projects and not host.is_plugin_only]
)
def test_a_project_is_connected_by_itself(name, written, cli, monkeypatch):
    project = written / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    before = everything(written)

    assert cli("connect", name, "--project").status == 0
    changed = {path for path, data in everything(written).items() if before.get(path) != data}
    assert changed
    assert all(path.startswith("project/") for path in changed)
    assert cli("disconnect", name).status == 1
    assert cli("disconnect", name, "--project").status == 0

    assert everything(written) == before


def test_all_finds_what_is_installed_and_a_dry_run_changes_nothing(written, cli):
    before = everything(written)

    told = cli("connect", "--all", "--dry-run")

    assert told.status == 0
    assert "Claude Code: would change" in told.out
    assert '+  "mcpServers": {' in told.out or '"plainmind"' in told.out
    assert everything(written) == before
    assert cli("connect", "--all").status == 0
    assert cli("disconnect", "--all").status == 0
    assert everything(written) == before


def test_what_the_host_has_written_meanwhile_stays(written, cli):
    cli("connect", "claude-code")
    path = written / ".claude.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps(said | {"numStartups": 4, "tips": [1]}, indent=2))

    cli("disconnect", "claude-code")

    assert json.loads(path.read_text()) == {"numStartups": 4, "tips": [1]}


def test_without_hooks_those_of_before_go(written, cli):
    settings = written / ".claude" / "settings.json"
    before = settings.read_bytes()
    cli("connect", "claude-code")
    assert b"plainmind hook" in settings.read_bytes()

    assert cli("connect", "claude-code", "--no-hooks").status == 0

    assert settings.read_bytes() == before
    assert b"plainmind" in (written / ".claude.json").read_bytes()


# Where each host has its servers, and its hooks where those are in a file of others too.
SERVERS = {
    "claude-code": ".claude.json",
    "codex": ".codex/config.toml",
    "copilot": ".copilot/mcp-config.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.jsonc",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "goose": ".config/goose/config.yaml",
}
HOOKS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "copilot": ".copilot/hooks/plainmind.json",
    "cursor": ".cursor/hooks.json",
}
PLACES = [*SERVERS.items(), *HOOKS.items()]
UNDER = {"opencode": "mcp", "vscode": "servers"}
BROKEN = {".toml": 'model = "gpt', ".yaml": "extensions:\n\tdeveloper: {}\n"}
ANOTHER = {
    ".toml": '[mcp_servers.plainmind]\ncommand = "node"\n',
    ".yaml": "extensions:\n  plainmind:\n    cmd: node\n",
}
COMMENTED = {
    ".toml": '# first\n[mcp_servers.other]  # theirs\ncommand = "x" # why\n# last\n',
    ".yaml": "# first\nextensions: # mine\n  # theirs\n  other:\n    enabled: true # why\n# last\n",
}


def put(home: Path, name: str, text: str) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def assert_refused(told, path: Path, reason: str) -> None:
    assert told.status == 1
    assert str(path) in told.err
    assert reason in told.err
    assert "hint:" in told.err


def test_every_host_has_a_place_here():
    assert sorted(SERVERS) == sorted(NAMES)


@pytest.mark.parametrize(("name", "file"), PLACES)
def test_a_file_that_does_not_parse_is_not_touched(name, file, written, cli):
    path = put(written, file, BROKEN.get(Path(file).suffix, '{"mcpServers": '))
    before = everything(written)

    assert_refused(cli("connect", name), path, "it is not valid")
    assert everything(written) == before


@pytest.mark.parametrize(("name", "file"), SERVERS.items())
def test_another_server_of_our_name_is_left_alone(name, file, written, cli):
    other = json.dumps({UNDER.get(name, "mcpServers"): {"plainmind": {"command": "node", "args": ["x"]}}})
    path = put(written, file, ANOTHER.get(Path(file).suffix, other))
    before = everything(written)

    assert_refused(cli("connect", name), path, "has the name `plainmind` there")
    assert everything(written) == before


@pytest.mark.parametrize(("name", "file"), PLACES)
def test_a_file_that_is_read_only_is_not_touched(name, file, written, cli):
    path = put(written, file, FILES.get(file, "{}"))
    path.chmod(0o444)
    before = everything(written)

    assert_refused(cli("connect", name), path, "read-only")
    assert everything(written) == before


@pytest.mark.parametrize(("name", "file"), PLACES)
def test_a_link_is_followed_and_stays_a_link(name, file, written, cli):
    link = put(written, file, FILES.get(file, "{}"))
    real = written / "dotfiles" / link.name
    real.parent.mkdir()
    link.rename(real)
    link.symlink_to(real)
    before = real.read_bytes()

    assert cli("connect", name).status == 0
    assert link.is_symlink()
    assert b"plainmind" in real.read_bytes()
    assert cli("disconnect", name).status == 0

    assert link.is_symlink()
    assert real.read_bytes() == before


@pytest.mark.parametrize(("name", "file"), PLACES)
def test_comments_stay_where_they_are(name, file, written, cli):
    text = '{\n  // first\n  "version": 1, /* why */\n  "theirs": [1, 2] // last\n}\n'
    path = put(written, file, COMMENTED.get(Path(file).suffix, text))
    before = path.read_text()

    assert cli("connect", name).status == 0
    connected = path.read_text()
    assert [remark for remark in ("first", "theirs", "why", "last") if remark not in connected] == []
    path.write_text(connected + "\n")  # somebody else has changed it since: our entries alone are taken out
    assert cli("disconnect", name).status == 0

    assert path.read_text().rstrip("\n") == before.rstrip("\n")


def test_one_host_that_cannot_be_connected_does_not_keep_the_others_from_it(written, cli):
    path = put(written, ".codex/config.toml", BROKEN[".toml"])

    told = cli("connect", "--all")

    assert_refused(told, path, "it is not valid TOML")
    assert "Claude Code is connected" in told.out
    assert "goose is connected" in told.out
    rows = {row["host"]: row["problem"] for row in cli("connect", "--all", "--json").json["hosts"]}
    assert "not valid TOML" in rows.pop("codex")
    assert set(rows.values()) == {None}

    put(written, ".gemini/settings.json", "{")
    told = cli("disconnect", "--all")

    assert_refused(told, written / ".gemini/settings.json", "it is not valid JSON")
    assert "goose is disconnected" in told.out
    assert (written / ".claude.json").read_text() == FILES[".claude.json"]
    assert cli("disconnect", "gemini").status == 1  # it stays connected


def test_a_link_to_nothing_is_refused(written, cli):
    link = written / ".claude" / "settings.json"
    link.unlink()
    link.symlink_to(written / "gone.json")

    refused = cli("connect", "claude-code")

    assert refused.status == 1
    assert "a link to nothing" in refused.err


def test_the_mode_of_a_file_stays(written, cli):
    path = written / ".claude.json"
    path.chmod(0o640)

    cli("connect", "claude-code")

    assert path.stat().st_mode & 0o777 == 0o640


def test_a_memory_that_lies_where_it_is_typed_is_not_taken(written, cli, monkeypatch):
    repository = written / "repository"
    repository.mkdir()
    (repository / "MEMORY.md").write_text("# of this repository\n")
    monkeypatch.chdir(repository)

    cli("connect", "claude-code")

    entry = json.loads((written / ".claude.json").read_text())["mcpServers"]["plainmind"]
    assert entry["args"][entry["args"].index("--workspace") + 1] == str(written / "home" / "workspace")


def test_a_project_has_the_memory_of_its_repository(written, cli, monkeypatch):
    project = written / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.org/a/shop.git\n')
    monkeypatch.chdir(project)

    assert cli("connect", "claude-code", "--project").status == 0

    entry = json.loads((project / ".mcp.json").read_text())["mcpServers"]["plainmind"]
    (name,) = (written / "home" / "projects").iterdir()
    assert name.name.startswith("shop-")
    assert entry["args"][entry["args"].index("--workspace") + 1] == str(name)


def test_codex_is_told_only_what_the_user_trusts(written, cli, monkeypatch):
    from plainmind.guests.hosts import health

    monkeypatch.setattr(
        health, "ask_codex", lambda *_: [health.Trust("/a/hooks.json:stop:0:0", "sha256:1", False)]
    )
    bin_folder = written / "bin"
    bin_folder.mkdir()
    (bin_folder / "codex").write_text("#!/bin/sh\n")
    (bin_folder / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    config = written / ".codex" / "config.toml"
    before = config.read_bytes()

    untold = cli("connect", "codex")
    assert "/hooks" in untold.err
    assert b"trusted_hash" not in config.read_bytes()
    cli("connect", "codex", "--trust-hooks")
    assert b'[hooks.state."/a/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"' in config.read_bytes()
    cli("connect", "codex")  # it stays trusted
    assert b"trusted_hash" in config.read_bytes()
    cli("disconnect", "codex")

    assert config.read_bytes() == before


HOST_THAT_INSTALLS = """\
#!/usr/bin/env python3
import json, pathlib, sys
config = pathlib.Path.home() / ".openclaw" / "openclaw.json"
if sys.argv[1:3] == ["plugins", "install"]:
    assert (pathlib.Path(sys.argv[4]) / "index.js").is_file()
    config.write_text(json.dumps({"model": "m", "plugins": ["plainmind"]}))
elif sys.argv[1:3] == ["plugins", "uninstall"]:
    config.write_text(json.dumps({"model": "m"}, indent=8))
elif sys.argv[1] == "memory":
    print("Memory index updated")
"""


@pytest.fixture
def openclaw(tmp_path, monkeypatch):
    """A program that changes its settings as it likes when it is told to install something."""
    program = tmp_path / "bin" / "openclaw"
    program.parent.mkdir()
    program.write_text(HOST_THAT_INSTALLS.replace("#!/usr/bin/env python3", f"#!{sys.executable}"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    config = tmp_path / ".openclaw" / "openclaw.json"
    config.parent.mkdir()
    config.write_text("{model: 'm'} // mine")
    return config


def test_settings_that_a_host_has_rewritten_itself_are_what_they_were(openclaw, cli):
    before = openclaw.read_bytes()

    told = cli("connect", "openclaw")
    assert told.status == 0, told.err
    assert "answers: Memory index updated" in told.out
    assert b"plainmind" in openclaw.read_bytes()
    assert cli("disconnect", "openclaw").status == 0

    assert openclaw.read_bytes() == before


def test_what_somebody_changed_since_is_left_to_the_host(openclaw, cli):
    cli("connect", "openclaw")
    openclaw.write_text('{"model": "another", "plugins": ["plainmind"]}')

    cli("disconnect", "openclaw")

    assert json.loads(openclaw.read_text()) == {"model": "m"}  # as this host thinks that it was


CLAUDE = """\
import json, pathlib, sys
settings = pathlib.Path.home() / ".claude" / "settings.json"
log = pathlib.Path.home() / "log"
log.write_text((log.read_text() if log.exists() else "") + " ".join(sys.argv[1:3]) + "\\n")
said = json.loads(settings.read_text()) if settings.exists() else {}
if sys.argv[2] == "install":
    said["enabledPlugins"] = {"plainmind@plainmind": True}
elif sys.argv[2] == "uninstall":
    said.pop("enabledPlugins", None)
settings.write_text(json.dumps(said, indent=7))
"""


def test_a_plugin_and_entries_take_the_place_of_each_other(tmp_path, cli, monkeypatch):
    program = put(tmp_path, "bin/claude", f"#!{sys.executable}\n{CLAUDE}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    settings = put(tmp_path, ".claude/settings.json", '{"theme":"dark"}')
    servers = put(tmp_path, ".claude.json", '{"numStartups":3}')

    assert cli("connect", "claude-code").status == 0
    assert cli("connect", "claude-code", "--plugin").status == 0
    assert servers.read_text() == '{"numStartups":3}'
    assert "plainmind hook" not in settings.read_text()
    assert "plainmind@plainmind" in settings.read_text()
    assert cli("connect", "claude-code", "--plugin").status == 0  # a copy of before goes first
    assert cli("connect", "claude-code").status == 0
    assert "plainmind@plainmind" not in settings.read_text()
    assert "plainmind hook" in settings.read_text()
    assert cli("disconnect", "claude-code").status == 0

    assert settings.read_text() == '{"theme":"dark"}'
    assert servers.read_text() == '{"numStartups":3}'
    told = (tmp_path / "log").read_text().splitlines()
    assert told.count("plugin install") == told.count("plugin uninstall") == 2


@pytest.mark.parametrize("changes_first", [False, True])
def test_what_a_host_refuses_to_install_leaves_nothing(changes_first, openclaw, home, cli):
    program = Path(os.environ["PATH"].split(":")[0]) / "openclaw"
    refuse = '    sys.exit(\'the settings are broken\')\nelif sys.argv[1:3] == ["plugins", "uninstall"]:'
    text = program.read_text().replace('elif sys.argv[1:3] == ["plugins", "uninstall"]:', refuse)
    program.write_text(
        text
        if changes_first
        else text.replace('    config.write_text(json.dumps({"model": "m", "plugins": ["plainmind"]}))\n', "")
    )
    before = openclaw.read_bytes()

    refused = cli("connect", "openclaw")

    assert refused.status == 1
    assert "the settings are broken" in refused.err
    assert openclaw.read_bytes() == before
    assert not (home / "hosts" / "plugins" / "openclaw").exists()
    assert cli("disconnect", "openclaw").status == 1
    assert "OpenClaw is not connected" in cli("disconnect", "openclaw").err


@pytest.mark.parametrize("kind", ["read-only", "a link to nothing"])
def test_settings_that_must_not_be_touched_are_not_given_to_a_host_either(kind, openclaw, cli):
    if kind == "read-only":
        openclaw.chmod(0o444)
    else:
        openclaw.unlink()
        openclaw.symlink_to(openclaw.parent / "gone.json")
    before = everything(openclaw.parent)

    assert_refused(cli("connect", "openclaw"), openclaw, kind)
    assert everything(openclaw.parent) == before


def test_a_host_that_is_not_there_cannot_install_a_plugin(tmp_path, cli, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    refused = cli("connect", "claude-code", "--plugin")

    assert refused.status == 1
    assert "`claude` is not on your PATH" in refused.err


def test_a_plugin_names_this_program_by_its_whole_path(tmp_path):
    server = Server(
        "/opt/plainmind", ("mcp", "--workspace", "/w"), "/opt/plainmind hook", ("/opt/plainmind", "hook")
    )
    for tree in ("marketplace", "gemini", "opencode", "openclaw"):
        files = tree_files(tree, server)
        assert any("/opt/plainmind" in text for text in files.values()), tree
        assert not any('"plainmind hook"' in text or '["plainmind"' in text for text in files.values()), tree
        for name, text in files.items():
            if name.endswith(".json"):
                assert json.loads(text).get("version", __version__) == __version__


def test_a_bundle_for_claude_desktop_starts_the_server(tmp_path, home, cli):
    told = cli("connect", "claude-desktop", "--plugin")
    assert told.status == 0, told.err
    bundle = home / "hosts" / "plugins" / "claude-desktop" / "plainmind.mcpb"
    assert "plainmind.mcpb" in told.out

    with zipfile.ZipFile(bundle) as packed:
        packed.extractall(tmp_path / "unpacked")
        manifest = json.loads(packed.read("manifest.json"))
        assert packed.getinfo(manifest["server"]["entry_point"]).external_attr >> 16 == 0o755
    script = (tmp_path / "unpacked" / manifest["server"]["entry_point"]).read_text()
    words = shlex.split(script.splitlines()[1])
    assert words[0] == "exec"
    assert os.access(words[1], os.X_OK)
    assert words[-2:] == ["mcp", "$@"]

    assert cli("disconnect", "claude-desktop").status == 0
    assert not bundle.exists()


def test_doctor_tells_of_a_connection_that_is_gone(written, cli):
    cli("connect", "claude-code")
    fine = cli("doctor", "--json").json["checks"]
    assert [check["verdict"] for check in fine if check["name"] == "connection claude-code"] == ["ok"]
    (written / ".claude.json").write_text("{}")

    told = cli("doctor", "--json").json["checks"]

    (check,) = [check for check in told if check["name"] == "connection claude-code"]
    assert check["verdict"] == "warning"
    assert ".claude.json" in check["detail"]
    assert "plainmind connect claude-code" in check["hint"]


def test_notes_are_read_once_however_many_hosts_are_connected(written, cli, monkeypatch):
    from plainmind.guests.hosts import hook

    begun = []
    monkeypatch.setattr(
        hook, "catch_up_later", lambda memory, sources: begun.append((memory.workspace, sources))
    )

    cli("connect", "--all", "--dry-run")
    assert begun == []
    cli("connect", "--all")

    assert begun == [(str(written / "home" / "workspace"), ("memory", "sessions"))]


def test_a_host_that_nobody_knows_is_named(cli):
    refused = cli("connect", "emacs")

    assert refused.status == 1
    assert "claude-code" in refused.err


def test_who_stands_in_another_memory_is_told_that_it_is_not_connected(written, cli, monkeypatch):
    assert cli("init", "mynotes").status == 0
    monkeypatch.chdir(written / "mynotes")

    taken = cli("connect", "claude-code")
    named = cli("connect", "claude-code", "--workspace", ".")
    monkeypatch.chdir(written)
    elsewhere = cli("connect", "claude-code")

    note = "note: not connected to ~/mynotes, where you are: plainmind connect claude-code --workspace ."
    assert [line for line in taken.err.splitlines() if "where you are" in line] == [note]
    assert "where you are" not in named.err
    assert "where you are" not in elsewhere.err


def test_who_stands_deep_in_another_memory_is_told_its_folder(written, cli, monkeypatch):
    assert cli("init", "mynotes").status == 0
    deep = written / "mynotes" / "a b"
    deep.mkdir()
    monkeypatch.chdir(deep)

    taken = cli("connect", "cursor", "codex", "--dry-run")

    assert "~/mynotes, where you are: plainmind connect cursor codex --workspace .." in taken.err


def test_what_looks_nowhere_around_says_so_in_its_help(cli):
    for command in ("connect", "mcp"):
        told = " ".join(cli(command, "--help").out.split())
        assert "the nearest one" not in told
        assert "(default: what your settings name, then ~/.plainmind/workspace)" in told
    assert "(default: the nearest one, then" in " ".join(cli("search", "--help").out.split())
