"""Real hosts, each in a fresh home with a model that this machine plays: connected, talked with, disconnected."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.support.host_model import HostModel, playing_model

PROGRAMS = Path(os.environ.get("PLAINMIND_HOSTS", "/nonexistent"))
PLAINMIND = shutil.which("plainmind", path=str(Path(__file__).resolve().parents[2] / ".venv" / "bin"))
FACT = "The billing gateway runs at Hetzner in Falkenstein, behind Caddy."
ASKED = "The codeword for the migration is heliotrope. Where does the billing gateway run?"
ANSWER = "At Hetzner. I keep in mind that the codeword for the migration is heliotrope."

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PROGRAMS.is_dir(), reason="`make hosts` installs the hosts and runs this"),
]


class Home:
    """A fresh home with one fact in its memory, and one host that is asked to do things there."""

    def __init__(self, folder: Path, model: HostModel) -> None:
        self.path = folder
        self.model = model
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self.environ: dict[str, str] = {
            "HOME": str(folder),
            "PATH": f"{PROGRAMS / 'node' / 'node_modules' / '.bin'}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "NO_PROXY": "127.0.0.1,localhost",
            "TERM": "dumb",
        }

    def plainmind(self, *words: str, status: int = 0) -> str:
        """Run our own program."""
        assert PLAINMIND is not None
        done = subprocess.run(
            [PLAINMIND, *words],
            env=self.environ,
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=400,  # OpenClaw takes ten seconds of a processor for whatever it is asked
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def run(self, *words: str, more: Mapping[str, str] | None = None) -> str:
        """Run a host in the project."""
        done = subprocess.run(
            words,
            env=self.environ | dict(more or {}),
            cwd=self.project,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=240,
            check=False,
        )
        return done.stdout + done.stderr

    def files(self) -> dict[str, bytes]:
        """Every file of the home but those of our own."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in self.path.rglob("*")
            if path.is_file() and ".plainmind" not in path.parts
        }


def program(name: str) -> str:
    """A host's program, or the reason why there is none."""
    found = next(PROGRAMS.glob(f"*/node_modules/.bin/{name}"), None)
    if found is None:
        pytest.skip(f"{name} could not be installed from the registry of this machine")
    return str(found)


@pytest.fixture
def model() -> Iterator[HostModel]:
    with playing_model() as played:
        yield played


@pytest.fixture
def home(tmp_path: Path, model: HostModel) -> Home:
    return Home(tmp_path / "home", model)


def plain(text: str) -> str:
    """What a model has heard, with the marks as we wrote them."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("\\u003c", "<").replace("\\u003e", ">")


def fenced(text: str) -> list[str]:
    """What stands between the marks of recalled text in what a model has heard."""
    return [piece.partition("</recalled-memory")[0] for piece in plain(text).split("<recalled-memory ")[1:]]


def bare(text: str) -> str:
    """What a model has heard besides."""
    first, *others = plain(text).split("<recalled-memory ")
    return first + "".join(piece.partition("</recalled-memory")[2] for piece in others)


def assert_given(model: HostModel, fact: str) -> None:
    """A fact has reached the model before it asked, and once more by the tool that it called; never without marks."""
    first, *_, last = model.heard_in_turns()
    by_itself = sum(fact in piece for piece in fenced(first))
    assert by_itself, first[:8000]
    assert sum(fact in piece for piece in fenced(last)) > by_itself, last[:8000]
    besides = bare(model.heard)
    assert fact not in besides, besides[max(0, besides.find(fact) - 2000) :][:4000]
    assert "NOT OFFERED" not in model.heard


def prepare(home: Home, host: str, *words: str) -> dict[str, bytes]:
    """Connect a host in a home without a memory, and put the fact into the one that was made; what its files were."""
    before = home.files()
    told = home.plainmind("connect", host, *words)
    assert "made a workspace" in told
    assert "the server answers" in told
    home.plainmind("remember", FACT)
    return before


def assert_remembers(home: Home, ask: list[str], more: Mapping[str, str] | None = None) -> None:
    """One turn in which the fact reaches the model and a tool is called; what was said is found in the next session."""
    home.model.will(
        {"tool": "memory_search", "input": {"query": "billing gateway"}},
        {"text": ANSWER},
    )
    told = home.run(*ask, ASKED, more=more)
    assert ANSWER in told, told
    assert_given(home.model, "Falkenstein")
    home.plainmind("sync", "--config", "sources=memory,sessions")

    found = home.plainmind(
        "search", "codeword for the migration", "--config", "sources=memory,sessions", "--json"
    )
    assert "I keep in mind" in found
    assert "recalled-memory" not in found

    home.model.will({"text": "heliotrope, you said."})
    home.run(*ask, "What is the codeword for the migration?", more=more)
    assert any("heliotrope" in piece for piece in fenced(home.model.heard)), home.model.heard[:6000]


def assert_imported_once(home: Home, host: str) -> None:
    """What the hook has kept of both conversations is what an import finds: nothing that was said is doubled."""
    home.plainmind("import", host)
    assert "nothing new" in home.plainmind("import", host)
    kept = (home.path / ".plainmind" / "agents" / "main" / "sessions").glob("*.jsonl")
    said = [line for path in kept for line in path.read_text().splitlines() if '"type":"text"' in line]
    assert len([line for line in said if '"role":"assistant"' in line and "I keep in mind" in line]) == 1, (
        said
    )
    assert len([line for line in said if '"role":"user"' in line and "What is the codeword" in line]) == 1, (
        said
    )


def assert_as_before(home: Home, host: str, before: Mapping[str, bytes]) -> None:
    """Disconnected, every file that was there is what it was; those that the host made itself have nothing of ours."""
    home.plainmind("disconnect", host)
    after = home.files()
    for name, data in before.items():
        assert after.get(name) == data, name
    left = [
        name
        for name, data in after.items()
        if name not in before
        and is_settings(name)
        and b"plainmind" in data.replace(str(home.path).encode(), b"")
    ]
    assert not left


# What a host writes for itself: logs, and a copy of each plugin that it has ever had.
OF_HOSTS = (".cache/", ".claude/telemetry/", ".claude/plugins/cache/")


def is_settings(name: str) -> bool:
    """Whether a file is one of a host's settings, not its log or its copy of a conversation."""
    return name.endswith((".toml", ".json", ".jsonc", ".yaml", ".js")) and not name.startswith(OF_HOSTS)


