"""The tools in the forms that model providers and MCP ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plainmind.agent.tools.definitions import TOOLS, Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def for_openai(tools: Sequence[Tool] = TOOLS) -> list[dict[str, Any]]:
    """Functions of OpenAI's Responses API, strict."""
    return [{"type": "function", **_function(tool)} for tool in tools]


def for_openai_chat(tools: Sequence[Tool] = TOOLS) -> list[dict[str, Any]]:
    """Functions of the Chat Completions API, which most other servers speak too, strict."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def for_anthropic(tools: Sequence[Tool] = TOOLS) -> list[dict[str, Any]]:
    """Tools of Anthropic's Messages API."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": _copy(tool.input_schema)}
        for tool in tools
    ]


def for_mcp(tools: Sequence[Tool] = TOOLS) -> list[dict[str, Any]]:
    """Tools as an MCP server lists them, in the names of the protocol."""
    return [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": _copy(tool.input_schema),
            "outputSchema": _copy(tool.output_schema),
            "annotations": {
                "title": tool.title,
                "readOnlyHint": tool.is_read_only,
                "destructiveHint": tool.is_destructive,
                "idempotentHint": tool.is_idempotent,
                "openWorldHint": False,
            },
        }
        for tool in tools
    ]


def _function(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": strict(tool.input_schema),
        "strict": True,
    }


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as strict mode wants it: everything is required, and what may be left out may be null instead."""
    wanted = schema["required"]
    properties = {
        name: _copy(shape) if name in wanted else {**_copy(shape), "type": [shape["type"], "null"]}
        for name, shape in schema["properties"].items()
    }
    return {**_copy(schema), "properties": properties, "required": list(properties)}


def _copy(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Every caller gets a schema of its own: SDKs are known to add to what they are given."""
    return {name: _copied(part) for name, part in schema.items()}


def _copied(part: Any) -> Any:
    if isinstance(part, Mapping):
        return _copy(part)
    return [_copied(one) for one in part] if isinstance(part, list | tuple) else part
