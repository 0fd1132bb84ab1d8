"""Who may see a conversation, as the registry of sessions tells; read again when the registry has changed."""

from __future__ import annotations

import os

from plainmind.base.errors import PlainmindError
from plainmind.base.model import PRIVATE
from plainmind.notes.scopes import scope_of_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from plainmind.sessions.places import Places

# Which registry it was, and how it looked.
_Seen: TypeAlias = "tuple[str, int, int, int]"

_PREFIX = "sessions/"
_MOST_BYTES = 256 << 20


class SessionScopes:
    """Gives the scope of a transcript by its cited path. Whatever the registry does not tell is private.

    Nothing is locked and nothing repaired here: while the registry cannot be read, every conversation is its owner's.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._places: Places | None = None
        self._known: tuple[_Seen | None, dict[str, str]] = (None, {})

    def __call__(self, path: str) -> str:
        """The scope of `sessions/<file>`."""
        return self.now().get(path, PRIVATE)

    def now(self) -> Mapping[str, str]:
        """The scopes by cited path, as the registry is now; not to be changed."""
        places = self._places
        if places is None:
            from plainmind.sessions.places import Places

            places = self._places = Places(self._folder)
        registry = places.registry()
        try:
            status = os.stat(registry)
        except OSError:
            return {}
        seen = (registry, status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._known
        if known[0] != seen:
            # Kept in one step: other threads find the old pair or the new one.
            known = self._known = (seen, _read(places, registry))
        return known[1]


def _read(places: Places, registry: str) -> dict[str, str]:
    from plainmind.sessions.json5_text import read_object

    try:
        with open(registry, "rb") as file:
            sessions = read_object(file.read(_MOST_BYTES)) or {}
    except OSError:
        return {}
    scopes: dict[str, str] = {}
    for key, entry in sessions.items():
        if not isinstance(entry, dict):
            continue
        try:
            file_path = places.transcript(entry)
        except PlainmindError:
            continue
        cited = _PREFIX + os.path.relpath(file_path, places.folder)
        scope = scope_of_session(key, entry)
        # A transcript that two conversations claim is for nobody who sees only one of them.
        scopes[cited] = scope if scopes.get(cited, scope) == scope else PRIVATE
    return scopes
