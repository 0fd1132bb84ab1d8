"""What the operating system's refusals mean to a user: which error of ours, with which hint."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from plainmind.base.errors import PathNotAllowed, PlainmindError, StorageFailure, WorkspaceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

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


def explained(
    error: OSError, action: str, path: str, *, outcome: str = "nothing was written"
) -> PlainmindError:
    """Turn a refusal into the error that says it in words; `outcome` says what became of the bytes."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    kind, advice = _EXPLANATIONS.get(error.errno or 0, _ANY_OTHER)
    return kind(f"could not {action} {path}: {reason}", hint=f"{advice}; {outcome}")


@contextmanager
def explaining(action: str, path: str, *, outcome: str = "nothing was written") -> Iterator[None]:
    """Let no bare OSError out of a block."""
    try:
        yield
    except OSError as error:
        raise explained(error, action, path, outcome=outcome) from error
