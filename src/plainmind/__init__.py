"""Plainmind: the memory of AI agents, kept in plain Markdown."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.agent.scope import OWNER, SearchContext
    from plainmind.base.errors import PlainmindError, ScopeDenied
    from plainmind.base.model import SearchHit, SearchResult, SyncReport
    from plainmind.memory.memory import Memory
    from plainmind.sessions.store import SessionStore

__all__ = [
    "OWNER",
    "Memory",
    "PlainmindError",
    "ScopeDenied",
    "SearchContext",
    "SearchHit",
    "SearchResult",
    "SessionStore",
    "SyncReport",
    "__version__",
]

__version__ = "0.2.0"

_HOME = {
    "OWNER": "plainmind.agent.scope",
    "PlainmindError": "plainmind.base.errors",
    "Memory": "plainmind.memory.memory",
    "ScopeDenied": "plainmind.base.errors",
    "SearchContext": "plainmind.agent.scope",
    "SearchHit": "plainmind.base.model",
    "SearchResult": "plainmind.base.model",
    "SessionStore": "plainmind.sessions.store",
    "SyncReport": "plainmind.base.model",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `plainmind --help` needs none of them."""
    if name not in _HOME:
        raise AttributeError(f"module `plainmind` has no attribute `{name}`")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
