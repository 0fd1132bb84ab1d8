"""smolagents: the tools of the memory for a `ToolCallingAgent` or a `CodeAgent`.

agent = ToolCallingAgent(tools=tools("~/notes"), model=model)
"""

from __future__ import annotations

from typing import Any

from plainmind.agent.scope import SearchContext
from plainmind.agent.tools import Tool as OurTool
from plainmind.guests.integrations.framework import FrameworkMemory, FrameworkMissing, Given, without_none

try:
    from smolagents import Tool
except ImportError as error:
    raise FrameworkMissing("smolagents", "smolagents", error) from error


class MemoryTool(Tool):
    """One tool of the memory."""

    name = "memory"
    description = "A tool of the memory."
    inputs: dict[str, Any] = {}  # noqa: RUF012 (each tool has its own)
    output_type = "string"
    skip_forward_signature_validation = True  # an argument is called `from`, as no parameter can be

    def __init__(self, mine: FrameworkMemory, tool: OurTool) -> None:
        wanted = tool.input_schema["required"]
        self.name = tool.name
        self.description = tool.description
        self.inputs = {
            name: {"type": shape["type"], "description": shape["description"]}
            | ({} if name in wanted else {"nullable": True})
            for name, shape in tool.input_schema["properties"].items()
        }
        super().__init__()
        self.mine = mine
        self.is_initialized = True

    def forward(self, *given: Any, **named: Any) -> str:
        """Carry out one call; agents that write code give arguments in their order."""
        arguments = dict(zip(self.inputs, given, strict=False)) | named
        return self.mine.call(self.name, without_none(arguments))


def tools(memory: Given = None, *, context: SearchContext | None = None) -> list[MemoryTool]:
    """The tools of the memory for an agent. `tools(…)[0].mine.close()` closes it when it was opened here."""
    mine = FrameworkMemory(memory, "smolagents", context)
    return [MemoryTool(mine, tool) for tool in mine.tools]
