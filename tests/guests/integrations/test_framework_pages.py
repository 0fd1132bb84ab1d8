"""Every class for a framework has a page with its program, an extra, and a sentence for who lacks the framework."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "guides" / "frameworks"
PROGRAMS = sorted((ROOT / "examples" / "frameworks").glob("*.py"))
# What the classes import of frameworks.
AWAY = {
    "agent_framework", "anthropic", "autogen_core", "crewai", "google", "langchain", "langchain_core", "langgraph",
    "llama_index", "pydantic_ai", "smolagents", "strands",
}  # fmt: skip
# Which extra each module names.
CLASSES = {
    "adk": "adk",
    "agent_framework": "agent-framework",
    "autogen": "autogen",
    "crewai": "crewai",
    "langchain": "langchain",
    "langgraph": "langgraph",
    "llama_index": "llama-index",
    "pydantic_ai": "pydantic-ai",
    "smolagents": "smolagents",
    "strands": "strands",
}
OTHERS = {"memory_tool_sdk": "anthropic"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_page_shows_the_program_that_is_tested(program: Path) -> None:
    text = program.read_text()
    ast.parse(text)
    showing = [page.name for page in PAGES.glob("*.md") if f"```python\n{text}```" in page.read_text()]
    assert len(showing) == 1, f"one page shows examples/frameworks/{program.name} as it is"


def test_every_page_is_in_the_list() -> None:
    listed = (ROOT / "docs" / "guides" / "frameworks.md").read_text()
    for page in PAGES.glob("*.md"):
        assert f"(frameworks/{page.name})" in listed


@pytest.fixture(scope="module")
def refusals() -> dict[str, str]:
    """What each module says in a process where no framework can be found, whether it is installed or not."""
    program = f"""
import importlib, json, sys
class Away:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {AWAY}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Away())
from plainmind.base.errors import PlainmindError
said = {{}}
for module in {[*CLASSES, *OTHERS]}:
    try:
        importlib.import_module("plainmind.guests.integrations." + module)
    except PlainmindError as error:
        assert isinstance(error, ImportError)
        said[module] = f"{{error}} {{error.hint}}"
print(json.dumps(said))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said: dict[str, str] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize(("module", "extra"), [*CLASSES.items(), *OTHERS.items()])
def test_who_lacks_a_framework_is_told_what_to_type(
    refusals: dict[str, str], module: str, extra: str
) -> None:
    assert "cannot be imported" in refusals[module]
    assert f"[{extra}]" in refusals[module]


def test_every_extra_for_a_framework_has_a_range() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in CLASSES.values():
        assert all(">=" in one and "<" in one for one in extras[extra]), extra
