"""Which tools a server offers: few are best, since every one costs the model that reads about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plainmind.agent.tools import TOOLS, Tool
from plainmind.base.errors import PlainmindError
from plainmind.guests.entries.definitions import ALL_TOOLS, ENTRY_TOOLS
from plainmind.mcp.connector import CONNECTOR_TOOLS

_SETS = {"notes": TOOLS, "entries": ENTRY_TOOLS}
_OF_NOTES_ALONE = {tool.name for tool in TOOLS} - {tool.name for tool in ENTRY_TOOLS}
_OF_ENTRIES_ALONE = {tool.name for tool in ENTRY_TOOLS} - {tool.name for tool in TOOLS}


def chosen_tools(
    names: Sequence[str] | None, *, read_only: bool, connector: bool, entries: bool = False
) -> tuple[Tool, ...]:
    """The tools that were named, else all of ours; for a connector its two, and those that were named.

    `notes` and `entries` name all tools of one kind. `memory_forget` is for what the other tools are for.
    """
    wanted = _all_names(names or (), entries=entries)
    known = {tool.name: tool for tool in (*ALL_TOOLS, *CONNECTOR_TOOLS)}
    if read_only:
        _refuse_writers(names or (), known)
    if connector:
        wanted.update(tool.name for tool in CONNECTOR_TOOLS)
    elif names is None:
        wanted.update(tool.name for tool in (ALL_TOOLS if entries else TOOLS))
    if read_only:
        wanted = {name for name in wanted if known[name].is_read_only}
    return tuple(_meant(tool, wanted) for tool in known.values() if tool.name in wanted)


def has_entry_tools(tools: Sequence[Tool]) -> bool:
    """Whether any of these needs the entry memory."""
    return any(tool in ENTRY_TOOLS or (tool in ALL_TOOLS and tool not in TOOLS) for tool in tools)


def _all_names(given: Sequence[str], *, entries: bool) -> set[str]:
    known = [*dict.fromkeys(tool.name for tool in (*ALL_TOOLS, *CONNECTOR_TOOLS)), *_SETS]
    names: set[str] = set()
    for name in given:
        if name not in known:
            raise PlainmindError(f"there is no tool `{name}`", hint=f"choose from {', '.join(known)}")
        meant = {tool.name for tool in _SETS.get(name, ())} or {name}
        if not entries and (name == "entries" or meant & _OF_ENTRIES_ALONE):
            raise PlainmindError(
                f"`{name}` is of the entry memory, which is switched off",
                hint="switch it on: `plainmind config set entries.enabled true`",
            )
        names |= meant
    return names


def _meant(tool: Tool, wanted: set[str]) -> Tool:
    """Of the tools with this name the one for what the others are for."""
    if tool.name != "memory_forget" or (wanted & _OF_NOTES_ALONE and wanted & _OF_ENTRIES_ALONE):
        return tool
    those = ENTRY_TOOLS if wanted & _OF_ENTRIES_ALONE else TOOLS
    return next(one for one in those if one.name == tool.name)


def _refuse_writers(names: Sequence[str], known: Mapping[str, Tool]) -> None:
    for name in names:
        if name in known and not known[name].is_read_only:
            raise PlainmindError(f"`{name}` writes, and --read-only was given", hint="leave one of them out")
