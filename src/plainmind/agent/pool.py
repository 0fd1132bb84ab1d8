"""Work that somebody waits for only so long: it goes on by itself, and what it does is not lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")


class TimedOut(Exception):
    """The wait is over, the work is not."""


class Deadlines:
    """Runs work in threads and waits for each up to its deadline.

    SQLite, files and models cannot be interrupted, so that a thread whose deadline has passed runs on to its end: a
    first search that had to index everything has then done so for the next one. There are never more than `most`.
    """

    def __init__(self, most: int = 4) -> None:
        self._most = most
        self._guard = threading.Lock()
        self._running: list[threading.Thread] = []

    def run(self, work: Callable[[], T], *, seconds: float, name: str) -> T:
        """Do the work and give its result, or raise what it raised; TimedOut when it is not done in time."""
        outcome = _Outcome(work)
        # A daemon: a process that wants to end does not wait for an answer that nobody reads.
        thread = threading.Thread(target=outcome.run, name=name, daemon=True)
        with self._guard:
            self._running = [one for one in self._running if one.is_alive()]
            if len(self._running) >= self._most:
                raise TimedOut
            self._running.append(thread)
            thread.start()
        if not outcome.is_done.wait(seconds):
            raise TimedOut
        return outcome.result()  # type: ignore[return-value]  # of the work that it was made with

    def close(self, timeout_s: float = 10.0) -> None:
        """Wait for what is still running, so that the memory beneath it can be closed."""
        deadline = time.monotonic() + timeout_s
        with self._guard:
            running, self._running = self._running, []
        for thread in running:
            thread.join(max(0.0, deadline - time.monotonic()))


class _Outcome:
    """What became of some work."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._result: object = None
        self.is_done = threading.Event()

    def run(self) -> None:
        """Do it, and keep what came of it for whoever waits."""
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 (raised again where it is waited for)
            self._error = error
        finally:
            self.is_done.set()

    def result(self) -> object:
        """Give the result, or raise what the work raised."""
        if self._error is not None:
            raise self._error
        return self._result