def test_claude_code_remembers_and_is_as_before(home: Home) -> None:
    claude = program("claude")
    settings = home.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n    "theme": "dark"\n}\n')
    more = {
        "ANTHROPIC_BASE_URL": home.model.url,
        "ANTHROPIC_API_KEY": "sk-ant-played",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    ask = [
        claude,
        "-p",
        "--model",
        "claude-sonnet-4-5",
        "--allowedTools",
        "mcp__plainmind__memory_search",
        "--",
    ]
    before = prepare(home, "claude-code")

    assert_remembers(home, ask, more)
    assert_as_before(home, "claude-code", before)


def test_what_claude_code_sums_up_when_it_compacts_is_a_note(home: Home) -> None:
    claude = program("claude")
    more = {
        "ANTHROPIC_BASE_URL": home.model.url,
        "ANTHROPIC_API_KEY": "sk-ant-played",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    prepare(home, "claude-code")
    ask = [claude, "-p", "--model", "claude-sonnet-4-5"]
    home.model.will({"text": "At Hetzner."})
    home.run(*ask, "--", ASKED, more=more)
    summary = "The codeword for the migration is heliotrope; it is due on the ninth of March."
    home.model.will(
        {"text": f"<analysis>I think aloud.</analysis>\n<summary>\n{summary}\n</summary>"}, {"text": "ok"}
    )

    home.run(*ask, "-c", "--", "/compact", more=more)

    (note,) = (home.path / ".plainmind" / "workspace" / "memory").glob("*-claude-code-*.md")
    assert note.read_text().endswith(f"\n\n{summary}\n")
    assert note.name in home.plainmind("search", "what is due on the ninth of March", "--json")


def codex_settings(home: Home) -> Path:
    """Codex is told to ask the model of this machine, and trusts the project."""
    config = home.path / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        '# mine\nmodel = "gpt-5"\nmodel_provider = "played"  # on this machine\n\n[model_providers.played]\n'
        f'name = "played"\nbase_url = "{home.model.url}/v1"\nwire_api = "responses"\nenv_key = "PLAYED_KEY"\n\n'
        f'[projects."{home.project}"]\ntrust_level = "trusted"\n'
    )
    return config


def test_codex_remembers_and_is_as_before(home: Home) -> None:
    codex = program("codex")
    codex_settings(home)
    home.environ["PATH"] = f"{Path(codex).parent}:{home.environ['PATH']}"
    before = prepare(home, "codex", "--trust-hooks")
    ask = [codex, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    ask += [
        "-c",
        "mcp_servers.plainmind.required=true",
    ]  # it begins without a server that a busy machine delays

    assert_remembers(home, ask, {"PLAYED_KEY": "x"})
    assert_as_before(home, "codex", before)


def gemini_settings(home: Home) -> dict[str, str]:
    """Gemini has settings with a comment; what it is told by its environment."""
    settings = home.path / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  // mine\n  "security": {"auth": {"selectedType": "gemini-api-key"}}\n}\n')
    return {
        "GOOGLE_GEMINI_BASE_URL": home.model.url,
        "GEMINI_API_KEY": "x",
        "GEMINI_TELEMETRY_ENABLED": "false",
    }


def test_gemini_remembers_and_is_as_before(home: Home) -> None:
    gemini = program("gemini")
    more = gemini_settings(home)
    before = prepare(home, "gemini")

    assert_remembers(home, [gemini, "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p"], more)
    assert_imported_once(home, "gemini")
    assert_as_before(home, "gemini", before)


def test_the_extension_in_gemini_remembers_and_is_as_before(home: Home) -> None:
    gemini = program("gemini")
    home.environ["PATH"] = f"{Path(gemini).parent}:{home.environ['PATH']}"
    more = gemini_settings(home)
    before = prepare(home, "gemini", "--plugin")

    assert_remembers(home, [gemini, "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p"], more)
    assert_as_before(home, "gemini", before)


def test_opencode_remembers_and_is_as_before(home: Home) -> None:
    opencode = program("opencode")
    config = home.path / ".config" / "opencode" / "opencode.json"
    config.parent.mkdir(parents=True)
    played = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{home.model.url}/v1", "apiKey": "x"},
    }
    config.write_text(
        '{\n  // mine\n  "$schema": "https://opencode.ai/config.json",\n  "model": "played/m",\n'
        f'  "provider": {{"played": {json.dumps(played | {"models": {"m": {}}})}}}\n}}\n'
    )
    before = prepare(home, "opencode")

    assert_remembers(home, [opencode, "run"])
    assert_imported_once(home, "opencode")
    assert_as_before(home, "opencode", before)


def played_for_copilot(home: Home) -> dict[str, str]:
    """What Copilot is told by its environment."""
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{home.model.url}/v1",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_MODEL": "gpt-5",
        "COPILOT_OFFLINE": "true",
    }


