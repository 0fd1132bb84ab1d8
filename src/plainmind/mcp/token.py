"""The secret that a client of the HTTP server must know, in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import stat

from plainmind.base.errors import PlainmindError
from plainmind.files.atomic import write_atomically
from plainmind.files.system import hold_lock, lock_path_for

_FEWEST_CHARS = 32
_MOST_BYTES = 1_000


def token_path(home: str) -> str:
    """Where the token of this home is kept."""
    return os.path.join(home, "mcp-token")


def token_in(home: str) -> str:
    """Read the token of this home; the first time, make one."""
    path = token_path(home)
    with hold_lock(lock_path_for(home, path), operation="read the token"):
        try:
            return _read(path)
        except FileNotFoundError:
            write_atomically(path, secrets.token_urlsafe(32).encode() + b"\n", mode=0o600)
            return _read(path)


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refused(path, f"cannot be read ({os.strerror(error.errno or 0)})") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _refused(path, "is not a file")
        if status.st_mode & 0o077:
            raise PlainmindError(
                f"others can read {path}",
                hint=f"run `chmod 600 {path}`, or remove it: then a new token is made",
            )
        token = os.read(descriptor, _MOST_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(descriptor)
    if len(token) < _FEWEST_CHARS or not token.isprintable() or not token.isascii() or " " in token:
        raise _refused(path, f"holds no token of at least {_FEWEST_CHARS} characters")
    return token


def _refused(path: str, reason: str) -> PlainmindError:
    return PlainmindError(f"{path} {reason}", hint="remove it: then a new token is made")
