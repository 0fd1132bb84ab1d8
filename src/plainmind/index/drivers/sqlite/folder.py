"""The folder of an index: numbered generations, the pointer to the one that answers, and who may delete what.

    CURRENT              names the generation that answers, replaced as a whole
    gen-000017.sqlite    one generation (with -wal and -shm while it is in use)
    gen-000017.lock      held shared by whoever reads or builds it: only unlocked generations are deleted
    writer.lock          held by whoever changes the index or this folder
    recoveries.json      when damage was found, and what it was
    bad-000016.sqlite    the last damaged generation, kept for a look at it

A database is never renamed over another one: a process that has the old file open would go on with a log
that belongs to neither.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from plainmind.base.errors import IndexCorrupt
from plainmind.base.pattern import pattern
from plainmind.files.system import SYSTEM, HeldLock, explain_errors, hold_lock, make_folders, try_lock

_GENERATION = pattern(r"gen-(\d{6,18})\.(?:sqlite|lock)")
_POINTER = pattern(r"gen-(\d{6,18})\n")
_BAD = pattern(r"bad-\d+\.sqlite")
_WRITER_TIMEOUT_S = 10.0
_WITH_LOGS = ("-wal", "-shm", "-journal", "")

Signature = tuple[int, int, int]


class IndexFolder:
    """Names, the pointer, and garbage. Methods that say so need the writer lock."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.recoveries = os.path.join(self.path, "recoveries.json")
        self._pointer = os.path.join(self.path, "CURRENT")
        self._writer = os.path.join(self.path, "writer.lock")

    def make(self) -> None:
        """Make the folder, private to the user, if it is not there."""
        with explain_errors("make", self.path):
            make_folders(SYSTEM, self.path)

    def database(self, number: int) -> str:
        """The file of a generation."""
        return os.path.join(self.path, f"gen-{number:06d}.sqlite")

    def writer_lock(self, operation: str) -> AbstractContextManager[None]:
        """Wait to be the only one who changes the index."""
        return hold_lock(self._writer, operation=operation, timeout_s=_WRITER_TIMEOUT_S)

    def try_writer_lock(self, operation: str) -> HeldLock | None:
        """Be the only one who changes the index, if that is possible at once."""
        return try_lock(self._writer, operation=operation)

    def share(self, number: int) -> HeldLock | None:
        """Keep a generation from being deleted; None when somebody is just deleting it."""
        return try_lock(self._lock(number), operation="read the index", shared=True)

    def signature(self) -> Signature | None:
        """What changes whenever another generation is published; None before the first."""
        with explain_errors("look at", self._pointer):
            try:
                found = os.stat(self._pointer)
            except FileNotFoundError:
                return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def current(self) -> int | None:
        """The generation that answers; None before the first. Raises IndexCorrupt for a damaged pointer."""
        with explain_errors("read", self._pointer):
            try:
                with open(self._pointer, "rb") as file:
                    content = file.read(64)
            except FileNotFoundError:
                return None
        match = _POINTER.fullmatch(content.decode("latin-1"))
        if match is None:
            raise IndexCorrupt("the pointer to the index is damaged", hint="run `plainmind sync`")
        return int(match[1])

    def numbers(self) -> list[int]:
        """Every generation of which something is left, oldest first."""
        with explain_errors("list", self.path):
            found = {
                int(match[1]) for name in os.listdir(self.path) if (match := _GENERATION.fullmatch(name))
            }
        return sorted(found)

    def next_number(self) -> int:
        """A number that was not used before. Needs the writer lock."""
        try:
            current = self.current() or 0
        except IndexCorrupt:
            current = 0
        return max([current, *self.numbers()]) + 1

    def publish(self, number: int) -> None:
        """Let a complete generation answer from now on, for every process. Needs the writer lock."""
        from plainmind.files.atomic import write_atomically

        write_atomically(self._pointer, f"gen-{number:06d}\n".encode())

    def collect(self) -> None:
        """Delete what no process uses: old generations, half-built ones of the dead. Needs the writer lock."""
        from plainmind.files.atomic import remove_abandoned

        current = self.current()
        for number in self.numbers():
            if number != current:
                self.delete(number)
        for path in (self._pointer, self.recoveries):
            remove_abandoned(path, SYSTEM)

    def delete(self, number: int) -> bool:
        """Delete one generation unless somebody uses it. Needs the writer lock."""
        with self._alone_with(number) as alone:
            if alone:
                with explain_errors("delete", self.database(number)):
                    _delete_database(self.database(number))
                    os.unlink(self._lock(number))
        return alone

    def set_aside(self, number: int) -> None:
        """Keep a damaged generation, unless somebody uses it still, as the only bad one. Needs the writer lock."""
        with self._alone_with(number) as alone:
            if not alone:
                return
            self.delete_bad()
            name = self.database(number)
            with explain_errors("rename", name):
                for suffix in _WITH_LOGS:
                    with suppress(FileNotFoundError):
                        os.rename(name + suffix, self._bad(number) + suffix)
                os.unlink(self._lock(number))

    def bad(self) -> list[str]:
        """The names of damaged databases that are kept."""
        return sorted(name for name in os.listdir(self.path) if _BAD.fullmatch(name))

    def delete_bad(self) -> None:
        """Delete damaged databases. Needs the writer lock."""
        for name in self.bad():
            with explain_errors("delete", name):
                _delete_database(os.path.join(self.path, name))

    @contextmanager
    def _alone_with(self, number: int) -> Iterator[bool]:
        lock = try_lock(self._lock(number), operation="delete an old index")
        try:
            yield lock is not None
        finally:
            if lock is not None:
                lock.release()

    def _bad(self, number: int) -> str:
        return os.path.join(self.path, f"bad-{number:06d}.sqlite")

    def _lock(self, number: int) -> str:
        return os.path.join(self.path, f"gen-{number:06d}.lock")


def _delete_database(path: str) -> None:
    for suffix in _WITH_LOGS:  # the database last: logs without it are found again by nobody
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)
