"""SQLite connections with the settings that an index needs, and SQLite's errors in our own words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import apsw

from plainmind.base.errors import IndexCorrupt, LockTimeout, StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

SCHEMA_VERSION = 4

Bindings: TypeAlias = "Sequence[Any] | Mapping[str, Any]"

BUSY_TIMEOUT_MS = 5_000
_CACHE_KIB = 4_000
# What is read again and again is in our own cache. Of pages that are read once, each new one costs a cold search a
# page fault or two: a small cache uses the same memory over and over.
_CACHE_OF_READER_KIB = 500
_PAGE_BYTES = 8_192  # holds fifteen vectors of 256 dimensions with little left over
_JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024
_SCHEMA = os.path.join(os.path.dirname(__file__), "schema.sql")

# A missing table or column can only mean a damaged file: all our statements are written for this schema.
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError, apsw.MismatchError)


class OlderFormat(IndexCorrupt):
    """An earlier version of the program made this index: it has to be made anew, and nothing is wrong with it."""


@contextmanager
def speaking_plainly() -> Iterator[None]:
    """Turn what SQLite says into errors that a user can understand."""
    try:
        yield
    except apsw.BusyError as error:
        raise LockTimeout(
            f"the index stayed locked for {BUSY_TIMEOUT_MS // 1000} s by another process",
            hint="wait for it to finish, then try again; nothing was changed",
        ) from error
    except apsw.FullError as error:
        raise StorageFailure(
            "the disk is full: the index was not changed and still answers",
            hint="free some space, then run `plainmind sync`",
        ) from error
    except _DAMAGE as error:
        raise IndexCorrupt(
            f"the index is damaged ({error})", hint="run `plainmind sync`: it is rebuilt from your notes"
        ) from error
    except apsw.Error as error:
        raise StorageFailure(
            f"the index could not be read or written ({error})",
            hint="check the disk and the permissions of the index folder",
        ) from error


def connect(path: str, *, for_writing: bool) -> apsw.Connection:
    """Open an index that exists; never creates one. Raises IndexCorrupt when it is not one of ours."""
    with speaking_plainly():
        if not os.path.exists(path):
            raise IndexCorrupt(
                f"the index file {os.path.basename(path)} is missing", hint="run `plainmind sync`"
            )
        try:
            return _checked(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE), for_writing=for_writing)
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            if for_writing or os.access(os.path.dirname(path), os.W_OK):
                raise
        # On a read-only disk SQLite cannot make the shared memory of a log, and needs none: nobody writes there.
        from urllib.parse import quote

        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return _checked(apsw.Connection(f"file:{quote(path)}?immutable=1", flags=flags), for_writing=False)


def create(path: str, *, write_ahead: bool) -> apsw.Connection:
    """Make an empty index in a new file that only its owner can read."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    with speaking_plainly():
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
            setting(db, f"page_size = {_PAGE_BYTES}")  # before the journal's mode, which fixes it
            setting(db, f"journal_mode = {'wal' if write_ahead else 'truncate'}")
            _configure(db, for_writing=True)
            with open(_SCHEMA, encoding="utf-8") as schema, transaction(db):
                db.execute(schema.read())
                setting(db, f"user_version = {SCHEMA_VERSION}")
        except BaseException:
            db.close()
            raise
        return db


def rows(db: apsw.Connection, statement: str, values: Bindings = ()) -> list[tuple[Any, ...]]:
    """Everything that a statement answers."""
    return db.execute(statement, values).fetchall()


def one_row(db: apsw.Connection, statement: str, values: Bindings = ()) -> tuple[Any, ...]:
    """The one row that must be there."""
    row = db.execute(statement, values).fetchone()
    if row is None:
        raise IndexCorrupt("a row of the index is missing", hint="run `plainmind sync --force`")
    found: tuple[Any, ...] = row
    return found


def setting(db: apsw.Connection, pragma: str) -> Any:
    """Run one pragma and return what it answers; two in one `execute` would stop at the first answer."""
    row = db.execute(f"PRAGMA {pragma}").fetchone()  # pragmas take no parameters; ours are constants
    return row[0] if row else None


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Write all of a block or none of it; other writers wait, readers do not."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException as error:
        if db.in_transaction:  # SQLite has already rolled back after some errors, a full disk among them
            db.execute("ROLLBACK")
        if isinstance(error, apsw.FullError):
            give_back_room(db)
        raise


def give_back_room(db: apsw.Connection) -> None:
    """Cut the log after a write that filled the disk: it holds all the room that was left, and notes need it too."""
    with suppress(apsw.Error):  # a reader is in the way, or the disk is too full even for this
        empty_log(db)


def empty_log(db: apsw.Connection) -> bool:
    """Move the write-ahead log into the file and cut it to nothing; False when a reader is in the way."""
    busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() or (0, 0, 0)
    return not busy


def _checked(db: apsw.Connection, *, for_writing: bool) -> apsw.Connection:
    """Make a connection ready for use, or close it."""
    try:
        _configure(db, for_writing=for_writing)
        _check_schema(db)
    except BaseException:
        db.close()
        raise
    return db


def _configure(db: apsw.Connection, *, for_writing: bool) -> None:
    db.set_busy_timeout(BUSY_TIMEOUT_MS)
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    setting(db, "cell_size_check = on")
    setting(db, f"cache_size = -{_CACHE_KIB if for_writing else _CACHE_OF_READER_KIB}")
    if for_writing:
        setting(db, "synchronous = normal")  # a lost last transaction is re-indexed; a damaged file is not
        setting(db, "foreign_keys = on")
        setting(db, "secure_delete = on")
        setting(db, f"journal_size_limit = {_JOURNAL_LIMIT_BYTES}")
        if setting(db, "journal_mode") != "wal":
            setting(db, "journal_mode = truncate")
    else:
        setting(db, "query_only = on")
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a search must not end with a long write


def _check_schema(db: apsw.Connection) -> None:
    found = setting(db, "user_version")
    if found != SCHEMA_VERSION:
        kind = OlderFormat if 0 < found < SCHEMA_VERSION else IndexCorrupt
        raise kind(
            f"the index has format {found}, this version of plainmind reads format {SCHEMA_VERSION}",
            hint="run `plainmind sync`: it is rebuilt from your notes",
        )
    if db.execute("SELECT value FROM revision").fetchone() is None:
        raise IndexCorrupt("the index has lost its revision", hint="run `plainmind sync`")
    db.execute("SELECT value FROM meta LIMIT 1").fetchone()
