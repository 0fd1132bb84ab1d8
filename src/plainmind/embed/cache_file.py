"""The SQLite file behind the embedding cache: opened by many processes, thrown away when damaged.

Every connection holds a shared lock on `<path>.lock`. SQLite finds its write-ahead log by name, so a database
that someone has open must never be renamed: only who gets the lock alone sets a damaged file aside.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import apsw

from plainmind.base.errors import StorageFailure

_SCHEMA_VERSION = 1
_BUSY_MS = 5000
_PARTS = ("", "-wal", "-shm")

_CREATE = (
    "DROP TABLE IF EXISTS embedding_cache",
    # The hash leads the key: `forget` knows a text but not who embedded it. The vector comes last, so that
    # touching `used_at` of a long row changes one page.
    """
    CREATE TABLE embedding_cache (
        hash         TEXT NOT NULL,     -- SHA-256 of the text
        provider     TEXT NOT NULL,
        model        TEXT NOT NULL,
        provider_key TEXT NOT NULL,     -- SHA-256 of the endpoint; never a credential
        used_at      INTEGER NOT NULL,  -- nanoseconds since 1970
        dims         INTEGER NOT NULL,
        embedding    BLOB NOT NULL,     -- float32, little-endian, unit length
        PRIMARY KEY (hash, provider, model, provider_key)
    )
    """,
    "CREATE INDEX embedding_cache_by_use ON embedding_cache (used_at, dims)",
)


# What SQLite raises when the file is not, or no longer, a sound database.
Damaged = (apsw.CorruptError, apsw.NotADBError)


class SharedFile:
    """One open connection to a private database and its shared lock; `prepare` brings it into shape."""

    def __init__(self, path: str, prepare: Callable[[apsw.Connection], None]) -> None:
        self.path = path
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        self._lock = _open_private(path + ".lock")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            os.close(_open_private(path))  # SQLite gives its own files the mode of this one
            self.inode = inode_of(path)
            self.connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        except BaseException:
            os.close(self._lock)
            raise
        try:
            self.connection.set_busy_timeout(_BUSY_MS)
            _write_ahead(self.connection)
            prepare(self.connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the database, then give up the lock."""
        try:
            self.connection.close()
        finally:
            os.close(self._lock)


class CacheFile(SharedFile):
    """The cache's own."""

    def __init__(self, path: str) -> None:
        super().__init__(path, _prepare)


def inode_of(path: str) -> int | None:
    """Which file is at `path`, None when there is none."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


@contextmanager
def writing(connection: apsw.Connection) -> Iterator[None]:
    """One transaction that waits for other writers at its start, so that it never fails half-way through."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def empty_log(connection: apsw.Connection) -> None:
    """Move the write-ahead log into the database and cut it to nothing: until then it keeps old pages."""
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def set_aside(path: str, inode: int | None) -> str | None:
    """Rename a damaged database to `.bad-<time>`, unless others have it open or have already replaced it.

    Returns where it went. Only the newest damaged file is kept.
    """
    lock = _open_private(path + ".lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if inode is None or inode_of(path) != inode:
            return None
        drop_damaged_copies(path)
        bad = f"{path}.bad-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        for part in _PARTS:
            with suppress(FileNotFoundError):
                os.rename(path + part, bad + part)
    except BlockingIOError:
        return None
    finally:
        os.close(lock)
    return bad


def drop_damaged_copies(path: str) -> None:
    """Delete what `set_aside` has kept."""
    folder, name = os.path.split(path)
    for entry in os.listdir(folder or "."):
        if entry.startswith(name + ".bad-"):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, entry))


def _open_private(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _prepare(connection: apsw.Connection) -> None:
    for pragma in (
        "PRAGMA synchronous = NORMAL",
        "PRAGMA secure_delete = ON",
        "PRAGMA trusted_schema = OFF",
        "PRAGMA cell_size_check = ON",
        "PRAGMA journal_size_limit = 67108864",
    ):
        connection.execute(pragma).fetchall()
    if connection.pragma("user_version") == _SCHEMA_VERSION:
        return
    with writing(connection):
        if connection.pragma("user_version") != _SCHEMA_VERSION:
            for statement in _CREATE:
                connection.execute(statement)
            connection.pragma("user_version", _SCHEMA_VERSION)


def _write_ahead(connection: apsw.Connection) -> None:
    """Switch to WAL; SQLite's busy timeout does not cover this one statement, so we wait ourselves."""
    deadline = time.monotonic() + _BUSY_MS / 1000
    while connection.pragma("journal_mode") != "wal":
        try:
            mode = connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        if mode != "wal":
            raise StorageFailure(
                f"the file system under {connection.filename} does not allow a write-ahead log",
                hint="put PLAINMIND_HOME on a local disk",
            )
