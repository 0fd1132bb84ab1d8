"""What is asked of the operating system: file calls that a test can make fail, refusals in words, and locks."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from types import TracebackType

from plainmind.base.errors import LockTimeout, PathNotAllowed, PlainmindError, StorageFailure, WorkspaceError
from plainmind.base.lazy import RLock, parse_json
from plainmind.files.safe_open import PASSAGE_FLAGS, open_real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self, TypeAlias


# A file system that cannot sync a folder says so with one of these; there is then nothing to wait for.
_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF})


# A link at the end is not followed, other programs do not inherit it, and a FIFO does not make us wait.
_SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class System:
    """Thin over `os`: no call does more than its name says, and none follows a link, not even in the middle of a path.

    What opens, makes, renames or removes a name does so in the folder's own handle, opened without following any link:
    a folder that is swapped for a link meanwhile leads nowhere. So paths are absolute and without links; what the
    operator chose is resolved before, once (`real_path`).
    """

    def __init__(self) -> None:
        if type(self) is System:
            # Straight to the system, for calls that change nothing: a step through Python takes as long again.
            self.fstat, self.stat, self.flock = os.fstat, os.lstat, fcntl.flock  # type: ignore[method-assign,assignment]

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        """Open without following a link (ELOOP), waiting for a FIFO, or giving the descriptor to other programs."""
        folder, name = _open_folder_of(path)
        try:
            return os.open(name, flags | _SAFELY, mode, dir_fd=folder)
        finally:
            os.close(folder)

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        os.close(fd)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Read up to `count` bytes at `offset`; fewer only at the end of the file."""
        return os.pread(fd, count, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write once; the result may be less than asked for."""
        return os.write(fd, data)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write once at a place of one's own; the result may be less than asked for."""
        return os.pwrite(fd, data, offset)

    def position(self, fd: int) -> int:
        """Where the last write on this descriptor ended, also when O_APPEND chose the place."""
        return os.lseek(fd, 0, os.SEEK_CUR)

    def ftruncate(self, fd: int, length: int) -> None:
        """Cut a file."""
        os.ftruncate(fd, length)

    def fstat(self, fd: int) -> os.stat_result:
        """Describe an open file."""
        return os.fstat(fd)

    def stat(self, path: str) -> os.stat_result:
        """Describe what stands at a path, a symlink as itself."""
        return os.stat(path, follow_symlinks=False)

    def fchmod(self, fd: int, mode: int) -> None:
        """Set a file's mode whatever the umask says."""
        os.fchmod(fd, mode)

    def fchown(self, fd: int, uid: int, gid: int) -> None:
        """Give a file to its owner."""
        os.fchown(fd, uid, gid)

    def replace(self, source: str, target: str) -> None:
        """Rename over the target in one step."""
        old, old_name = _open_folder_of(source)
        try:
            if os.path.dirname(source) == os.path.dirname(target):
                os.replace(old_name, os.path.basename(target), src_dir_fd=old, dst_dir_fd=old)
                return
            new, new_name = _open_folder_of(target)
            try:
                os.replace(old_name, new_name, src_dir_fd=old, dst_dir_fd=new)
            finally:
                os.close(new)
        finally:
            os.close(old)

    def touch(self, path: str) -> None:
        """Give what stands at a path the time of now."""
        folder, name = _open_folder_of(path)
        try:
            os.utime(name, dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)

    def unlink(self, path: str) -> None:
        """Remove a name."""
        folder, name = _open_folder_of(path)
        try:
            os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)

    def mkdir(self, path: str, mode: int = 0o700) -> None:
        """Make one folder."""
        folder, name = _open_folder_of(path)
        try:
            os.mkdir(name, mode, dir_fd=folder)
        finally:
            os.close(folder)

    def rmdir(self, path: str) -> None:
        """Remove an empty folder."""
        folder, name = _open_folder_of(path)
        try:
            os.rmdir(name, dir_fd=folder)
        finally:
            os.close(folder)

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all that is in it; links in it are removed, never followed."""
        import shutil

        folder, name = _open_folder_of(path)
        try:
            shutil.rmtree(name, dir_fd=folder)
        finally:
            os.close(folder)

    def symlink(self, target: str, path: str) -> None:
        """Make a link at a path."""
        folder, name = _open_folder_of(path)
        try:
            os.symlink(target, name, dir_fd=folder)
        finally:
            os.close(folder)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name in the same folder; FileExistsError when something has it."""
        folder, name = _open_folder_of(source)
        try:
            new = os.path.basename(target)
            os.link(name, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)

    def listdir(self, path: str) -> list[str]:
        """List the names in a folder."""
        folder = open_real_folder(path)
        try:
            return os.listdir(folder)
        finally:
            os.close(folder)

    def flock(self, fd: int, operation: int) -> None:
        """Lock or unlock a whole file; BlockingIOError when LOCK_NB and another holds it."""
        fcntl.flock(fd, operation)

    def fsync(self, fd: int) -> None:
        """Wait until a file, its size and its dates are on the disk."""
        _sync(fd, os.fsync)

    def fdatasync(self, fd: int) -> None:
        """Wait until a file's bytes, and what is needed to find them, are on the disk."""
        _sync(fd, getattr(os, "fdatasync", os.fsync))

    def fsync_folder(self, path: str) -> None:
        """Wait until the names in a folder are on the disk."""
        fd = open_real_folder(path)
        try:
            _sync(fd, os.fsync)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise
        finally:
            os.close(fd)


