"""What a conversation may know about the memory: everything for the owner, about its own part for all others."""

from __future__ import annotations

from plainmind.agent.scope import Access, SearchContext
from plainmind.memory.index_status import index_of
from plainmind.memory.status import status_of
from plainmind.memory.wiring import Parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def facts_for(parts: Parts, context: SearchContext, access: Access) -> dict[str, Any]:
    """Facts, ready for JSON, with what the context may see and write."""
    scope = {
        "chatType": context.chat_type,
        "sees": sorted(access.scopes),
        "writes": access.writes,
        "withheld": parts.checkpoint.withheld,
    }
    if access.sees_everything:
        return {**status_of(parts, deep=False).facts, "scope": scope}
    settings = parts.loaded.settings
    index = index_of(parts)
    made = index.made
    seen = [state for state in index.known.values() if access.may_see(state.scope)]
    files = len(parts.checkpoint.passed(access, seen, "the index"))
    return {
        "backend": settings.backend,
        "provider": made.embedder.provider if made else "none",
        "model": made.embedder.model if made else "",
        "files": None if index.trouble else files,
        # Which server it is, and what it says, is for the owner.
        "store": {} if index.trouble is None else {"problem": "the index cannot be asked just now"},
        "sources": list(settings.sources),
        "scope": scope,
    }
