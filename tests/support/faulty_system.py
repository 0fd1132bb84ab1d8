"""An operating system that fails on request: the n-th call, with the error of choice."""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable
from typing import Any

from plainmind.files.system import System

SYNCS = frozenset({"fsync", "fdatasync", "fsync_folder"})
# `lseek` to the current position of an open plain file has no way to fail.
CANNOT_FAIL = frozenset({"position"})


class FaultySystem(System):
    """Real files, with faults. Syncs are counted but not done, which no test of these can notice.

    `fail_at` counts the calls that `only` names (all of them by default), from 1; 0 never fails. `short`
    makes the chosen call a write of half the bytes. `sticky` makes every call after it fail as well. `before`
    is told the name and number of every call before it happens.
    """

    def __init__(
        self,
        *,
        fail_at: int = 0,
        code: int = 0,
        only: frozenset[str] | None = None,
        short: bool = False,
        sticky: bool = False,
        before: Callable[[str, int], None] | None = None,
    ) -> None:
        self.calls: list[str] = []
        self.failed: str | None = None
        self._fail_at = fail_at
        self._code = code
        self._only = frozenset({"write"}) if short else only
        self._short = short
        self._sticky = sticky
        self._before = before
        self._counted = 0

    def perform(self, name: str, *arguments: Any) -> Any:
        self.calls.append(name)
        if self._before is not None:
            self._before(name, len(self.calls))
        if self._is_due(name):
            self.failed = self.failed or name
            if self._short:
                fd, data = arguments
                return os.write(fd, bytes(data)[: max(1, len(data) // 2)])
            if name == "close":
                os.close(*arguments)  # a close that reports an error has closed all the same
            raise OSError(self._code, os.strerror(self._code))
        if name in SYNCS:
            return None
        return getattr(System, name)(self, *arguments)

    def _is_due(self, name: str) -> bool:
        if not self._fail_at or name in CANNOT_FAIL or (self._only is not None and name not in self._only):
            return False
        self._counted += 1
        return self._counted == self._fail_at or (self._sticky and self._counted > self._fail_at)


def _performing(name: str) -> Callable[..., Any]:
    def call(self: FaultySystem, *arguments: Any) -> Any:
        return self.perform(name, *arguments)

    return call


for _name, _ in inspect.getmembers(System, inspect.isfunction):
    if not _name.startswith("_"):
        setattr(FaultySystem, _name, _performing(_name))


# By name: how to make the system whose call number n fails in this way.
FAULTS: dict[str, Callable[[int], FaultySystem]] = {
    **{
        errno.errorcode[code]: lambda n, code=code: FaultySystem(fail_at=n, code=code)  # type: ignore[misc]
        for code in (
            errno.ENOSPC,
            errno.EIO,
            errno.EDQUOT,
            errno.EROFS,
            errno.EACCES,
            errno.EMFILE,
            errno.EINTR,
        )
    },
    "short write": lambda n: FaultySystem(fail_at=n, short=True),
    "failing sync": lambda n: FaultySystem(fail_at=n, code=errno.EIO, only=SYNCS),
    "disk dies": lambda n: FaultySystem(fail_at=n, code=errno.EIO, sticky=True),
}
