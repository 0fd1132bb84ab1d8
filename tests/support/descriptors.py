"""Which files of a folder this process has open: other tests' threads may open and close their own meanwhile."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def open_in(folder: Path) -> list[str]:
    """The paths of the open files and folders below `folder`, once for each descriptor."""
    inside = os.path.realpath(folder)
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            if path == inside or path.startswith(inside + os.sep):
                found.append(path)
    return sorted(found)


def watched() -> set[str]:
    """The descriptors by which this process is told of changes to files."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if "inotify" in os.readlink(f"/proc/self/fd/{descriptor}"):
                found.add(descriptor)
    return found
