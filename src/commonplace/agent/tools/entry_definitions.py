"""The tools of the entry memory, defined once, beside those of the notes."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.agent.tools.definitions import Tool, gives, takes
from commonplace.entries.model import CATEGORIES

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
        " the new one in its place, call again with its id in `replaces`."
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
        {
            "what": {
                "type": "string",
                "description": "The id of an entry, or words: the entries that have them all.",
            },
            "confirm": {"type": "string", "description": "The code that the first call gave."},
        },
        "what",
    ),
    output_schema=_told(
        {
            "status": {"enum": ["preview", "forgotten", "not_found", "error"]},
            "entries": {"type": "array", "items": _ENTRY},
            "confirm": _TEXT,
        },
        "status",
    ),
    is_read_only=False,
    is_destructive=True,
)

ENTRY_TOOLS: tuple[Tool, ...] = (STORE, RECALL, FORGET)
