"""What is known of the entry memory: how many entries, where, and whether what finds them again is in order."""

from __future__ import annotations

import os
from contextlib import closing

from plainmind.base.errors import PlainmindError
from plainmind.guests.entries.config import EntryConfig
from plainmind.guests.entries.place import entry_folder, entry_index_folder, has_entries, require_entries
from plainmind.memory.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def status_facts(memory: Memory, *, deep: bool) -> dict[str, Any]:
    """What `status` says of the entry memory."""
    return {"entries": entry_status(memory, deep=deep)}


def entry_status(memory: Memory, *, deep: bool) -> dict[str, Any] | None:
    """Facts from the file of entries alone, `deep` also from their index; None when there are none and they are off.

    What is wrong is `problem`, with a `hint`; counts that nobody knows are None.
    """
    wanted = memory.settings.section(EntryConfig)
    if not wanted.enabled and not has_entries(memory):
        return None
    from plainmind.guests.entries.entry_file import EntryFile

    file = EntryFile(entry_folder(memory))
    facts: dict[str, Any] = {
        "enabled": wanted.enabled,
        "driver": wanted.driver,
        "path": file.path,
        "entries": None,
        "waiting": None,
        "unreadable": None,
        "problem": None,
        "hint": None,
    }
    try:
        _, entries = file.read()
        waiting = sum(entry.is_waiting for entry in entries.values())
        facts |= {"entries": len(entries) - waiting, "waiting": waiting, "unreadable": file.unreadable()}
        require_entries(memory.settings)
        if deep:
            facts["index"] = _index(memory, {entry.id for entry in entries.values() if not entry.is_waiting})
    except PlainmindError as error:
        facts |= {"problem": str(error), "hint": error.hint}
        facts |= {"index": {"healthy": False}} if deep else {}
    return facts


def _index(memory: Memory, kept: set[str]) -> dict[str, Any]:
    """What their index says, without bringing it up to date: the next recall does that."""
    folder = entry_index_folder(memory)
    if not os.path.isdir(folder):
        return {"healthy": True, "made": False, "behind": len(kept), "recovered": None}
    from plainmind.index.store import open_store

    with closing(open_store(memory.settings.section(EntryConfig).driver, folder=folder)) as store:
        with store.reading() as reader:
            is_made = reader.fingerprint() is not None
            known = {path for _, path in reader.files()}
        recovered = store.describe().get("recovered")
    return {"healthy": True, "made": is_made, "behind": len(kept ^ known), "recovered": recovered}