def _open_folder_of(path: str) -> tuple[int, str]:
    """Open the folder that a path's last name is in; the descriptor and the name."""
    folder, name = os.path.split(path)
    return open_real_folder(folder or os.curdir, PASSAGE_FLAGS), name


def _sync(fd: int, sync: Callable[[int], None]) -> None:
    """Flush the drive's own cache too where the system can: on macOS fsync alone stops at the drive."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        try:
            fcntl.fcntl(fd, full_sync)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise
        else:
            return
    sync(fd)


SYSTEM = System()

_BTRFS = 0x9123683E


def kind_of_file_system(folder: int) -> int:
    """The number that statfs(2) has for the file system of an open folder; -1 where that cannot be told."""
    if sys.platform != "linux":
        return -1
    import ctypes

    # Longer than the struct of any architecture; its first word is the kind.
    status = (ctypes.c_long * 32)()
    return -1 if ctypes.CDLL(None).fstatfs(folder, status) else status[0] & 0xFFFF_FFFF


def settle_names(folder: str) -> None:
    """Make sure that no name which is gone from the file system of a folder comes back after a power cut.

    After one, btrfs replays what was synced since it last wrote down everything, and a temporary name that was renamed
    meanwhile is a file again. So it is made to write down everything now; on others syncing folders has been enough.
    """
    fd = open_real_folder(folder)
    try:
        if kind_of_file_system(fd) == _BTRFS:
            _sync_file_system(fd)
    finally:
        os.close(fd)


def _sync_file_system(fd: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).syncfs(fd):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def read_range(system: System, fd: int, start: int, end: int) -> bytes:
    """Read the bytes from `start` to `end`, or to the end of the file when that comes first."""
    parts: list[bytes] = []
    while start < end and (part := system.pread(fd, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def read_file(
    path: str, *, system: System = SYSTEM, most: int | None = None, last: int | None = None
) -> bytes:
    """Read a file of ours, at most so many bytes of it, or the last so many. Raises OSError for all but plain files."""
    fd = system.open(path, os.O_RDONLY)
    try:
        status = system.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ENXIO, "it is not a plain file", path)
        size = status.st_size
        start = 0 if last is None else max(0, size - last)
        return read_range(system, fd, start, size if most is None else min(most, size))
    finally:
        system.close(fd)


def make_folders(system: System, folder: str, mode: int = 0o700) -> None:
    """Make a folder and those above it that are missing, each name durable; private to the user, unless `mode` says."""
    missing: list[str] = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for name in reversed(missing):
        try:
            system.mkdir(name, mode)
        except FileExistsError:
            continue  # another process was faster
        system.fsync_folder(os.path.dirname(name) or ".")


def write_all(system: System, fd: int, data: bytes) -> None:
    """Write everything to a file that no other process sees yet, in as many calls as it takes."""
    left = memoryview(data)
    while left:
        written = system.write(fd, left)
        if not written:
            raise OSError(errno.EIO, "the disk took no more bytes")
        left = left[written:]


# --- what a refusal means to a user: which error of ours, with which hint ---

_Explanation: TypeAlias = tuple[type[PlainmindError], str]

_FULL: _Explanation = (StorageFailure, "free some space")
_NOT_WRITABLE: _Explanation = (WorkspaceError, "make it writable for this user")
_TOO_MANY_FILES: _Explanation = (StorageFailure, "close some programs or raise `ulimit -n`")
_NOT_A_PLAIN_FILE: _Explanation = (PathNotAllowed, "put a plain file in its place; symlinks are not followed")
_ANY_OTHER: _Explanation = (StorageFailure, "check the disk (free space, mount, `dmesg`)")

_EXPLANATIONS: Mapping[int, _Explanation] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: _NOT_WRITABLE,
    errno.EACCES: _NOT_WRITABLE,
    errno.EPERM: _NOT_WRITABLE,
    errno.EMFILE: _TOO_MANY_FILES,
    errno.ENFILE: _TOO_MANY_FILES,
    errno.ELOOP: _NOT_A_PLAIN_FILE,
    errno.EISDIR: _NOT_A_PLAIN_FILE,
    errno.ENXIO: _NOT_A_PLAIN_FILE,
    errno.ENOTDIR: (WorkspaceError, "a part of the path is a file, not a folder: choose another path"),
    errno.ENOLCK: (StorageFailure, "this file system cannot lock: use a folder on a local disk"),
}


def explanation(
    error: OSError, action: str, path: str, *, outcome: str = "nothing was written"
) -> PlainmindError:
    """Turn a refusal into the error that says it in words; `outcome` says what became of the bytes."""
    reason = error.strerror or str(error)
    kind, advice = _EXPLANATIONS.get(error.errno or 0, _ANY_OTHER)
    return kind(f"could not {action} {path}: {reason}", hint=f"{advice}; {outcome}")


@contextmanager
def explain_errors(action: str, path: str, *, outcome: str = "nothing was written") -> Iterator[None]:
    """Let no bare OSError out of a block."""
    try:
        yield
    except OSError as error:
        raise explanation(error, action, path, outcome=outcome) from error


# --- locks: `flock` on small files of their own, which are never deleted ---

_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05
_SIGNATURE_BYTES = 512
_MARK_BYTES = 128


class _OpenFile:
    """The descriptor of a lock, -1 once it is closed. It is listed in the lock's place, which may be forgotten."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close_in_child(self) -> None:
        """Close the child's copy; unlocking it would unlock the parent's."""
        fd, self.fd = self.fd, -1
        os.close(fd)


