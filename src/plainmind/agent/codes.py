"""Codes that let something happen after it was shown: nobody can compute one, and each works once and for minutes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from plainmind.base.model import sha256_text
from plainmind.base.value import value

_VALID_S = 600.0
_MOST = 100  # that wait at a time: whoever asks for previews without end makes older codes void, and nothing worse
_RANDOM_BYTES = 8


@value
class _Shown:
    meaning: str  # a hash of exactly what was shown, and in which conversation
    until: float


class Codes:
    """The codes of one process: no other one knows them, and with it they are gone. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._shown: dict[str, _Shown] = {}

    def make(self, *what: str) -> str:
        """A code for what is shown now. It is random: it says nothing about the text, and the text nothing about it."""
        code, now = os.urandom(_RANDOM_BYTES).hex(), self._clock()
        with self._lock:
            waiting = [one for one in self._shown.items() if one[1].until > now]
            self._shown = dict(waiting[1 - _MOST :])
            self._shown[code] = _Shown(_meaning(what), now + _VALID_S)
        return code

    def meaning_of(self, code: str) -> str:
        """What a code stands for, for one that stands for several; "" when it stands for nothing."""
        with self._lock:
            shown = self._shown.get(code)
        return shown.meaning if shown else ""

    def take(self, code: str, *what: str) -> bool:
        """Whether it was made for exactly this, not long ago, and was not taken yet."""
        code, now = code.strip(), self._clock()
        with self._lock:
            shown = self._shown.get(code)
            if shown is None or shown.until <= now or shown.meaning != _meaning(what):
                return False
            del self._shown[code]
        return True


def _meaning(what: tuple[str, ...]) -> str:
    return sha256_text("\n".join(f"{len(part)} {part}" for part in what))


def wrong_code(what: str) -> str:
    """What to say of a code that was refused; what would go is shown once more, with a new one."""
    return (
        f"This code does not stand for {what}: the memory has changed, or the code was used already, is older than"
        f" {_VALID_S / 60:.0f} minutes, or was never given here."
    )


OF_THIS_PROCESS = Codes()
