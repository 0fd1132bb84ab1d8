"""How much space everything takes that is kept for one memory, and how much it may take at most."""

from __future__ import annotations

import os

from plainmind.config.settings import Settings
from plainmind.files.tombstones import COMPACT_ABOVE_BYTES
from plainmind.memory.wiring import Parts


def sizes_of(parts: Parts) -> dict[str, int]:
    """Measure what is on disk, in bytes; what is not there takes none."""
    places = parts.places
    return {
        "workspaceBytes": sum(found.size for found in parts.workspace.discover().files),
        "transcriptsBytes": sum(
            found.size
            for source in parts.more_sources
            if source.source == "sessions"
            for found in source.discover().files
        ),
        "indexBytes": bytes_under(places.index),
        "cacheBytes": bytes_under(places.cache) + bytes_under(places.cache + "-wal"),
        "historyBytes": bytes_under(places.history),
        "tombstonesBytes": bytes_under(places.tombstones),
    }


def bounds_of(settings: Settings) -> dict[str, int]:
    """How large each may grow before old things go, by the same names.

    Neither the workspace nor transcripts are here: they are not ours to cut; nor is the index, which follows them.
    """
    return {
        "cacheBytes": settings.cache.max_bytes,
        "historyBytes": settings.history.max_bytes,
        "tombstonesBytes": COMPACT_ABOVE_BYTES,  # more only within the day that they are needed
    }


def bytes_under(path: str) -> int:
    """How much space a file, or all files of a folder, take; what vanishes meanwhile counts nothing."""
    if os.path.isfile(path):
        return os.path.getsize(path)
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue
    return total
