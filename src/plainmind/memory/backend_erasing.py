"""Taking text out of what engines have copied, also of engines and agents that are not in use now."""

from __future__ import annotations

import os
from collections.abc import Iterator

from plainmind.memory.wiring import Parts

_QMD = "qmd"


def erase_in_engines(parts: Parts, *, of_every_agent: bool) -> None:
    """Delete the copies of this workspace, or with `of_every_agent` false those of this agent's conversations.

    An engine has no way to forget a text for good; its index is made anew from the files.
    """
    if parts.backend is not None:
        parts.backend.erase()
    for folder in _folders(parts, of_every_agent=of_every_agent):
        from plainmind.guests.qmd.exports import erase_copies
        from plainmind.guests.qmd.program import Homes
        from plainmind.guests.qmd.territory import delete_index, exports_in
        from plainmind.memory.backend import Record

        delete_index(Homes.beneath(folder))
        erase_copies(exports_in(folder))
        elsewhere = Record(os.path.join(folder, "record.json"))["exports"]
        if isinstance(elsewhere, str):
            erase_copies(elsewhere)


def _folders(parts: Parts, *, of_every_agent: bool) -> Iterator[str]:
    agents = os.path.join(parts.places.home, "agents")
    workspace = os.path.basename(parts.places.index)
    if of_every_agent:
        candidates = [os.path.join(agents, agent, _QMD, workspace) for agent in _names_in(agents)]
    else:
        of_agent = os.path.join(agents, parts.loaded.settings.agent_id, _QMD)
        candidates = [os.path.join(of_agent, name) for name in _names_in(of_agent)]
    return (folder for folder in candidates if os.path.isdir(folder))


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
