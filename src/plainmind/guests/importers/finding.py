"""Which files to import: the one that was given, or those that a program keeps below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError
from plainmind.guests.importers.protocol import Original, Reader

_LOGS = ("-wal",)  # of a database: what was written last stands there


def find_originals(reader: Reader, path: str) -> list[Original]:
    """List the files, in the order in which they are to be read. Raises NotFound when there are none."""
    path = os.path.abspath(path)
    if not os.path.lexists(path):
        raise NotFound(f"there is no {path}", hint=f"give a folder with {reader.looks_for}, or one file")
    if os.path.isdir(path):
        found = [
            original
            for folder in reader.folders(path)
            for file in _files_below(folder)
            if (original := reader.original(file, folder)) is not None
        ]
    elif os.path.isfile(path):
        original = reader.original(path, path)
        found = [original] if original is not None else []
    else:
        raise PathNotAllowed(f"{path} is neither a file nor a folder", hint="give a file or a folder")
    if not found:
        raise NotFound(
            f"there are no conversations of {reader.program} in {path}",
            hint=f"looked for {reader.looks_for}",
        )
    return sorted(found, key=lambda original: (original.is_spare, original.rank, original.path))


def fingerprint(path: str) -> list[int]:
    """Tell a file from itself after a change, without reading it."""
    marks: list[int] = []
    for name in (path, *(path + log for log in _LOGS)):
        try:
            status = os.stat(name)
        except FileNotFoundError:
            continue
        marks += (status.st_ino, status.st_size, status.st_mtime_ns)
    return marks


def _files_below(folder: str) -> Iterator[str]:
    """Give the plain files, links not followed."""

    def refuse(error: OSError) -> None:
        raise PlainmindError(
            f"{error.filename} cannot be read: {error.strerror}", hint="check its permissions"
        ) from error

    for inside, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(inside, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path
