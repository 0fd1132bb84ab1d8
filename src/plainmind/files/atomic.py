"""Writing a whole file in one step: beside its place first, synced, then renamed over it."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

from plainmind.base.lazy import pattern
from plainmind.files.system import SYSTEM, System, explain_errors, make_folders, write_all

_TEMPORARY = pattern(r"\.(?P<name>.+)\.\d+\.[0-9a-f]{16}\.tmp", re.DOTALL)


def write_atomically(path: str, data: bytes, *, mode: int = 0o600, system: System = SYSTEM) -> None:
    """Put `data` at `path` durably; readers see all of the old or all of the new, and so does a power cut.

    For derived files and pointers, which no person edits: it does not ask what was there.
    """
    folder = os.path.dirname(path) or "."
    with explain_errors("write", path):
        make_folders(system, folder)
        temporary = write_temporary(path, data, mode, None, system)
        put_in_place(temporary, path, system)
    with explain_errors("write", path, outcome="the new text is in place but may not survive a power cut"):
        system.fsync_folder(folder)


def write_first(path: str, data: bytes, *, mode: int = 0o600, system: System = SYSTEM) -> None:
    """Put `data` at `path` durably, unless there is a file: of several who do it at once, one does."""
    folder = os.path.dirname(path) or "."
    with explain_errors("write", path):
        make_folders(system, folder)
        temporary = write_temporary(path, data, mode, None, system)
        try:
            with suppress(FileExistsError):
                system.link(temporary, path)
        finally:
            system.unlink(temporary)
        system.fsync_folder(folder)


def write_temporary(path: str, data: bytes, mode: int, like: os.stat_result | None, system: System) -> str:
    """Write beside the target, with the mode and owner of the file it will replace; synced, or gone."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(8).hex()}.tmp")
    fd = system.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            system.fchmod(fd, mode if like is None else stat.S_IMODE(like.st_mode))
            if like is not None and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):  # only root can give files away, and then must
                    system.fchown(fd, like.st_uid, like.st_gid)
            write_all(system, fd, data)
            system.fsync(fd)
        finally:
            system.close(fd)
    except BaseException:
        _discard(temporary, system)
        raise
    return temporary


def put_in_place(temporary: str, path: str, system: System) -> None:
    """Give the temporary file its name; the caller syncs the folder."""
    try:
        system.replace(temporary, path)
    except BaseException:
        _discard(temporary, system)
        raise


def _discard(temporary: str, system: System) -> None:
    with suppress(OSError):  # what brought us here is on its way to the caller; the next replace sweeps up
        system.unlink(temporary)


def remove_abandoned(path: str, system: System) -> None:
    """Remove what killed processes left of earlier tries, for good; the caller holds the lock of `path`."""
    folder, name = os.path.split(path)
    folder = folder or "."
    with explain_errors("sweep up beside", path):
        found = [entry for entry in system.listdir(folder) if _is_left_of(entry, name)]
        for entry in found:
            system.unlink(os.path.join(folder, entry))
        if found:  # a power cut would bring back what was forgotten
            system.fsync_folder(folder)


def _is_left_of(entry: str, name: str) -> bool:
    match = _TEMPORARY.fullmatch(entry)
    return match is not None and match["name"] == name
