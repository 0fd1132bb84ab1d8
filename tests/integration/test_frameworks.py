"""Each class for a framework, used by that framework itself, with a model that this machine plays.

Every framework has an environment of its own, with the newest and the oldest version that its extra allows. Its program
in `examples/frameworks` is run as a user would; what else its class promises is asserted inside the environment, by a
program in `tests/integration/frameworks`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.host_model import HostModel, playing_model

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(os.environ.get("PLAINMIND_FRAMEWORKS", "/nonexistent"))
FACT = "The billing gateway runs at Hetzner in Falkenstein, behind Caddy."
ASKED = "Where does the billing gateway run? The codeword is heliotrope."
ANSWER = "At Hetzner. I keep in mind that the codeword is heliotrope."

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not ENVIRONMENTS.is_dir(), reason="`make frameworks` installs the frameworks and runs this"
    ),
]


class Home:
    """A fresh home with one fact in its notes, and one framework whose programs run there."""

    def __init__(self, folder: Path, model: HostModel, environment: str) -> None:
        self.path = folder
        self.model = model
        self.python = ENVIRONMENTS / environment / "bin" / "python"
        if not self.python.exists():
            pytest.skip(f"{environment} could not be installed from the registry of this machine")
        notes = folder / "notes"
        (notes / "memory").mkdir(parents=True)
        (notes / "MEMORY.md").write_text("# Memory\n")
        (notes / "memory" / "2026-11-02.md").write_text(f"# 2026-11-02\n\n- 10:00 {FACT}\n")
        self.environ: dict[str, str] = {
            "HOME": str(folder),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "NO_PROXY": "127.0.0.1,localhost",
            "PLAYED_MODEL": model.url,
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_API_BASE": f"{model.url}/v1",
            "OPENAI_API_KEY": "sk-played",
            "GOOGLE_GEMINI_BASE_URL": model.url,
            "GOOGLE_API_KEY": "played",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "CREWAI_DISABLE_TELEMETRY": "true",
            "CREWAI_TRACING_ENABLED": "false",
            "OTEL_SDK_DISABLED": "true",
            "TRANSFORMERS_OFFLINE": "1",
        }

    def run(self, program: Path, *words: str, more: Mapping[str, str] | None = None) -> str:
        """Run a program in the framework's environment."""
        done = subprocess.run(
            [self.python, program, *words],
            env=self.environ | dict(more or {}),
            cwd=self.path,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def example(self, name: str, *words: str) -> str:
        """Run one of the programs that the documentation shows."""
        return self.run(ROOT / "examples" / "frameworks" / f"{name}.py", *words)

    def said(self) -> list[str]:
        """What the transcripts say that people and models said, in order."""
        entries = [
            json.loads(line)
            for path in (self.path / ".plainmind").rglob("sessions/*.jsonl")
            for line in path.read_text().splitlines()
        ]
        spoken = [
            one["message"] for one in entries if one.get("message", {}).get("role") in {"user", "assistant"}
        ]
        return [
            "".join(part.get("text", "") for part in one["content"])
            if isinstance(one["content"], list)
            else str(one["content"])
            for one in spoken
        ]


@pytest.fixture
def model() -> Iterator[HostModel]:
    with playing_model(answers_asides=True) as played:
        yield played


@pytest.fixture(params=["", "-oldest"], ids=["newest", "oldest"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def home_of(tmp_path: Path, model: HostModel, framework: str, version: str) -> Home:
    return Home(tmp_path / "home", model, framework + version)


def fenced(text: str) -> list[str]:
    """What stands between the marks of recalled text in what a model has heard."""
    return [piece.partition("</recalled-memory")[0] for piece in text.split("<recalled-memory ")[1:]]


def bare(text: str) -> str:
    """What a model has heard besides."""
    first, *others = text.split("<recalled-memory ")
    return first + "".join(piece.partition("</recalled-memory")[2] for piece in others)


def assert_fenced(model: HostModel, word: str) -> None:
    """A word of the memory has reached the model, and only ever between marks."""
    assert any(word in piece for piece in fenced(model.heard)), model.heard[:8000]
    assert word not in bare(model.heard), bare(model.heard)[:8000]


def assert_uses_tools(home: Home, example: str) -> None:
    """The model calls a tool of the memory: what it is given of it is fenced."""
    last: dict[str, Any] = {"text": ANSWER}
    if example.startswith("smolagents"):  # whose agents answer by a tool
        last = {"tool": "final_answer", "input": {"answer": ANSWER}}
    home.model.will({"tool": "memory_search", "input": {"query": "billing gateway"}}, last, last)
    told = home.example(example, ASKED)
    assert "NOT OFFERED" not in told
    assert ANSWER in told
    assert_fenced(home.model, "Falkenstein")


def assert_remembers(home: Home, example: str) -> None:
    """What is known reaches the model, what was said is kept once, and another process knows it."""
    home.model.will({"text": ANSWER}, {"text": ANSWER})
    assert ANSWER in home.example(example, ASKED)
    assert_fenced(home.model, "Falkenstein")
    said = home.said()
    assert sum("run? The codeword" in one for one in said) == 1, said
    assert sum("I keep in mind" in one for one in said) == 1, said
    assert not any("Falkenstein" in one or "recalled-memory" in one for one in said), said

    home.model.will({"text": "heliotrope, you said."}, {"text": "heliotrope, you said."})
    home.example(example, "What is the codeword?")
    assert any("heliotrope" in piece for piece in fenced(home.model.heard)), home.model.heard[:8000]


# Which classes remind and keep by themselves, and which give tools, by the example that shows it.
REMEMBER = {
    "adk": "adk_agent",
    "agent-framework": "agent_framework_agent",
    "agents": "openai_agents",
    "autogen": "autogen_agent",
    "langchain": "langchain_agent",
    "llama-index": "llama_index_agent",
    "pydantic-ai": "pydantic_ai_agent",
}
HAVE_TOOLS = {
    **{framework: example for framework, example in REMEMBER.items() if framework != "adk"},
    "smolagents": "smolagents_tools",
    "strands": "strands_tools",
}
CONTRACTS = sorted(Path(__file__).parent.glob("frameworks/*_contract.py"))


@pytest.mark.parametrize(("framework", "example"), REMEMBER.items())
def test_an_agent_remembers_in_another_process(
    framework: str, example: str, version: str, tmp_path: Path, model: HostModel
) -> None:
    assert_remembers(home_of(tmp_path, model, framework, version), example)


@pytest.mark.parametrize(("framework", "example"), HAVE_TOOLS.items())
def test_an_agent_searches_its_memory(
    framework: str, example: str, version: str, tmp_path: Path, model: HostModel
) -> None:
    assert_uses_tools(home_of(tmp_path, model, framework, version), example)


@pytest.mark.parametrize("program", CONTRACTS, ids=lambda path: path.stem)
def test_a_class_keeps_the_contract_of_its_framework(
    program: Path, version: str, tmp_path: Path, model: HostModel
) -> None:
    framework = program.stem.removesuffix("_contract").replace("_", "-")
    home = home_of(tmp_path, model, framework, version)
    model.will(*[{"text": ANSWER}] * 20)
    assert "all as promised" in home.run(program)


def test_what_langgraph_stores_is_found_in_another_process(
    version: str, tmp_path: Path, model: HostModel
) -> None:
    home = home_of(tmp_path, model, "langgraph", version)
    assert home.example("langgraph_store", "Anna takes her tea without milk.").strip() == "()"
    told = home.example("langgraph_store", "How does Anna take her tea?")
    assert "without milk" in told
    (kept, _) = sorted(
        (home.path / "notes/memory/store/said/anna").glob("*.md"), key=lambda at: at.stat().st_mtime
    )
    assert '"text": "Anna takes her tea without milk."' in kept.read_text()


def test_a_crew_remembers_in_another_process(version: str, tmp_path: Path, model: HostModel) -> None:
    home = home_of(tmp_path, model, "crewai", version)
    model.will(*[{"text": ANSWER}] * 20)
    assert ANSWER in home.example("crewai_crew", ASKED)
    kept = next((home.path / ".plainmind").rglob("entries.jsonl")).read_text()
    assert "heliotrope" in kept
    model.will(*[{"text": "heliotrope, you said."}] * 20)
    home.example("crewai_crew", "What is the codeword?")
    assert "I keep in mind that the codeword is heliotrope" in model.heard


def test_a_program_for_mem0_remembers_in_another_process(tmp_path: Path, model: HostModel) -> None:
    home = home_of(tmp_path, model, "langgraph", "")
    assert home.example("mem0_shape", "I prefer tea over coffee.").strip() == "[]"
    assert "tea over coffee" in home.example("mem0_shape", "Tea or coffee?")