# Guards `_open_files` and is taken around every fork: a child finds each lock open and listed, or neither. Garbage may
# be collected, and locks with it, in any thread that has it already.
_fork_guard = RLock()
_open_files: set[_OpenFile] = set()


class HeldLock:
    """A lock that is held until `release()`, the end of its `with` block, the death of the process, or its own.

    Its own: what nobody refers to any more is let go.
    """

    __slots__ = ("_file", "path", "system")

    def __init__(self, path: str, file: _OpenFile, system: System) -> None:
        self.path = path
        self._file = file
        self.system = system

    def __del__(self) -> None:
        if self.fd >= 0:
            self.release()

    @property
    def fd(self) -> int:
        """The open file; -1 once it is let go."""
        return self._file.fd

    def mark(self) -> bytes:
        """What the last holder left for the next one; nothing when that cannot be read."""
        with suppress(OSError):
            return self.system.pread(self.fd, _MARK_BYTES, _SIGNATURE_BYTES).rstrip()
        return b""

    def leave_mark(self, mark: bytes) -> None:
        """Leave something for the next holder; a full disk must not prevent a lock."""
        with suppress(OSError):
            self.system.pwrite(self.fd, mark.ljust(_MARK_BYTES), _SIGNATURE_BYTES)

    def release(self) -> None:
        """Let go; more than once does no harm."""
        with _fork_guard:
            _open_files.discard(self._file)
            fd, self._file.fd = self._file.fd, -1
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


def lock_path_for(state_dir: str, path: str) -> str:
    """Name the lock of a file: outside the workspace, and the same however the file's name is spelled."""
    spelled = os.path.abspath(path).casefold()
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
    is_urgent: bool = False,
    system: System = SYSTEM,
) -> Iterator[HeldLock]:
    """Hold the lock during a block; after `timeout_s` of waiting, LockTimeout names the holder.

    Who waits for many that share it is urgent: a pause between two tries is then so short that their gaps are met.
    """
    longest_s = _FIRST_PAUSE_S if is_urgent else _LONGEST_PAUSE_S
    with explain_errors("lock", path):
        held = _wait_for_lock(path, operation, timeout_s, system, shared=shared, longest_s=longest_s)
    try:
        yield held
    finally:
        held.release()


