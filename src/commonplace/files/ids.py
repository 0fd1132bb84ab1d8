"""Names for records: unique, and sorted by the time they were given, even when the clock jumps back."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]  # seconds since 1970
RandomBytes: TypeAlias = Callable[[int], bytes]

# No I, L, O or U: an id read aloud or copied by hand stays the same id.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# Two characters at a time: spelling an id is a sixth of what appending a message costs besides the disk.
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SHIFTS = tuple(range(120, -1, -10))
_CHANCE_BITS = 80
_LATEST_MS = (1 << 48) - 1

_guard = threading.Lock()
_last = 0


def new_id(clock: Clock = time.time, random: RandomBytes = os.urandom) -> str:
    """Give 26 characters: 48 bits of milliseconds, 80 of chance; above every earlier id of this process."""
    global _last  # noqa: PLW0603 -- one sequence a process is what makes ids monotone
    milliseconds = min(max(int(clock() * 1000), 0), _LATEST_MS)
    fresh = milliseconds << _CHANCE_BITS | int.from_bytes(random(_CHANCE_BITS // 8), "big")
    with _guard:
        # In the same millisecond, or after the clock went back: count on from the last one.
        _last = fresh if fresh >> _CHANCE_BITS > _last >> _CHANCE_BITS else _last + 1
        return _spelled(_last)


def _spelled(number: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


def _start_anew() -> None:
    """Keep a forked child from counting on to the ids that its parent will give next."""
    global _guard, _last
    # The guard may have been held by a thread that the child does not have.
    _guard, _last = threading.Lock(), 0


os.register_at_fork(after_in_child=_start_anew)
