"""The most memory that this process has had, in bytes."""

from __future__ import annotations

import resource
import sys


def peak_memory() -> int:
    """As the kernel counts it since the program began: `ru_maxrss` would begin with what the parent process had."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
