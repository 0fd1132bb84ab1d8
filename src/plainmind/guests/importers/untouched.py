"""Opening another program's SQLite file for reading, in use or not, so that nothing in or beside it changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from plainmind.base.errors import PlainmindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import apsw

_BLOCK_BYTES = 1 << 20
_TRIES = 5


@contextmanager
def opened_untouched(path: str) -> Iterator[apsw.Connection]:
    """Open a database for reading: as it lies there if no program uses it, else a copy of it."""
    import apsw

    if _size(f"{path}-wal") == 0:
        connection = _connected(path)
        try:
            yield connection
        finally:
            connection.close()
        return
    # Reading a file in WAL mode writes to the index of the log: so we look at a copy.
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="plainmind-import-") as folder:
        copy = os.path.join(folder, "copy.sqlite")
        _copy_consistently(path, copy)
        connection = apsw.Connection(copy)
        try:
            yield connection
        finally:
            connection.close()


def _connected(path: str) -> apsw.Connection:
    from urllib.parse import quote

    import apsw

    # Immutable: no lock is taken and no file is made beside it.
    address = f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
    return apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _copy_consistently(path: str, copy: str) -> None:
    """Copy a database and its log; once more if the log was moved into the database meanwhile."""
    for _ in range(_TRIES):
        before = _generation(path)
        _copy_file(f"{path}-wal", f"{copy}-wal")
        _copy_file(path, copy)
        if _generation(path) == before:
            return
    raise PlainmindError(
        f"{path} changes faster than it can be read",
        hint="stop the program that writes it for a moment, and import again",
    )


def _generation(path: str) -> tuple[int, int, bytes]:
    """What changes when the log is moved into the database: growing alone does not."""
    status = os.stat(path)
    try:
        with open(f"{path}-wal", "rb") as log:
            return status.st_size, status.st_mtime_ns, log.read(32)
    except FileNotFoundError:
        return status.st_size, status.st_mtime_ns, b""


def _copy_file(source: str, target: str) -> None:
    try:
        with open(source, "rb") as read, open(target, "wb") as written:
            while block := read.read(_BLOCK_BYTES):
                written.write(block)
    except FileNotFoundError:
        return


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
