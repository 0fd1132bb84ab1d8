"""One pool of threads with deadlines: work that is no longer waited for goes on by itself, and is not lost."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Generic, TypeVar

    T = TypeVar("T")
else:  # a server answers its first question before `typing` would be there

    class Generic:
        """What stands for the kind of a result, when nobody checks it."""

        def __class_getitem__(cls, _kind: object) -> type:
            return cls

    T = None

_IDLE_S = 60.0  # how long a thread stays for the next work: it keeps what it has made, such as a stemmer


class TimedOut(Exception):
    """The wait is over, the work is not."""


class Job(Generic[T]):
    """Work that was given to a pool, and what came of it."""

    def __init__(self, work: Callable[[], T], *, has_deadline: bool, on_end: Callable[[], None]) -> None:
        self._work = work
        self._on_end = on_end
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._result: T
        self.has_deadline = has_deadline

    @property
    def is_done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._ended.is_set()

    def run(self) -> None:
        """Do the work; called by a thread of the pool."""
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 (raised again where it is waited for)
            self._error = error
        finally:
            self._ended.set()
            self._on_end()

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended; False when it takes longer."""
        return self._ended.wait(seconds)

    def result(self) -> T:
        """Give the result, or raise what the work raised."""
        if self._error is not None:
            raise self._error
        return self._result


class Pool:
    """Runs work in threads that stay for the next one.

    SQLite, files and models cannot be interrupted, so that work whose deadline has passed runs on to its end: a first
    search that had to index everything has then done so for the next one. Of such work there is never more than
    `most` at a time: what comes above that is refused at once.
    """

    def __init__(self, most: int = 4, *, name: str = "plainmind pool") -> None:
        self._name = name
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[Job[Any]] = deque()
        self._running: list[Job[Any]] = []
        self._idle = 0

    def start(
        self, work: Callable[[], T], *, has_deadline: bool = False, on_end: Callable[[], None] = lambda: None
    ) -> Job[T]:
        """Give work to a thread; `on_end` is called there when it has ended. Raises TimedOut when it is refused."""
        job: Job[T] = Job(work, has_deadline=has_deadline, on_end=on_end)
        with self._changed:
            if (
                has_deadline
                and sum(one.has_deadline and not one.is_done for one in self._running) >= self._most
            ):
                raise TimedOut
            self._running.append(job)
            self._waiting.append(job)
            if self._idle >= len(self._waiting):
                self._changed.notify_all()
            else:
                # A daemon: a process that wants to end does not wait for an answer that is read by no one.
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        return job

    def run(self, work: Callable[[], T], *, seconds: float) -> T:
        """Do work and give its result, or raise what it raised; TimedOut when it is not done in time."""
        job = self.start(work, has_deadline=True)
        if not job.wait(seconds):
            raise TimedOut
        return job.result()

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is running; False when something still is."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while self._running and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return not self._running

    def close(self, timeout_s: float = 10.0) -> None:
        """Wait for what is still running, so that the memory beneath it can be closed."""
        self.wait(timeout_s)

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            job.run()
            with self._changed:
                self._running.remove(job)
                self._changed.notify_all()

    def _next(self) -> Job[Any] | None:
        """The next work; None when there was none for a while."""
        deadline = time.monotonic() + _IDLE_S
        with self._changed:
            self._idle += 1
            try:
                while not self._waiting:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return None
                    self._changed.wait(left)
                return self._waiting.popleft()
            finally:
                self._idle -= 1
