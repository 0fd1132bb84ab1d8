"""What this process takes of the system: open files, threads and memory, each with its bound where there is one."""

from __future__ import annotations

import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def footprint() -> Mapping[str, int]:
    """Facts for `status`; what the system does not tell is left out."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    facts = {"threads": threading.active_count()}
    # Listing it opens one more.
    facts |= _listed("openFiles", "/proc/self/fd", less=1) or _listed("openFiles", "/dev/fd", less=1)
    if soft != resource.RLIM_INFINITY:
        facts["maxOpenFiles"] = soft
    return (
        facts | _resident() | {"peakResidentBytes": _peak(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)}
    )


def _listed(name: str, folder: str, *, less: int) -> dict[str, int]:
    try:
        return {name: len(os.listdir(folder)) - less}
    except OSError:
        return {}


def _resident() -> dict[str, int]:
    try:
        with open("/proc/self/statm", "rb") as file:
            return {"residentBytes": int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")}
    except OSError:
        return {}


def _peak(max_rss: int) -> int:
    """Linux counts kilobytes, macOS bytes."""
    import sys

    return max_rss if sys.platform == "darwin" else max_rss * 1024
