"""A lock that one process takes thousands of times: its file stays open and signed, and taking it is two calls."""

from __future__ import annotations

import fcntl
import os
from contextlib import AbstractContextManager, suppress
from weakref import WeakSet

from plainmind.files.system import System, hold_lock

_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB

_all: WeakSet[StandingLock] = WeakSet()


class StandingLock:
    """The same lock as `hold_lock` takes, faster when nobody else has had it since; for one thread at a time."""

    def __init__(self, path: str, *, operation: str, timeout_s: float, system: System) -> None:
        self._path = path
        self._operation = operation
        self._timeout_s = timeout_s
        self._system = system
        self._fd = -1
        self._signed = (0, 0, 0)  # the file as it was when we had written our name in it
        self._waited: AbstractContextManager[None] | None = None
        _all.add(self)

    def __del__(self) -> None:
        self.close()

    def take(self) -> None:
        """Take the lock; after `timeout_s` of waiting, LockTimeout names the holder. `let_go` must follow."""
        if self._fd >= 0:
            try:
                self._system.flock(self._fd, _AT_ONCE)
            except OSError:
                pass  # another has it, or the system refuses: waiting for it tells which
            else:
                try:
                    # By the descriptor, which takes a third of the time: a file that lost its name has no link left.
                    now = self._system.fstat(self._fd)
                    if now.st_nlink and (now.st_dev, now.st_ino, now.st_mtime_ns) == self._signed:
                        return  # with our name in it still, for whoever waits in vain
                except OSError:
                    pass  # the long way meets the same error, or none
                self.let_go()
        waiting = hold_lock(
            self._path, operation=self._operation, timeout_s=self._timeout_s, system=self._system
        )
        waiting.__enter__()
        self._waited = waiting
        self._remember()

    def let_go(self) -> None:
        """Let others have it."""
        if self._waited is not None:
            waited, self._waited = self._waited, None
            waited.__exit__(None, None, None)
            return
        try:
            self._system.flock(self._fd, fcntl.LOCK_UN)
        except OSError:
            self.close()  # which frees the lock as well

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):  # nothing was written through it
                self._system.close(fd)

    def _remember(self) -> None:
        """Open the file that we have just locked and signed by another descriptor."""
        self.close()
        try:
            self._fd = self._system.open(self._path, os.O_RDWR)
            status = self._system.fstat(self._fd)
            self._signed = (status.st_dev, status.st_ino, status.st_mtime_ns)
        except OSError:
            self.close()  # then the next time takes as long as this one


def _close_in_child() -> None:
    """Close what a forked child shares: it would keep the lock of a parent that is killed."""
    for lock in list(_all):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)
