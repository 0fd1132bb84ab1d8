"""The memory as tools of an agent: defined once, exported for every kind of client, and carried out."""

from __future__ import annotations

from plainmind.agent.tools.definitions import TOOLS, VERSION, Tool
from plainmind.agent.tools.formats import for_anthropic, for_mcp, for_openai, for_openai_chat
from plainmind.agent.tools.toolbox import ToolAnswer, ToolBox

__all__ = [
    "TOOLS",
    "VERSION",
    "Tool",
    "ToolAnswer",
    "ToolBox",
    "for_anthropic",
    "for_mcp",
    "for_openai",
    "for_openai_chat",
]
