"""Linux's queue of what happens in folders, read without waiting, and the file systems on which it misses nothing."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import cache

from plainmind.base.value import value
from plainmind.files.system import kind_of_file_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Of each event the watch of the folder and the name in it.
Events: TypeAlias = "set[tuple[int, str]]"

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
_ONLY_DIRECTORIES = 0x0100_0000
# After a file was changed through a mapping, closing it is all that is told.
_WATCHED = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
)
# What happens to a file and to nothing else. Everything else (a folder came or went, a disk was unmounted, the
# queue was full) says that something happened, not what.
_ABOUT_A_FILE = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE

_HEADER = struct.Struct("iIII")  # watch, kind, cookie, length of the name
_READ_SIZE = 1 << 16
_MOST_READS = 64  # a writer that never pauses must not keep us reading

# By the numbers in statfs(2): where every change goes through this kernel.
_LOCAL = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0x01021994,  # tmpfs
        0x858458F6,  # ramfs
        0x794C7630,  # overlayfs
        0xF2F52010,  # f2fs
        0x2FC12FC1,  # zfs
        0xCA451A4E,  # bcachefs
        0x3153464A,  # jfs
        0x52654973,  # reiserfs
        0x24051905,  # ubifs
    }
)


@value
class _System:
    """The calls that Python does not offer; each answers -1 and leaves a number behind when it fails."""

    init: Callable[[int], int]
    add_watch: Callable[[int, bytes, int], int]
    error: Callable[[], OSError]


@cache
def _system() -> _System | None:
    import sys

    if sys.platform != "linux":
        return None
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)

    def error() -> OSError:
        code = ctypes.get_errno()
        return OSError(code, os.strerror(code))

    try:
        return _System(library.inotify_init1, library.inotify_add_watch, error)
    except AttributeError:
        return None


class Inotify:
    """One queue. Closed at the latest when nothing refers to it any more."""

    def __init__(self, descriptor: int, system: _System) -> None:
        self._descriptor = descriptor
        self._system = system
        self._watches: set[int] = set()

    @property
    def count(self) -> int:
        """How many folders were ever watched through it; those that are gone count too."""
        return len(self._watches)

    def watch(self, folder: int) -> int:
        """Watch an open folder, by itself rather than by a path that may lead elsewhere by now. Raises OSError.

        A folder that is watched already keeps its number.
        """
        name = self._system.add_watch(
            self._descriptor, b"/proc/self/fd/%d" % folder, _WATCHED | _ONLY_DIRECTORIES
        )
        if name < 0:
            raise self._system.error()
        self._watches.add(name)
        return name

    def events(self) -> Events | None:
        """What has happened since the last call; None when something else happened than files changing."""
        found: set[tuple[int, str]] = set()
        for _ in range(_MOST_READS):
            try:
                data = os.read(self._descriptor, _READ_SIZE)
            except BlockingIOError:
                return found
            except OSError:
                return None
            if not _read_events(data, found):
                self._skip()
                return None
        return None

    def close(self) -> None:
        """Let go of all watches; more than once does no harm."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def _skip(self) -> None:
        """Throw away what else has happened: that something happened is known."""
        for _ in range(_MOST_READS):
            try:
                os.read(self._descriptor, _READ_SIZE)
            except OSError:
                return


def open_inotify() -> Inotify | None:
    """Open a queue, or None where there is no such thing or the user has too many."""
    system = _system()
    if system is None:
        return None
    descriptor = system.init(os.O_NONBLOCK | os.O_CLOEXEC)
    return Inotify(descriptor, system) if descriptor >= 0 else None


def is_local(folder: int) -> bool:
    """Whether an open folder is on a file system that only this machine writes to."""
    return kind_of_file_system(folder) in _LOCAL


def _read_events(data: bytes, found: set[tuple[int, str]]) -> bool:
    """Add the events to `found`; False when one of them is not about a file."""
    at = 0
    while at < len(data):
        watch, kind, _, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        # A kind with any other bit, as that of folders, is none of these.
        if kind & ~_ABOUT_A_FILE or not length:
            return False
        found.add((watch, os.fsdecode(data[at : at + length].rstrip(b"\0"))))
        at += length
    return True
