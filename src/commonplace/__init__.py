"""Commonplace: the memory of AI agents, kept in plain Markdown."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from commonplace.agent.scope import OWNER, SearchContext
    from commonplace.errors import CommonplaceError, ScopeDenied
    from commonplace.memory.facade import Memory
    from commonplace.model import SearchHit, SearchResult, SyncReport
    from commonplace.sessions.store import SessionStore

__all__ = [
    "OWNER",
    "CommonplaceError",
    "Memory",
    "ScopeDenied",
    "SearchContext",
    "SearchHit",
    "SearchResult",
    "SessionStore",
    "SyncReport",
    "__version__",
]

__version__ = "0.1.0"

_HOME = {
    "OWNER": "commonplace.agent.scope",
    "CommonplaceError": "commonplace.errors",
    "Memory": "commonplace.memory.facade",
    "ScopeDenied": "commonplace.errors",
    "SearchContext": "commonplace.agent.scope",
    "SearchHit": "commonplace.model",
    "SearchResult": "commonplace.model",
    "SessionStore": "commonplace.sessions.store",
    "SyncReport": "commonplace.model",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `commonplace --help` needs none of them."""
    if name not in _HOME:
        raise AttributeError(f"module `commonplace` has no attribute `{name}`")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
