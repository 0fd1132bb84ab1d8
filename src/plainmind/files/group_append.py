"""Adding lines to a JSONL file that many write at once: one write and one sync for all that arrive together.

The promise is that of `append.py`: what `add` returned for is in the file exactly once and on the disk. The lock is
held for the write and not for the sync: processes wait for the disk side by side, and it serves them all at once.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from weakref import WeakSet

from plainmind.base.errors import LockTimeout, NotFound, PathNotAllowed, PlainmindError, StorageFailure
from plainmind.base.value import record
from plainmind.files.append import is_whole_json, put_aside
from plainmind.files.jsonl import MAX_LINE_BYTES, end_of_last_line, lines_holding
from plainmind.files.system import (
    SYSTEM,
    System,
    explanation,
    hold_lock,
    lock_path_for,
    read_range,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TypeAlias


# Given a descriptor and a size: which record the next one follows.
ReadLast: TypeAlias = Callable[[int, int], "str | None"]
# Given the two halves of a line and the record that it follows: the line with its newline.
Join: TypeAlias = Callable[["tuple[bytes, bytes | memoryview]", "str | None"], bytes]
# Given a line that holds a name: whether it is the record of that name.
IsRecord: TypeAlias = Callable[[bytes, str], bool]

# A program that writes without our lock may be in the middle of a line: it is given this long to end it.
_PATIENCE_S = 0.02

_appenders: WeakSet[GroupAppender] = WeakSet()


@record
class Addition:
    """One line to add: made only when it is known which record it follows."""

    name: str
    halves: tuple[bytes, bytes | memoryview]
    leads_to: str | None  # what the next record follows: mostly `name`
    look_back: int | None = 0  # in how many of the last bytes an earlier try may have left it; None: anywhere
    already_there: bool = False
    error: BaseException | None = None
    is_done: bool = False


class GroupAppender:
    """Adds to one file, which must exist; safe to share between threads."""

    def __init__(
        self,
        path: str,
        *,
        state_dir: str,
        read_last: ReadLast,
        join: Join,
        is_record: IsRecord,
        system: System = SYSTEM,
        timeout_s: float = 10.0,
    ) -> None:
        self.path = path
        self._lock = StandingLock(
            lock_path_for(state_dir, path),
            operation=f"append to {os.path.basename(path)}",
            timeout_s=timeout_s,
            system=system,
        )
        self._fd = -1  # stays open from one addition to the next
        self._file = (0, 0)  # which file that is
        self._read_last = read_last
        self._join = join
        self._is_record = is_record
        self._system = system
        self._timeout_s = timeout_s
        self._named: tuple[int, int] | None = None  # the file whose name is known to be on the disk
        self.start_anew()
        _appenders.add(self)

    def start_anew(self) -> None:
        """Forget the threads that are at it: a forked child has none of them, and would wait for them."""
        self._guard = threading.Lock()  # of `_waiting`
        self._turn = threading.Lock()  # held by the thread that writes for all
        self._waiting: list[Addition] = []
        self._last: tuple[tuple[int, int], int, str | None] | None = None  # file, its size, last record

    def __del__(self) -> None:
        self.close()

    def add(self, additions: Sequence[Addition]) -> None:
        """Add lines in their order, durably, all or none; `already_there` tells those that an earlier try had added.

        Raises NotFound when the file is gone, StorageFailure, WorkspaceError, PathNotAllowed or LockTimeout: then
        nothing is acknowledged, and trying again with the same names never doubles a line.
        """
        with self._guard:
            self._waiting.extend(additions)
        # The thread that leads waits for the lock of the file itself; behind it, one more round can be in front of us.
        if not self._turn.acquire(timeout=3 * self._timeout_s):
            with self._guard:
                self._waiting = [addition for addition in self._waiting if addition not in additions]
            raise LockTimeout(
                f"could not append to {self.path} within {3 * self._timeout_s:g} s: process {os.getpid()} itself "
                "holds it in another thread",
                hint="the disk may hang; nothing was acknowledged",
            )
        try:
            if not additions[0].is_done:
                self._add_all_waiting()
        finally:
            self._turn.release()
        for addition in additions:
            if addition.error is not None:
                raise _copy_of(addition.error)

    def _add_all_waiting(self) -> None:
        with self._guard:
            batch, self._waiting = self._waiting, []
        deadline = time.monotonic() + self._timeout_s
        error: BaseException | None = None
        try:
            if not self._try_once(batch, deadline):
                self._try_again(batch, deadline)
        except BaseException as failure:
            error = failure
            if not isinstance(failure, PlainmindError):
                raise
        finally:
            for addition in batch:
                addition.is_done, addition.error = True, error

    def _try_again(self, batch: list[Addition], deadline: float) -> None:
        for addition in batch:  # the file that has the name now may hold the line, anywhere
            addition.look_back = None
        while not self._try_once(batch, deadline):
            if time.monotonic() > deadline:
                raise StorageFailure(
                    f"could not append to {self.path}: another program keeps replacing the file",
                    hint="find out which program saves it again and again; nothing was acknowledged",
                )

    def _try_once(self, batch: list[Addition], deadline: float) -> bool:
        """Add to the file that now has the name; False when it then lost the name, or was cut."""
        is_kept = False
        try:
            self._lock.take()
            try:
                status = self._open()
                start, payload = self._write(status, batch, deadline)
            finally:
                self._lock.let_go()
            is_kept = self._make_durable(start, payload)
        except OSError as error:
            raise explanation(error, "append to", self.path) from error
        finally:
            if not is_kept:
                self.close()
        return is_kept

    def close(self) -> None:
        """Close the file; the next addition opens it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):  # what was acknowledged is synced and read back
                self._system.close(fd)

    def _open(self) -> os.stat_result:
        """Make sure that the open file is the one that has the name, and describe it."""
        try:
            if self._fd >= 0:
                status = self._system.stat(self.path)
                if (status.st_dev, status.st_ino, status.st_nlink) == (*self._file, 1):
                    return status  # a plain file when it was opened, and that never changes
                self.close()
            self._fd = self._system.open(self.path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK)
        except FileNotFoundError:
            raise NotFound(
                f"{self.path} is gone", hint="it was deleted or archived meanwhile; nothing was written"
            ) from None
        status = self._system.fstat(self._fd)
        _refuse_links(status, self.path)
        self._file = (status.st_dev, status.st_ino)
        return status

    def _write(self, status: os.stat_result, batch: list[Addition], deadline: float) -> tuple[int, bytes]:
        """Write what is missing of a batch behind the last whole line; where it stands and what it is."""
        if self._last is not None and self._last[:2] == (self._file, status.st_size):
            (_, size, last), newline = self._last, b""
        else:
            size, newline = self._mend(deadline)
            last = self._read_last(self._fd, size)
        lines, last = self._render(size, batch, last)
        payload = newline + b"".join(lines) if lines else b""
        self._last = None
        if payload and (written := self._system.write(self._fd, payload)) != len(payload):
            self._refuse_half(size, written, len(payload))
        self._last = (self._file, size + len(payload), last)
        return size, payload

    def _render(self, size: int, batch: list[Addition], last: str | None) -> tuple[list[bytes], str | None]:
        lines: list[bytes] = []
        names: set[str] = set()
        for addition in batch:
            # Most have a name that is new: it need not be looked for.
            addition.already_there = addition.name in names or (
                addition.look_back != 0 and self._holds(size, addition)
            )
            if not addition.already_there:
                lines.append(self._join(addition.halves, last))
                last = addition.leads_to
                names.add(addition.name)
        return lines, last

    def _holds(self, size: int, addition: Addition) -> bool:
        start = 0
        if addition.look_back is not None:
            start = end_of_last_line(self._fd, max(0, size - addition.look_back), system=self._system)
        found = lines_holding(self._fd, addition.name.encode(), start=start, stop=size, system=self._system)
        return any(self._is_record(line.data, addition.name) for line in found)

    def _mend(self, deadline: float) -> tuple[int, bytes]:
        """Mend a last line without newline: the size to append at, and the newline that a whole line lacks."""
        fd = self._fd
        while True:
            size = self._system.fstat(fd).st_size
            start = end_of_last_line(fd, size, system=self._system)
            if start == size:
                return size, b""
            if size - start > MAX_LINE_BYTES:
                return size, b"\n"  # too long to be judged: it stays, and readers pass over it
            line = read_range(self._system, fd, start, size)
            if is_whole_json(line):
                return size, b"\n"
            time.sleep(_PATIENCE_S)
            if self._system.fstat(fd).st_size == size or time.monotonic() > deadline:
                put_aside(self.path, line, self._system)
                self._system.ftruncate(fd, start)
                return start, b""

    def _refuse_half(self, start: int, written: int, length: int) -> NoReturn:
        """Take back what was written in one call that did not write all; a writer without our lock can prevent it."""
        undone = self._take_back(start, written)
        raise StorageFailure(
            f"could not append to {self.path}: the disk took only {written} of {length} bytes",
            hint="free some space; "
            + ("nothing was written" if undone else "a part of the text is still at its end"),
        )

    def _make_durable(self, start: int, payload: bytes) -> bool:
        """Sync the bytes, and the name once a file, then look whether they are still there.

        A failed sync is never tried again: the kernel may have dropped the pages and would then report success.
        """
        try:
            self._system.fdatasync(self._fd)
            if self._named != self._file:
                self._system.fsync_folder(os.path.dirname(self.path) or ".")
                self._named = self._file
            try:
                named = self._system.stat(self.path)
            except FileNotFoundError:
                return False
            # Not read back: reading what was just written makes ext4 journal the time of access, at a third of a sync.
            is_ours = (named.st_dev, named.st_ino) == self._file
            return is_ours and named.st_size >= start + len(payload)
        except OSError as error:
            outcome = self._after_failed_sync(start, len(payload))
            raise explanation(error, "append to", self.path, outcome=outcome) from error

    def _after_failed_sync(self, start: int, length: int) -> str:
        """Cut off what we wrote, if it is still the last thing in the file: the next try writes it anew."""
        self._last = None
        try:
            self._lock.take()
        except PlainmindError:
            undone = False
        else:
            undone = self._take_back(start, length)
            self._lock.let_go()
        return "nothing was written" if undone else "the record may be in the file, and is not acknowledged"

    def _take_back(self, start: int, length: int) -> bool:
        """Cut off what we wrote, unless another process has written behind it."""
        try:
            if length and self._system.fstat(self._fd).st_size == start + length:
                self._system.ftruncate(self._fd, start)
                return True
        except OSError:
            return False  # the error that brought us here is the one to report
        return not length


