"""Removing a whole file: only if nobody changed it meanwhile, and never for good."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from plainmind.base.errors import ConflictError, NotFound, PathNotAllowed, PlainmindError, StorageFailure
from plainmind.files.blobs import content_hash
from plainmind.files.history import History
from plainmind.files.system import SYSTEM, System, explain_errors, hold_lock, lock_path_for, read_range


def remove(
    path: str,
    *,
    base_hash: str | None,
    before: Callable[[bytes], object] | None = None,
    state_dir: str,
    history: History,
    reason: str,
    name: str | None = None,
    system: System = SYSTEM,
    timeout_s: float = 10.0,
) -> None:
    """Remove a file that still has the content `base_hash` (None: any); the history keeps it under `name`, as cited.

    `before` is called with the content while nobody can add to it; when it raises, nothing is removed.
    NotFound when it is gone already, ConflictError when it has changed, PathNotAllowed for symlinks and hard links:
    then nothing is removed. When the name is gone but the journal could not be told, the error says so.
    """
    name = name or path
    operation = f"remove {os.path.basename(path)}"
    with hold_lock(lock_path_for(state_dir, path), operation=operation, timeout_s=timeout_s, system=system):
        with explain_errors("read", path, outcome="nothing was removed"):
            data, status = _read(path, system)
        found_hash = content_hash(data)
        if base_hash not in {None, found_hash}:
            raise _changed(path)
        if before is not None:
            before(data)
        history.keep(name, data, reason)
        with explain_errors("remove", path, outcome="nothing was removed"):
            # People save without our lock; what they saved since is theirs to keep.
            now = system.stat(path)
            if (now.st_ino, now.st_size, now.st_mtime_ns) != (
                status.st_ino,
                status.st_size,
                status.st_mtime_ns,
            ):
                raise _changed(path)
            system.unlink(path)
        with explain_errors("remove", path, outcome="it is removed, but may come back after a power cut"):
            system.fsync_folder(os.path.dirname(path) or ".")
        try:
            history.record(name, operation=reason, new_hash=content_hash(b""), length=0, previous=found_hash)
        except PlainmindError as error:
            raise StorageFailure(
                f"{name} is removed and kept, but the journal does not know that: {error}",
                hint="do not remove it again; " + (error.hint or "check the disk"),
            ) from error


def _read(path: str, system: System) -> tuple[bytes, os.stat_result]:
    try:
        fd = system.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NotFound(
            f"{path} does not exist", hint="it may have been removed or renamed meanwhile"
        ) from None
    try:
        status = system.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise PathNotAllowed(
                f"{path} is not a plain file with one name",
                hint="make it a file of its own: folders, devices and hard links are not removed",
            )
        return read_range(system, fd, 0, status.st_size), status
    finally:
        system.close(fd)


def _changed(path: str) -> ConflictError:
    return ConflictError(f"{path} was changed meanwhile; it was not removed", hint="read it again")