def try_lock(path: str, *, operation: str, shared: bool = False, system: System = SYSTEM) -> HeldLock | None:
    """Take the lock if that is possible at once."""
    with explain_errors("lock", path):
        while True:
            lock = _open_lock(path, system, shared=shared)
            taken = _taken(lock, operation, shared=shared)
            if taken is not None:
                return lock if taken else None


def _wait_for_lock(
    path: str, operation: str, timeout_s: float, system: System, *, shared: bool, longest_s: float
) -> HeldLock:
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
        pause = min(pause * 2, longest_s)


def _open_lock(path: str, system: System, *, shared: bool) -> HeldLock:
    flags = os.O_RDWR | os.O_CREAT
    while True:
        with _fork_guard:
            try:
                file = _OpenFile(system.open(path, flags))
            except FileNotFoundError:
                pass
            except OSError as error:
                if not (shared and flags & os.O_CREAT and error.errno in {errno.EACCES, errno.EROFS}):
                    raise
                flags = os.O_RDONLY  # a process that may only read can still keep writers away
                continue
            else:
                _open_files.add(file)
                return HeldLock(path, file, system)
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
    """Make sure that the file has its name still: a lock on a deleted file would keep no process out."""
    try:
        named = lock.system.stat(lock.path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    status = lock.system.fstat(lock.fd)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise PathNotAllowed(
            f"the lock {lock.path} is not a plain file with one name",
            hint="remove it: the next process makes it anew",
        )
    return os.path.samestat(named, status)


def _sign(lock: HeldLock, operation: str) -> None:
    """Write down who holds the lock, for the message to a process that waits in vain; nothing is decided by it."""
    import json

    text = json.dumps({"pid": os.getpid(), "boot": _boot_id(), "operation": operation[:60]})
    with suppress(OSError):  # a full disk must not prevent a lock
        # Written over the last one at a fixed length: ext4 flushes a truncated file when it is closed,
        # which makes a lock ten times as slow.
        lock.system.write(lock.fd, text.encode().ljust(_SIGNATURE_BYTES))


def _holder(path: str) -> str:
    try:
        signed = parse_json(read_file(path, most=_SIGNATURE_BYTES).decode())
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
    for file in list(_open_files):
        file.close_in_child()
    _open_files.clear()
    _fork_guard.release()


os.register_at_fork(
    before=_fork_guard.acquire, after_in_parent=_fork_guard.release, after_in_child=_release_in_child
)


_ERASURE_TIMEOUT_S = 60.0


class Erasures:
    """Keeps erasing and indexing apart: what was read before an erasure is not written to the index after it.

    A lock and a mark in one folder, shared by all processes. A process that erases holds the lock alone and changes the
    mark twice: first, in case it is killed half-way, and last, for processes that have read a file meanwhile. A process
    that indexes notes the mark before it reads a file, and compares it again under the lock, which it shares until the
    commit.
    """

    def __init__(self, folder: str) -> None:
        self._lock = os.path.join(folder, "erasing.lock")
        self._mark = os.path.join(folder, "erased")

    def stamp(self) -> tuple[int, int] | None:
        """What changes with every erasure; None before the first."""
        with explain_errors("look at", self._mark, outcome="nothing was indexed"):
            try:
                status = os.stat(self._mark)
            except FileNotFoundError:
                return None
        return status.st_ino, status.st_mtime_ns

    @contextmanager
    def hold_off(self) -> Iterator[None]:
        """Hold erasures off during a block."""
        with hold_lock(self._lock, operation="index a file", timeout_s=_ERASURE_TIMEOUT_S, shared=True):
            yield

    def try_to_hold_off(self) -> HeldLock | None:
        """Hold erasures off until it is released, if none is under way: for what must not wait."""
        return try_lock(self._lock, operation="keep a line", shared=True)

    @contextmanager
    def run_alone(self) -> Iterator[None]:
        """Erase in a block: nothing is indexed meanwhile, and nothing later that was read before."""
        from plainmind.files.append import new_id
        from plainmind.files.atomic import write_atomically

        with hold_lock(self._lock, operation="forget", timeout_s=_ERASURE_TIMEOUT_S, is_urgent=True):
            write_atomically(self._mark, new_id().encode())
            try:
                yield
            finally:
                write_atomically(self._mark, new_id().encode())
