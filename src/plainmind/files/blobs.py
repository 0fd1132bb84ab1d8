"""Old contents of files, compressed, each stored once under its own hash."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator

from plainmind.base.errors import StorageFailure
from plainmind.base.pattern import pattern
from plainmind.files.atomic import write_atomically
from plainmind.files.system import System, explain_errors, write_all

_HASH = pattern(r"[0-9a-f]{64}")


def content_hash(data: bytes) -> str:
    """Name a content: SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class Blobs:
    """A folder of contents. Whoever writes holds the history's lock."""

    def __init__(self, folder: str, system: System) -> None:
        self._folder = folder
        self._system = system

    def put(self, data: bytes) -> str:
        """Store a content durably; its hash."""
        name = content_hash(data)
        if self._intact(name) != data:
            write_atomically(self._path(name), zlib.compress(data, 6), system=self._system)
        return name

    def get(self, name: str) -> bytes | None:
        """Read a content back, None when it is not here; StorageFailure when the disk changed it."""
        path = self._path(name)
        with explain_errors("read", path, outcome="nothing was changed"):
            try:
                with open(path, "rb") as file:
                    packed = file.read()
            except FileNotFoundError:
                return None
        try:
            data = zlib.decompress(packed)
        except zlib.error as error:
            raise _damaged(path) from error
        if content_hash(data) != name:
            raise _damaged(path)
        return data

    def sizes(self) -> dict[str, int]:
        """Every stored content and the bytes it takes on the disk."""
        return {name: os.stat(self._path(name)).st_size for name in self}

    def __iter__(self) -> Iterator[str]:
        return (name for name in sorted(self._names()) if _HASH.fullmatch(name))

    def destroy(self, name: str) -> None:
        """Remove a content so that its bytes are not left in free blocks."""
        with explain_errors("erase", self._path(name), outcome="it still exists"):
            scrub(self._path(name), self._system)

    def sweep(self) -> None:
        """Destroy what a killed process left half written."""
        for name in self._names():
            if not _HASH.fullmatch(name):
                self.destroy(name)

    def _intact(self, name: str) -> bytes | None:
        try:
            return self.get(name)
        except StorageFailure:
            return None  # damaged: `put` is about to write it anew

    def _names(self) -> list[str]:
        with explain_errors("list", self._folder, outcome="nothing was changed"):
            try:
                return self._system.listdir(self._folder)
            except FileNotFoundError:
                return []

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def scrub(path: str, system: System) -> None:
    """Overwrite a file with zeros, durably, before its name goes."""
    fd = system.open(path, os.O_WRONLY)
    try:
        write_all(system, fd, bytes(system.fstat(fd).st_size))
        system.fsync(fd)
    finally:
        system.close(fd)
    system.unlink(path)
    system.fsync_folder(os.path.dirname(path) or ".")


def _damaged(path: str) -> StorageFailure:
    return StorageFailure(
        f"{path} is damaged", hint="check the disk; this old version cannot be read any more"
    )
