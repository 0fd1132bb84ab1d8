"""The tools of the entry memory, defined once, beside those of the notes."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.agent.tools import FORGET as NOTES_FORGET
from plainmind.agent.tools import TOOLS, Tool, gives, takes
from plainmind.guests.entries.model import CATEGORIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}

_ENTRY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "text": _TEXT,
        "category": {"enum": list(CATEGORIES)},
        "importance": _NUMBER,
        "createdAt": {"type": "integer"},
        "score": _NUMBER,
    },
    "required": ["id", "text"],
}


_CODE = {"type": "string", "description": "The code that the first call gave."}
_OUTCOME = {"enum": ["preview", "forgotten", "not_found", "error"]}


def _what(description: str) -> Mapping[str, Any]:
    return {"type": "string", "description": description}


def _told(properties: Mapping[str, Any], *required: str) -> Mapping[str, Any]:
    """The shape of an answer, or of why there is none."""
    problem = {"code": _TEXT, "error": _TEXT, "action": _TEXT, "warning": _TEXT}
    return gives({**properties, **problem}, *required)


STORE = Tool(
    name="memory_store",
    title="Store an entry",
    description=(
        "Keep one thing worth remembering, in a sentence that makes sense in a year: a preference, a fact, a decision,"
        " a person or thing. What says the same as an entry that is there is refused, and that entry is named; to put"
        " the new one in its place, call again with its id in `replaces`; if both are true, with `anyway`."
    ),
    input_schema=takes(
        {
            "text": {"type": "string", "description": "What to remember, one thing, in a sentence."},
            "category": {
                "type": "string",
                "enum": list(CATEGORIES),
                "description": f"One of {', '.join(CATEGORIES)}; other if left out.",
            },
            "importance": {"type": "number", "description": "From 0 to 1, 0.7 if left out."},
            "replaces": {
                "type": "string",
                "description": "The id of an entry that this one takes the place of.",
            },
            "anyway": {
                "type": "boolean",
                "description": "true to keep it beside an entry that was said to say the same.",
            },
        },
        "text",
    ),
    output_schema=_told(
        {
            "status": {"enum": ["stored", "duplicate", "not_found", "error"]},
            "id": _TEXT,
            "twin": _ENTRY,
            "similarity": _NUMBER,
        },
        "status",
    ),
    is_read_only=False,
    is_idempotent=True,
)

RECALL = Tool(
    name="memory_recall",
    title="Recall entries",
    description=(
        "Recall single things that were stored: preferences, facts, decisions, people. Use it before answering"
        " anything that depends on what is known about the user or on earlier decisions."
    ),
    input_schema=takes(
        {
            "query": {"type": "string", "description": "What to recall: a question or a few words."},
            "maxResults": {"type": "integer", "minimum": 1, "description": "At most this many entries."},
        },
        "query",
    ),
    output_schema=_told(
        {"status": {"enum": ["ok", "error"]}, "entries": {"type": "array", "items": _ENTRY}}, "status"
    ),
)

FORGET = Tool(
    name="memory_forget",
    title="Forget an entry",
    description=(
        "Remove stored entries for good, only when the user asked for it. Without `confirm` nothing is removed: the"
        " answer shows the entries that would go and a code. Show them to the user, then call again with the code."
    ),
    input_schema=takes(
        {"what": _what("The id of an entry, or words: the entries that have them all."), "confirm": _CODE},
        "what",
    ),
    output_schema=_told(
        {
            "status": _OUTCOME,
            "entries": {"type": "array", "items": _ENTRY},
            "confirm": _TEXT,
        },
        "status",
    ),
    is_read_only=False,
    is_destructive=True,
)

# One name, one tool: whoever asks to have something forgotten means it wherever it stands.
FORGET_EVERYWHERE = Tool(
    name="memory_forget",
    title="Forget",
    description=(
        "Remove lines of the notes and stored entries for good, only when the user asked for it. Without `confirm`"
        " nothing is removed: the answer shows what would go and a code. Show it to the user, then call again with"
        " the code."
    ),
    input_schema=takes(
        {
            "what": _what(
                "Lines (`MEMORY.md#L3-L5`), the id of a note or an entry, or a text: every line and entry that has it."
            ),
            "confirm": _CODE,
        },
        "what",
    ),
    output_schema=_told(
        {
            "status": _OUTCOME,
            "lines": NOTES_FORGET.output_schema["properties"]["lines"],
            "entries": {"type": "array", "items": _ENTRY},
            "confirm": _TEXT,
        },
        "status",
    ),
    is_read_only=False,
    is_destructive=True,
)

ENTRY_TOOLS: tuple[Tool, ...] = (STORE, RECALL, FORGET)
ALL_TOOLS: tuple[Tool, ...] = (
    *(FORGET_EVERYWHERE if tool is NOTES_FORGET else tool for tool in TOOLS),
    STORE,
    RECALL,
)