def _refuse_links(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise PathNotAllowed(
            f"{path} is not a plain file with one name",
            hint="make it a file of its own: folders, devices and hard links are not written to",
        )


def _start_anew_in_child() -> None:
    for appender in list(_appenders):
        appender.start_anew()


os.register_at_fork(after_in_child=_start_anew_in_child)


def _copy_of(error: BaseException) -> BaseException:
    """Give each thread an error of its own: raising one in several mixes up their tracebacks."""
    if isinstance(error, PlainmindError):
        copy = type(error)(*error.args, hint=error.hint)
        copy.__cause__ = error.__cause__
        return copy
    return StorageFailure(
        f"the thread that wrote for this one was stopped: {error!r}", hint="nothing was acknowledged"
    )


# --- a lock that one process takes thousands of times ---

_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB

_standing_locks: WeakSet[StandingLock] = WeakSet()


class StandingLock:
    """The same lock as `hold_lock` takes, faster when no other process has had it since; for one thread at a time.

    Its file stays open and signed, and taking it is two calls.
    """

    def __init__(self, path: str, *, operation: str, timeout_s: float, system: System) -> None:
        self._path = path
        self._operation = operation
        self._timeout_s = timeout_s
        self._system = system
        self._fd = -1
        self._signed = (0, 0, 0)  # the file as it was when we had written our name in it
        self._waited: AbstractContextManager[object] | None = None
        _standing_locks.add(self)

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
                        return  # with our name in it still, for a process that waits in vain
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


def _close_locks_in_child() -> None:
    """Close what a forked child shares: it would keep the lock of a parent that is killed."""
    for lock in list(_standing_locks):
        lock.close()


os.register_at_fork(after_in_child=_close_locks_in_child)
