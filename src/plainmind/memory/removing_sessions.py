"""Deleting a conversation: its transcript, and what every index of its agent knows of it."""

from __future__ import annotations

import os

from plainmind.base.model import sha256_text
from plainmind.memory.backend_erasing import erase_in_engines
from plainmind.memory.caching import opened_cache
from plainmind.memory.other_indexes import erase_sessions_left_behind, of_other_workspaces
from plainmind.memory.wiring import Parts
from plainmind.sessions.store import SessionStore

_ALL_LINES = 1_000_000_000


def delete_everywhere(parts: Parts, store: SessionStore, name: str) -> tuple[str, ...]:
    """Remove a session, by key or id, or an archive, by its name; the paths that were cited and are no more."""
    cited = f"sessions/{os.path.relpath(store.open(name).path, store.folder)}"
    with parts.erasures.run_alone():
        hashes = _hashes_of_chunks(parts, cited)
        parts.tombstones.bury(hashes)
        store.delete(name)
        if os.path.exists(parts.places.cache):  # also where it is not used any more
            with opened_cache(parts) as cache:
                cache.forget(hashes)
        parts.store.erase("sessions", cited)
        for other in of_other_workspaces(parts):
            other.erase("sessions", cited)
        erase_sessions_left_behind(parts, [cited])
        erase_in_engines(parts, of_every_agent=False)
    return (cited,)


def _hashes_of_chunks(parts: Parts, cited: str) -> list[str]:
    """Hashes of everything that the index holds of it: what the cache may know it by."""
    with parts.store.reading() as reader:
        chunks = reader.chunks_between("sessions", cited, 1, _ALL_LINES)
    return [sha256_text(chunk.embedded_text) for chunk in chunks]
