"""What the figures were measured on: processor, versions, and how fast its memory can be read."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Mapping
from importlib import metadata, util

BYTES_READ = 256 * 1024 * 1024  # more than any cache holds
_PACKAGES = ("plainmind", "apsw", "numpy", "simsimd", "sqlite-vec", "tantivy", "usearch", "faiss-cpu")


def machine() -> Mapping[str, object]:
    """Facts about this computer."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memoryBytes": _memory_bytes(),
    }


def versions() -> Mapping[str, str]:
    """Versions of everything that was measured."""
    import apsw

    found = {"python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def is_installed(module: str) -> bool:
    """Whether a module could be imported, without doing it."""
    return module in sys.modules or util.find_spec(module) is not None


def read_bandwidth(size: int = BYTES_READ) -> float:
    """Bytes a second that one core reads, at best: no search that looks at every vector can be faster."""
    import numpy as np

    numbers = np.ones(size // 8, dtype=np.int64)
    best = 0.0
    for _ in range(6):
        started = time.perf_counter()
        np.bitwise_or.reduce(numbers)
        best = max(best, numbers.nbytes / (time.perf_counter() - started))
    return best


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
