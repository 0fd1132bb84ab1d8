"""Which tools a server offers: few are best, since every one costs the model that reads about it."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.agent.tools import TOOLS, Tool
from commonplace.errors import CommonplaceError
from commonplace.surfaces.mcp.connector import CONNECTOR_TOOLS


def chosen_tools(names: Sequence[str] | None, *, read_only: bool, connector: bool) -> tuple[Tool, ...]:
    """The tools that were named, else all of ours; for a connector its two, and those that were named."""
    known = {tool.name: tool for tool in (*TOOLS, *CONNECTOR_TOOLS)}
    for name in names or ():
        if name not in known:
            raise CommonplaceError(f"there is no tool `{name}`", hint=f"choose from {', '.join(known)}")
        if read_only and not known[name].is_read_only:
            raise CommonplaceError(
                f"`{name}` writes, and --read-only was given", hint="leave one of them out"
            )
    wanted = {*(names or ()), *(tool.name for tool in CONNECTOR_TOOLS if connector)}
    if names is None and not connector:
        wanted.update(tool.name for tool in TOOLS if tool.is_read_only or not read_only)
    return tuple(tool for tool in known.values() if tool.name in wanted)