def test_copilot_remembers_and_is_as_before(home: Home) -> None:
    copilot = program("copilot")
    before = prepare(home, "copilot")

    assert_remembers(home, [copilot, "--allow-all-tools", "-p"], played_for_copilot(home))
    assert_imported_once(home, "copilot")
    assert_as_before(home, "copilot", before)


def test_the_plugin_in_copilot_remembers_and_is_as_before(home: Home) -> None:
    copilot = program("copilot")
    home.environ["PATH"] = f"{Path(copilot).parent}:{home.environ['PATH']}"
    before = prepare(home, "copilot", "--plugin")

    assert_remembers(home, [copilot, "--allow-all-tools", "-p"], played_for_copilot(home))
    assert_as_before(home, "copilot", before)


def test_openclaw_remembers_and_is_as_before(home: Home) -> None:
    openclaw = program("openclaw")
    home.environ["PATH"] = f"{Path(openclaw).parent}:{home.environ['PATH']}"
    config = home.path / ".openclaw" / "openclaw.json"
    config.parent.mkdir()
    provider = {
        "baseUrl": f"{home.model.url}/v1",
        "apiKey": "x",
        "api": "openai-completions",
        "models": [{"id": "m", "name": "m", "contextWindow": 100_000, "maxTokens": 4000}],
    }
    notes = home.path / "notes"
    settings = {
        "models": {"providers": {"played": provider}},
        "agents": {"defaults": {"model": {"primary": "played/m"}, "workspace": str(notes)}},
    }
    config.write_text("// mine\n" + json.dumps(settings))
    (notes / "memory").mkdir(parents=True)
    (notes / "memory" / "gateway.md").write_text(f"# Gateway\n\n{FACT}\n")
    before = home.files()
    assert "Memory index updated (main): 1 files" in home.plainmind("connect", "openclaw")

    assert "Falkenstein" in home.run(openclaw, "memory", "search", ASKED)
    ask = [openclaw, "agent", "--local", "--agent", "main", "--session-id"]
    home.model.will(
        {"tool": "memory_search", "input": {"query": "billing gateway"}},
        {"text": ANSWER},
    )
    told = home.run(*ask, "one", "--message", ASKED)
    assert ANSWER in told, told
    assert_given(home.model, "Falkenstein")
    home.model.will({"text": "heliotrope, you said."})
    home.run(*ask, "two", "--message", "What is the codeword for the migration?")
    assert any("heliotrope" in piece for piece in fenced(home.model.heard)), home.model.heard[:6000]

    said = [path.read_text() for path in (home.path / ".plainmind").rglob("sessions/*.jsonl")]
    assert sum(text.count("I keep in mind") for text in said) == 1, said
    assert not any("recalled-memory" in text for text in said)

    home.plainmind("disconnect", "openclaw")
    after = home.files()
    assert [name for name, data in before.items() if after.get(name) != data] == []
    assert "Plainmind" not in home.run(openclaw, "memory", "status")


def test_the_plugin_in_claude_code_remembers_and_is_as_before(home: Home) -> None:
    claude = program("claude")
    home.environ["PATH"] = f"{Path(claude).parent}:{home.environ['PATH']}"
    settings = home.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n    "theme": "dark"\n}\n')
    more = {
        "ANTHROPIC_BASE_URL": home.model.url,
        "ANTHROPIC_API_KEY": "sk-ant-played",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    before = prepare(home, "claude-code", "--plugin")
    tool = "mcp__plugin_plainmind_plainmind__memory_search"

    assert_remembers(home, [claude, "-p", "--model", "claude-sonnet-4-5", "--allowedTools", tool, "--"], more)
    assert_as_before(home, "claude-code", before)


def test_the_plugin_in_codex_remembers_and_is_as_before(home: Home) -> None:
    codex = program("codex")
    home.environ["PATH"] = f"{Path(codex).parent}:{home.environ['PATH']}"
    codex_settings(home)
    before = prepare(home, "codex", "--plugin", "--trust-hooks")
    ask = [codex, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]

    assert_remembers(home, ask, {"PLAYED_KEY": "x"})
    assert_as_before(home, "codex", before)
