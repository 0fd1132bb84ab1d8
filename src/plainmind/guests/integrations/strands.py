"""Strands: the tools of the memory for an agent.

agent = Agent(model=model, tools=tools("~/notes"))
"""

from __future__ import annotations

from typing import Any

from plainmind.agent.scope import SearchContext
from plainmind.agent.tools import Tool
from plainmind.guests.integrations.framework import FrameworkMemory, FrameworkMissing, Given

try:
    from strands.tools.tools import PythonAgentTool
except ImportError as error:
    raise FrameworkMissing("Strands", "strands", error) from error


def tools(memory: Given = None, *, context: SearchContext | None = None) -> list[PythonAgentTool]:
    """The tools of the memory; Strands runs them in threads."""
    mine = FrameworkMemory(memory, "strands", context)
    return [_tool(mine, tool) for tool in mine.tools]


def _tool(mine: FrameworkMemory, tool: Tool) -> PythonAgentTool:
    def call(tool_use: Any, **_: Any) -> dict[str, Any]:
        told = mine.call(tool.name, tool_use["input"])
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": told}]}

    spec = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {"json": dict(tool.input_schema)},
    }
    return PythonAgentTool(tool.name, spec, call)
