"""What became of memory flushes, as the registry of conversations tells."""

from __future__ import annotations

import os
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.memory import Memory


def status_facts(memory: Memory, *, deep: bool) -> dict[str, Any]:  # noqa: ARG001 (as every guest is asked)
    """What `status` says of the chat model and of the last flush."""
    chat = None
    if memory.settings.guests.get("chat.model"):  # nothing of a chat is loaded for those who have none
        from plainmind.guests.chat.access import chat_destination

        chat = chat_destination(memory.settings)
    return {"chat": chat, "lastFlush": last_flush(memory.sessions_folder())}


def last_flush(folder: str) -> dict[str, Any] | None:
    """The latest flush of any conversation in a folder, whether it worked or not; None when there was none."""
    if not os.path.isdir(folder):
        return None
    from plainmind.sessions.store import SessionStore

    flushes = [flush for row in SessionStore(folder).list() for flush in _flushes_of(row.key, row.entry)]
    return max(flushes, key=lambda flush: int(flush["at"]), default=None)


def _flushes_of(key: str, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if isinstance(entry.get("memoryFlushAt"), int):
        note = entry.get("memoryFlushNote")
        found.append({"session": key, "at": entry["memoryFlushAt"], "ok": True, "note": note})
    failure = entry.get("memoryFlushFailure")
    if isinstance(failure, dict) and isinstance(failure.get("at"), int):
        found.append({"session": key, "at": failure["at"], "ok": False, "reason": str(failure.get("reason"))})
    return found
