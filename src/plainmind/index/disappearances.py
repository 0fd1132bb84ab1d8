"""Remembers between syncs which files went missing together, so that an unmounted disk erases nothing."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from plainmind.base.model import Source
from plainmind.index.plan import Disappearance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Disappearances:
    """One small file beside the index."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "missing.json")

    def read(self, source: Source) -> Disappearance | None:
        """What was missing at the last look; None also when the note about it cannot be read."""
        entry = self._entries().get(source)
        with suppress(KeyError, TypeError, ValueError):
            if entry is not None:
                return Disappearance(frozenset(map(str, entry["paths"])), float(entry["seenAt"]))
        return None

    def write(self, source: Source, disappearance: Disappearance | None) -> None:
        """Remember for the next look; None forgets."""
        entries = self._entries()
        if disappearance is None:
            if entries.pop(source, None) is None:
                return
        else:
            entries[source] = {"paths": sorted(disappearance.paths), "seenAt": disappearance.seen_at}
        from plainmind.files.atomic import write_atomically

        write_atomically(self._path, json.dumps(entries).encode())

    def _entries(self) -> dict[str, Any]:
        try:
            with open(self._path, encoding="utf-8") as file:
                entries = json.load(file)
        except (FileNotFoundError, ValueError):
            # Losing this note only starts the minute of grace anew.
            return {}
        return entries if isinstance(entries, dict) else {}
