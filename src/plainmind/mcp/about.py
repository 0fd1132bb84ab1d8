"""What the server says of itself when a client begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plainmind import __version__
from plainmind.agent.prompt import recall_section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.agent.protocol import AgentMemory
    from plainmind.agent.tools import Tool

IDENTITY: Mapping[str, str] = {
    "name": "plainmind",
    "title": "Plainmind",
    "version": __version__,
    "description": "The memory of AI agents, kept in plain Markdown",
}


def instructions_for(memory: AgentMemory, tools: Iterable[Tool]) -> str | None:
    """What a model should know about the tools before it uses any; None when there is nothing to say."""
    names = [tool.name for tool in tools]
    return recall_section(names, shows_citations=memory.shows_citations) or None


def introduction(instructions: str | None, protocol_version: str) -> dict[str, Any]:
    """The answer to `initialize`, as the SDK gives it too: a test holds one against the other."""
    return {
        "capabilities": {
            "resources": {"listChanged": False, "subscribe": False},
            "tools": {"listChanged": False},
        },
        **({} if instructions is None else {"instructions": instructions}),
        "protocolVersion": protocol_version,
        "serverInfo": dict(IDENTITY),
    }
