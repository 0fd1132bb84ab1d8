"""What the guide tells people to type is what the command takes."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from plainmind.agent.scope import SearchContext
from plainmind.cli.main import parse
from plainmind.cli.mcp import context_of

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "mcp.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def started():
    """Every server that a client is told to start."""
    for block in blocks("json"):
        settings = json.loads(block)
        yield from settings.get("mcpServers", settings.get("servers", {})).values()
    for block in blocks("toml"):
        yield from tomllib.loads(block)["mcp_servers"].values()


def typed():
    """Every `plainmind` command line in the guide."""
    for block in blocks("console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                words = shlex.split(line.removeprefix("$ "))
                if "plainmind" in words and words[0] != "pip" and "http" not in words:
                    yield words[len(words) - 1 - words[::-1].index("plainmind") + 1 :]


def test_there_is_something_to_check():
    assert len(list(started())) >= 6
    assert len(list(typed())) >= 5


@pytest.mark.parametrize("server", list(started()), ids=str)
def test_what_clients_start_is_a_command(server):
    assert server["command"] == "plainmind"
    assert parse(server["args"]).command == "mcp"


@pytest.mark.parametrize("words", list(typed()), ids=" ".join)
def test_what_people_type_is_a_command(words):
    assert parse(words).command == "mcp"


def test_the_gateway_of_the_guide_speaks_for_the_group():
    [words] = [words for words in typed() if "--principal" in words]

    assert context_of(parse(words)) == SearchContext(
        "anna", "group", "agent:main:telegram:group:-100123", "telegram", "-100123"
    )
