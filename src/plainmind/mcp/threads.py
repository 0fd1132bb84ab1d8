"""Calls of the blocking core from asynchronous handlers: a few at a time, and known to be over when the server ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import anyio
import anyio.to_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

# No more than a toolbox searches at a time: it refuses those above that.
_AT_ONCE = 4


class Threads:
    """Where the handlers of one server run what blocks."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(_AT_ONCE)
        self._changed = threading.Condition()
        self._running = 0

    async def run(self, call: Callable[[], T]) -> T:
        """Wait for a call. Whoever is cancelled stops waiting; the call itself goes on to its end."""
        return await anyio.to_thread.run_sync(
            self._counted, call, abandon_on_cancel=True, limiter=self._limiter
        )

    def wait(self, seconds: float) -> bool:
        """Wait until no call is running; False when one still is."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while self._running and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return not self._running

    def _counted(self, call: Callable[[], T]) -> T:
        with self._changed:
            self._running += 1
        try:
            return call()
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
