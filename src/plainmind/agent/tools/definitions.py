"""The tools that an agent gets, defined once: names, descriptions and schemas. Nothing of the user is in them."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Grows with every change of a definition: clients may keep what they were told.
VERSION = 1


@value
class Tool:
    """One tool, in no vendor's form. `input_schema` is plain JSON Schema: what is not required may be left out."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    is_read_only: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True


def takes(properties: Mapping[str, Any], *required: str) -> Mapping[str, Any]:
    """The shape of arguments. Closed: what a model invents is told to it."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def gives(properties: Mapping[str, Any], *required: str) -> Mapping[str, Any]:
    """An answer's shape. Open: a later version may say more, and each tool may say why it could not answer."""
    return {"type": "object", "properties": properties, "required": list(required)}


_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_FLAG = {"type": "boolean"}

_HIT = gives(
    {
        "path": _TEXT,
        "startLine": _WHOLE,
        "endLine": _WHOLE,
        "score": {"type": "number"},
        "snippet": _TEXT,
        "source": {"enum": ["memory", "sessions"]},
        "citation": _TEXT,
    },
    "path", "startLine", "endLine", "score", "snippet", "source",
)  # fmt: skip

_LINES = gives(
    {"path": _TEXT, "startLine": _WHOLE, "endLine": _WHOLE, "text": _TEXT},
    "path", "startLine", "endLine", "text",
)  # fmt: skip

SEARCH = Tool(
    name="memory_search",
    title="Search memory",
    description=(
        "Search the long-term memory (MEMORY.md, memory/*.md, past conversations) by meaning and by word. Use it before"
        " answering anything about earlier work, decisions, dates, people, preferences or to-dos. Gives the best"
        " lines with their place; read around them with memory_get."
    ),
    input_schema=takes(
        {
            "query": {"type": "string", "description": "What to find: a question or a few words."},
            "maxResults": {"type": "integer", "minimum": 1, "description": "At most this many results."},
            "minScore": {"type": "number", "description": "Leave out what scores less, from 0 to 1."},
        },
        "query",
    ),
    output_schema=gives(
        {
            "results": {"type": "array", "items": _HIT},
            "provider": _TEXT,
            "model": _TEXT,
            "mode": _TEXT,
            "citations": {"enum": ["on", "off"]},
            "degraded": {"type": "array", "items": _TEXT},
            "denied": _FLAG,
            "unavailable": _FLAG,
            "timedOut": _FLAG,
            "error": _TEXT,
            "warning": _TEXT,
            "action": _TEXT,
        },
        "results",
    ),
)

GET = Tool(
    name="memory_get",
    title="Read memory",
    description=(
        "Read lines of a memory file that memory_search named. Only files of the memory can be read."
        " When nextFrom is given, there is more: ask again from that line."
    ),
    input_schema=takes(
        {
            "path": {"type": "string", "description": "As in a result: `memory/2026-02-10.md`, or `MEMORY.md#L3-L7`."},
            "from": {"type": "integer", "minimum": 1, "description": "First line, 1 if left out."},
            "lines": {"type": "integer", "minimum": 1, "description": "How many lines, 120 if left out."},
        },
        "path",
    ),
    output_schema=gives(
        {
            "status": {"enum": ["ok", "not_found", "error"]},
            "path": _TEXT,
            "text": _TEXT,
            "from": _WHOLE,
            "lines": _WHOLE,
            "truncated": _FLAG,
            "nextFrom": _WHOLE,
            "code": _TEXT,
            "error": _TEXT,
            "action": _TEXT,
        },
        "status",
    ),
)  # fmt: skip

APPEND = Tool(
    name="memory_append",
    title="Save to memory",
    description=(
        "Save something worth keeping: a decision, a preference, a fact, a to-do. It is added to today's log;"
        " nothing is overwritten. Write it so that it makes sense in a year, without this conversation."
    ),
    input_schema=takes({"text": {"type": "string", "description": "The note, in Markdown."}}, "text"),
    output_schema=gives(
        {
            "status": {"enum": ["ok", "error"]},
            "path": _TEXT,
            "startLine": _WHOLE,
            "endLine": _WHOLE,
            "id": _TEXT,
            "code": _TEXT,
            "error": _TEXT,
            "action": _TEXT,
        },
        "status",
    ),
    is_read_only=False,
    is_idempotent=False,
)

FORGET = Tool(
    name="memory_forget",
    title="Forget",
    description=(
        "Remove lines from the memory for good, only when the user asked for it. Without `confirm` nothing is removed:"
        " the answer shows the lines that would go and a code. Show them to the user, then call again with the code."
    ),
    input_schema=takes(
        {
            "what": {
                "type": "string",
                "description": "Lines (`MEMORY.md#L3-L5`), the id of a note, or a text: every line that has it.",
            },
            "confirm": {"type": "string", "description": "The code that the first call gave."},
        },
        "what",
    ),
    output_schema=gives(
        {
            "status": {"enum": ["preview", "forgotten", "not_found", "error"]},
            "lines": {"type": "array", "items": _LINES},
            "confirm": _TEXT,
            "code": _TEXT,
            "error": _TEXT,
            "action": _TEXT,
        },
        "status",
    ),
    is_read_only=False,
    is_destructive=True,
)  # fmt: skip

STATUS = Tool(
    name="memory_status",
    title="Memory status",
    description="Say how much the memory holds, how it is searched, and whether anything is wrong with it.",
    input_schema=takes({}),
    output_schema=gives({"status": {"enum": ["ok", "error"]}, "error": _TEXT, "action": _TEXT}, "status"),
)

TOOLS: tuple[Tool, ...] = (SEARCH, GET, APPEND, FORGET, STATUS)
