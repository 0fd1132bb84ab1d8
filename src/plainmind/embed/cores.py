"""How many processors a model may keep busy."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Count the cores that this process may run on, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS knows no affinity
