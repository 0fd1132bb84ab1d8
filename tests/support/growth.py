"""Whether work grows as what it is given does, and not as its square."""

from __future__ import annotations

import time
from collections.abc import Callable

_TIMES = 10
# Even work takes ten times as long for ten times as much, and quadratic work a hundred times.
_MOST = 40
# What is done sooner is too short to be told from chance; copying all that was read for each letter takes a second.
_AT_ONCE_S = 0.05


def grows_evenly(work: Callable[[int], object], size: int = 20_000) -> bool:
    """Do the work for `size` and for ten times as much; processor time counts, which others do not use up."""
    work(size)
    once = min(_cpu_seconds(work, size) for _ in range(3))
    enough = max(once * _MOST, _AT_ONCE_S)
    return any(_cpu_seconds(work, size * _TIMES) < enough for _ in range(3))


def _cpu_seconds(work: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    work(size)
    return time.process_time() - began
