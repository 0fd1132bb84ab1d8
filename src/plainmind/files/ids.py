"""Names for records: unique, and sorted by the time they were given, even when the clock jumps back."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]  # seconds since 1970
RandomBytes: TypeAlias = Callable[[int], bytes]

# No I, L, O or U: an id read aloud or copied by hand stays the same id.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_LETTER_OF_BYTE = (_ALPHABET * 8).encode()  # five bits of it
_DIGIT_OF_LETTER = str.maketrans(_ALPHABET, "0123456789abcdefghijklmnopqrstuv")
_FOLLOWING = dict(pairwise(_ALPHABET))
_CHANCE_LETTERS = 16
_CHANCE_BITS = 5 * _CHANCE_LETTERS
_LATEST_MS = (1 << 48) - 1

_guard = threading.Lock()
_last_ms = -1
_last = ""


def new_id(clock: Clock = time.time, random: RandomBytes = os.urandom) -> str:
    """Give 26 characters: 48 bits of milliseconds, 80 of chance; above every earlier id of this process."""
    global _last_ms, _last  # noqa: PLW0603 -- one sequence a process is what makes ids monotone
    ms = min(max(int(clock() * 1000), 0), _LATEST_MS)
    with _guard:
        if ms > _last_ms:
            chance = random(_CHANCE_LETTERS).translate(_LETTER_OF_BYTE).decode()
            _last = (
                f"{_PAIRS[ms >> 40]}{_PAIRS[ms >> 30 & 1023]}{_PAIRS[ms >> 20 & 1023]}"
                f"{_PAIRS[ms >> 10 & 1023]}{_PAIRS[ms & 1023]}{chance}"
            )
            _last_ms = ms
        # In the same millisecond, or after the clock went back: count on from the last one.
        elif (following := _FOLLOWING.get(_last[-1])) is not None:
            _last = _last[:-1] + following
        else:
            number = int(_last.translate(_DIGIT_OF_LETTER), 32) + 1
            _last = "".join(_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10))
            _last_ms = number >> _CHANCE_BITS
        return _last


def time_of(name: str) -> float:
    """When an id was given, in seconds since 1970. Raises ValueError for what is none."""
    return int(name[:10].translate(_DIGIT_OF_LETTER), 32) / 1000


def _start_anew() -> None:
    """Keep a forked child from counting on to the ids that its parent will give next."""
    global _guard, _last_ms
    # The guard may have been held by a thread that the child does not have.
    _guard, _last_ms = threading.Lock(), -1


os.register_at_fork(after_in_child=_start_anew)
