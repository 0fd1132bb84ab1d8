"""The tools are defined once, change only on purpose, and fit what every client asks for.

The libraries of the clients take seconds to import: only whoever runs their tests waits for them.
"""

from __future__ import annotations

import copy
import json
import re

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from plainmind.agent.tools import TOOLS, VERSION, for_anthropic, for_mcp, for_openai, for_openai_chat
from plainmind.base.model import sha256_text

EXPORTS = (for_openai, for_openai_chat, for_anthropic, for_mcp)
# What GPT-4's tokenizer takes for one word at most, with words like `readOnlyHint` cut where a capital stands.
PIECES = re.compile(r"[^\w\s]?[A-Z]?[a-z]{1,8}|[A-Z]+|[0-9]{1,3}|[^\w\s]{1,3}|_|\n")


def test_a_changed_definition_has_a_new_version():
    told = json.dumps([VERSION, for_mcp()], sort_keys=True)

    assert (VERSION, sha256_text(told)[:16]) == (7, "4f265fcf59f835d0"), (
        "clients keep definitions: raise VERSION, then this"
    )


def test_there_are_six_tools_with_the_names_that_prompts_use():
    assert [tool.name for tool in TOOLS] == [
        "memory_search",
        "memory_get",
        "memory_append",
        "memory_edit",
        "memory_forget",
        "memory_status",
    ]


@pytest.mark.parametrize("export", EXPORTS)
def test_the_whole_list_takes_less_than_1500_tokens(export):
    listed = json.dumps(export(), separators=(",", ":"))

    assert len(PIECES.findall(listed)) < 1500


@pytest.mark.parametrize("export", EXPORTS)
def test_who_changes_an_exported_tool_changes_their_own_copy(export):
    before = json.dumps(export())
    for tool in export():
        _spoil(tool)

    assert json.dumps(export()) == before


def _spoil(part):
    for value in list(part.values()) if isinstance(part, dict) else part:
        if isinstance(value, dict | list):
            _spoil(value)
    part.clear()


@pytest.mark.parametrize("tool", for_openai(), ids=lambda tool: tool["name"])
def test_strict_mode_of_openai_has_nothing_to_change(tool):
    from agents.strict_schema import ensure_strict_json_schema
    from openai.lib._pydantic import _ensure_strict_json_schema

    parameters = tool["parameters"]

    assert ensure_strict_json_schema(copy.deepcopy(parameters)) == parameters
    assert _ensure_strict_json_schema(copy.deepcopy(parameters), path=(), root=parameters) == parameters
    assert parameters["required"] == list(parameters["properties"])
    assert parameters["additionalProperties"] is False


def test_what_may_be_left_out_may_be_null_in_strict_mode():
    search = for_openai()[0]["parameters"]["properties"]

    assert search["query"]["type"] == "string"
    assert search["maxResults"]["type"] == ["integer", "null"]


def test_each_export_is_what_the_client_library_declares():
    from anthropic.types import ToolParam
    from mcp.types import Tool as McpTool
    from openai.types.chat import ChatCompletionFunctionToolParam
    from openai.types.responses import FunctionToolParam

    for tool in for_openai():
        TypeAdapter(FunctionToolParam).validate_python(tool)
    for tool in for_openai_chat():
        TypeAdapter(ChatCompletionFunctionToolParam).validate_python(tool)
    for tool in for_anthropic():
        TypeAdapter(ToolParam).validate_python(tool)
    for tool in for_mcp():
        assert McpTool.model_validate(tool).model_dump(by_alias=True, exclude_none=True) == tool


def test_every_schema_is_a_schema():
    for tool in TOOLS:
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)


def test_annotations_tell_reading_from_writing_from_destroying():
    hints = {tool["name"]: tool["annotations"] for tool in for_mcp()}

    assert [name for name, hint in hints.items() if hint["readOnlyHint"]] == [
        "memory_search",
        "memory_get",
        "memory_status",
    ]
    assert [name for name, hint in hints.items() if hint["destructiveHint"]] == [
        "memory_edit",
        "memory_forget",
    ]
    assert not any(hint["openWorldHint"] for hint in hints.values())
