"""Replacing a whole file: in one step, only if nobody changed it meanwhile, and never for good."""

from __future__ import annotations

import os
import stat

from plainmind.base.errors import ConflictError, PathNotAllowed, PlainmindError, WouldShrink
from plainmind.base.value import value
from plainmind.files.atomic import put_in_place, remove_abandoned, write_atomically, write_temporary
from plainmind.files.blobs import content_hash
from plainmind.files.conflicts import keep_conflict_copy
from plainmind.files.history import History
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    hold_lock,
    lock_path_for,
    make_folders,
    read_range,
)

__all__ = ["Replaced", "content_hash", "replace", "write_atomically"]

_SMALL_BYTES = 200  # a file of a few lines may lose half of them without anyone having made a mistake


@value
class Replaced:
    """What a file was and what it is; `old_hash` is None when it did not exist."""

    old_hash: str | None
    new_hash: str


@value
class _Current:
    """The file as it was read under the lock."""

    data: bytes
    hash: str
    status: os.stat_result


def replace(
    path: str,
    new: bytes,
    *,
    base_hash: str | None,
    state_dir: str,
    history: History,
    reason: str,
    name: str | None = None,
    allow_shrink: bool = False,
    system: System = SYSTEM,
    timeout_s: float = 10.0,
) -> Replaced:
    """Replace a file that still has the content `base_hash` (None: that does not exist yet).

    The old bytes go into the history first, under `name` (the path as cited; by default the path itself).
    When the content is another one by now, ConflictError: nothing is overwritten and `new` is kept as a
    conflict copy. When it already is `new`, the call succeeds, so that a retry after an error is harmless.
    `reason` is journalled: a few words about the operation, never text of the file. WouldShrink when most of
    the file would go without `allow_shrink`; PathNotAllowed for symlinks and hard links.
    """
    name = name or path
    new_hash = content_hash(new)
    operation = f"replace {os.path.basename(path)}"
    with hold_lock(lock_path_for(state_dir, path), operation=operation, timeout_s=timeout_s, system=system):
        with explain_errors("read", path):
            current = _read_current(path, system)
        old_hash = current.hash if current is not None else None
        if old_hash not in {base_hash, new_hash}:
            raise _conflict(path, new, state_dir, system)
        if current is not None and not allow_shrink:
            _refuse_to_shrink(path, len(current.data), new)
        if current is not None:
            history.keep(name, current.data, reason)
        _swap_in(path, new, current, state_dir, system)
        history.record(name, operation=reason, new_hash=new_hash, length=len(new), previous=old_hash)
    return Replaced(old_hash, new_hash)


def _read_current(path: str, system: System) -> _Current | None:
    try:
        fd = system.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        status = system.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise PathNotAllowed(
                f"{path} is not a plain file with one name",
                hint="make it a file of its own: folders, devices and hard links are not replaced",
            )
        data = read_range(system, fd, 0, status.st_size)
    finally:
        system.close(fd)
    return _Current(data, content_hash(data), status)


def _refuse_to_shrink(path: str, old_length: int, new: bytes) -> None:
    emptied = bool(old_length) and not new.strip()
    halved = old_length > _SMALL_BYTES and len(new) * 2 < old_length
    if emptied or halved:
        raise WouldShrink(
            f"{path} would shrink from {old_length} to {len(new)} bytes",
            hint="if that is meant, allow it explicitly (`allow_shrink`); nothing was written",
        )


def _swap_in(path: str, new: bytes, current: _Current | None, state_dir: str, system: System) -> None:
    folder = os.path.dirname(path) or "."
    with explain_errors("replace", path):
        make_folders(system, folder)
        remove_abandoned(path, system)
        temporary = write_temporary(path, new, 0o600, None if current is None else current.status, system)
        # People save without our lock. What they saved since we read it is theirs to keep.
        if not _unchanged(path, current, system):
            system.unlink(temporary)
            raise _conflict(path, new, state_dir, system)
        put_in_place(temporary, path, system)
    with explain_errors("replace", path, outcome="the new text is in place but may not survive a power cut"):
        system.fsync_folder(folder)


def _unchanged(path: str, current: _Current | None, system: System) -> bool:
    try:
        now = system.stat(path)
    except FileNotFoundError:
        return current is None
    if current is None:
        return False
    then = current.status
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (then.st_ino, then.st_size, then.st_mtime_ns)


def _conflict(path: str, wanted: bytes, state_dir: str, system: System) -> ConflictError:
    try:
        copy = keep_conflict_copy(state_dir, path, wanted, system=system)
    except PlainmindError as error:
        kept = f"your version could not be kept ({error})"
    else:
        kept = f"your version is kept in {copy}"
    return ConflictError(
        f"{path} was changed meanwhile; nothing was overwritten", hint=f"read it again; {kept}"
    )
