"""Locks between processes and threads: `flock` on small files of their own, which are never deleted."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import TracebackType

from plainmind.base.errors import LockTimeout
from plainmind.files.failures import explaining
from plainmind.files.system import SYSTEM, System, make_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05
_SIGNATURE_BYTES = 512

# Guards `_open_locks` and is taken around every fork: a child finds each lock open and listed, or neither.
_fork_guard = threading.Lock()
_open_locks: set[HeldLock] = set()


class HeldLock:
    """A lock that is held until `release()`, the end of its `with` block, or the death of the process."""

    __slots__ = ("fd", "path", "system")

    def __init__(self, path: str, fd: int, system: System) -> None:
        self.path = path
        self.fd = fd
        self.system = system

    def release(self) -> None:
        """Let go; more than once does no harm."""
        with _fork_guard:
            _open_locks.discard(self)
            fd, self.fd = self.fd, -1
            if fd < 0:
                return
            # Unlocked before it is closed: a program that another thread just starts may share it.
            # Neither error matters: each call frees the lock, and the descriptor is gone either way.
            with suppress(OSError):
                self.system.flock(fd, fcntl.LOCK_UN)
            with suppress(OSError):
                self.system.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def close_in_child(self) -> None:
        """Close the child's copy; unlocking it would unlock the parent's."""
        fd, self.fd = self.fd, -1
        os.close(fd)


def lock_path_for(state_dir: str, path: str) -> str:
    """Name the lock of a file: outside the workspace, and the same for every spelling of the file's path."""
    folder, name = os.path.split(path)
    spelled = os.path.join(os.path.realpath(folder), name).casefold()
    if not spelled.isascii():
        # Twins that differ only by Unicode form may be one file (macOS) or two: one lock is right for both.
        import unicodedata

        spelled = unicodedata.normalize("NFC", spelled)
    import hashlib  # loads OpenSSL, 2 ms that a search does not pay: it locks by other names

    digest = hashlib.sha256(os.fsencode(spelled)).hexdigest()
    return os.path.join(state_dir, "locks", f"{digest[:32]}.lock")


@contextmanager
def hold_lock(
    path: str,
    *,
    operation: str,
    timeout_s: float = 10.0,
    shared: bool = False,
    system: System = SYSTEM,
) -> Iterator[None]:
    """Hold the lock during a block; after `timeout_s` of waiting, LockTimeout names the holder."""
    with explaining("lock", path):
        held = _wait_for_lock(path, operation, timeout_s, system, shared=shared)
    try:
        yield
    finally:
        held.release()


def try_lock(path: str, *, operation: str, shared: bool = False, system: System = SYSTEM) -> HeldLock | None:
    """Take the lock if that is possible at once."""
    with explaining("lock", path):
        while True:
            lock = _open_lock(path, system, shared=shared)
            taken = _taken(lock, operation, shared=shared)
            if taken is not None:
                return lock if taken else None


def _wait_for_lock(path: str, operation: str, timeout_s: float, system: System, *, shared: bool) -> HeldLock:
    deadline = time.monotonic() + timeout_s
    pause = _FIRST_PAUSE_S
    while True:
        lock = _open_lock(path, system, shared=shared)
        taken = _taken(lock, operation, shared=shared)
        if taken:
            return lock
        if taken is None:
            continue
        if time.monotonic() + pause > deadline:
            raise LockTimeout(
                f"could not lock {path} for `{operation}` within {timeout_s:g} s: {_holder(path)} holds it",
                hint="wait for it to finish, or end it if it hangs; the lock goes away with its process",
            )
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def _open_lock(path: str, system: System, *, shared: bool) -> HeldLock:
    flags = os.O_RDWR | os.O_CREAT
    while True:
        with _fork_guard:
            try:
                lock = HeldLock(path, system.open(path, flags), system)
            except FileNotFoundError:
                pass
            except OSError as error:
                if not (shared and flags & os.O_CREAT and error.errno in {errno.EACCES, errno.EROFS}):
                    raise
                flags = os.O_RDONLY  # whoever may only read can still keep writers away
                continue
            else:
                _open_locks.add(lock)
                return lock
        if not flags & os.O_CREAT:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        make_folders(system, os.path.dirname(path))


def _taken(lock: HeldLock, operation: str, *, shared: bool) -> bool | None:
    """Try once: True when held, False when another holds it, None when the file was deleted: open anew."""
    try:
        lock.system.flock(lock.fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        if not _still_there(lock):
            lock.release()
            return None
        if not shared:
            _sign(lock, operation)
    except BlockingIOError:
        lock.release()
        return False
    except BaseException:
        lock.release()
        raise
    return True


def _still_there(lock: HeldLock) -> bool:
    """Make sure that the file has its name still: a lock on a deleted file would keep nobody out."""
    try:
        named = lock.system.stat(lock.path)
    except FileNotFoundError:
        return False
    return os.path.samestat(named, lock.system.fstat(lock.fd))


def _sign(lock: HeldLock, operation: str) -> None:
    """Write down who holds the lock, for the message of whoever waits in vain; nothing is decided by it."""
    text = json.dumps({"pid": os.getpid(), "boot": _boot_id(), "operation": operation[:60]})
    with suppress(OSError):  # a full disk must not keep anyone from locking
        # Written over the last one at a fixed length: ext4 flushes a truncated file when it is closed,
        # which makes a lock ten times as slow.
        lock.system.write(lock.fd, text.encode().ljust(_SIGNATURE_BYTES))


def _holder(path: str) -> str:
    try:
        with open(path, "rb") as file:
            signed = json.loads(file.read(_SIGNATURE_BYTES))
        pid, boot, operation = int(signed["pid"]), str(signed["boot"]), str(signed["operation"])
        # A text that a dead process left behind says nothing about who holds the lock now: probably a reader.
        alive = boot == _boot_id() and _is_alive(pid)
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    return f"process {pid} (`{operation}`)" if alive else "another process"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's
    return True


@cache
def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _release_in_child() -> None:
    """Close the locks that a forked child shares: it would keep them after its parent let go."""
    for lock in _open_locks:
        lock.close_in_child()
    _open_locks.clear()
    _fork_guard.release()


os.register_at_fork(
    before=_fork_guard.acquire, after_in_parent=_fork_guard.release, after_in_child=_release_in_child
)
