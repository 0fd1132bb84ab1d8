"""The operating system calls that files are written with, in one class, so that a test can make them fail."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable

# A file system that cannot sync a folder says so with one of these; there is then nothing to wait for.
_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF})


class System:
    """Thin over `os`: no call does more than its name says, and none follows a symlink at the end."""

    def __init__(self) -> None:
        if type(self) is System:
            # Straight to the system, for calls that change nothing: a step through Python takes as long again.
            self.fstat, self.stat, self.flock = os.fstat, os.lstat, fcntl.flock  # type: ignore[method-assign,assignment]

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        """Open without following a final symlink (ELOOP) or giving the descriptor to other programs."""
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        os.close(fd)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Read up to `count` bytes at `offset`; fewer only at the end of the file."""
        return os.pread(fd, count, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write once; the result may be less than asked for."""
        return os.write(fd, data)

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
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Remove a name."""
        os.unlink(path)

    def mkdir(self, path: str, mode: int = 0o700) -> None:
        """Make one folder."""
        os.mkdir(path, mode)

    def listdir(self, path: str) -> list[str]:
        """List the names in a folder."""
        return os.listdir(path)

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
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _sync(fd, os.fsync)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise
        finally:
            os.close(fd)


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


def read_range(system: System, fd: int, start: int, end: int) -> bytes:
    """Read the bytes from `start` to `end`, or to the end of the file when that comes first."""
    parts: list[bytes] = []
    while start < end and (part := system.pread(fd, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def make_folders(system: System, folder: str) -> None:
    """Make a folder and those above it that are missing, private to the user, each name durable."""
    missing: list[str] = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for name in reversed(missing):
        try:
            system.mkdir(name)
        except FileExistsError:
            continue  # another process was faster
        system.fsync_folder(os.path.dirname(name) or ".")


def write_all(system: System, fd: int, data: bytes) -> None:
    """Write everything to a file that nobody else sees yet, in as many calls as it takes."""
    left = memoryview(data)
    while left:
        written = system.write(fd, left)
        if not written:
            raise OSError(errno.EIO, "the disk took no more bytes")
        left = left[written:]
