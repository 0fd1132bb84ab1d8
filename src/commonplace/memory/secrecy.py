"""What hides secrets in the copies that we make of texts: the secrets of the settings, and a key for the marks."""

from __future__ import annotations

import os

from commonplace.files.failures import explaining
from commonplace.files.system import SYSTEM, write_all
from commonplace.memory.wiring import Parts
from commonplace.text.redaction.engine import Redactor

_KEY_BYTES = 32


def redactor_of(parts: Parts) -> Redactor:
    """Make the redactor of a memory; the same secret gets the same mark in all its copies."""
    return Redactor(configured_secrets(parts), key=redaction_key(parts.places.home))


def configured_secrets(parts: Parts) -> list[str]:
    """The secrets that the settings hold or refer to."""
    from commonplace.config.secrets import referenced_variable

    settings = parts.loaded.settings
    given = [settings.remote.api_key, *settings.remote.headers.values()]
    given += [access.api_key for access in settings.provider_access.values()]
    given += [settings.chat.api_key, *settings.chat.headers.values()]
    given += [settings.store.dsn, settings.store.read_dsn]
    secrets: list[str] = []
    for value in given:
        variable = referenced_variable(value) if value else None
        secret = parts.environ.get(variable) if variable else value
        if secret:
            secrets.append(secret)
    return secrets


def redaction_key(home: str) -> bytes:
    """The key of the marks, made at its first use; whoever has it can tell whether a mark stands for a secret."""
    path = os.path.join(home, "redaction.key")
    with explaining("read", path):
        key = _read(path)
        if key is None:
            _make(path)
            key = _read(path)
    assert key is not None  # somebody has made it, we or another process
    return key


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            key = file.read(_KEY_BYTES)
    except FileNotFoundError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _make(path: str) -> None:
    """Write a new key beside the place, and link it there unless another process was first."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(8).hex()}.tmp"
    fd = SYSTEM.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(SYSTEM, fd, os.urandom(_KEY_BYTES))
        SYSTEM.fsync(fd)
    finally:
        SYSTEM.close(fd)
    try:
        os.link(temporary, path)
    except FileExistsError:
        if _read(path) is None:  # a torn one
            SYSTEM.replace(temporary, path)
            return
    SYSTEM.unlink(temporary)
