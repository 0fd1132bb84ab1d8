"""The files of an index: a folder of databases, how they are opened, and what became of damaged ones.

    CURRENT              names the generation that answers, replaced as a whole
    gen-000017.sqlite    one generation (with -wal and -shm while it is in use)
    gen-000017.lock      held shared by what reads or builds it: only unlocked generations are deleted
    writer.lock          held by what changes the index or this folder
    recoveries.json      when damage was found, and what it was
    bad-000016.sqlite    the last damaged generation, kept for a look at it

A database is never renamed over another one: a process that has the old file open would go on with a log
that belongs to neither.

Every page of a database ends in a checksum, made when the page is written and compared whenever it is read: no byte
that has changed on the disk reaches SQLite. Pages that are still in the write-ahead log have SQLite's own checksums.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from zlib import crc32

import apsw

from plainmind.base.errors import IndexCorrupt, IndexUnavailable, LockTimeout, StorageFailure
from plainmind.base.lazy import parse_json, pattern
from plainmind.files.safe_open import PASSAGE_FLAGS, open_real_folder
from plainmind.files.system import (
    SYSTEM,
    HeldLock,
    explain_errors,
    hold_lock,
    make_folders,
    read_file,
    try_lock,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias


SCHEMA_VERSION = 6

Bindings: TypeAlias = "Sequence[Any] | Mapping[str, Any]"

BUSY_TIMEOUT_MS = 5_000
_CACHE_KIB = 4_000  # to read a page again, and to compare its checksum, takes longer than to find room for it
_PAGE_BYTES = 8_192  # holds 31 vectors of 256 dimensions with little left over
_CHECKSUM_BYTES = 4  # at the end of each page
_HEADER_BYTES = 100  # of the first page: what SQLite reads first, and reads again with the page
_RIGHT = 0x2144DF1C  # the CRC-32 of whatever ends in its own CRC-32
_CHECKED = "plainmind-checked"
_JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024
_SCHEMA = os.path.join(os.path.dirname(__file__), "schema.sql")

# A missing table or column can only mean a damaged file: all our statements are written for this schema.
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError, apsw.MismatchError)

_GENERATION = pattern(r"gen-(\d{6,18})\.(?:sqlite|lock)")
_BAD = pattern(r"(bad-\d+\.sqlite)(?:-wal|-shm|-journal)?")
_WRITER_TIMEOUT_S = 10.0
_WITH_LOGS = ("-wal", "-shm", "-journal", "")

Signature = tuple[int, int, int]

MOUNTS = "/proc/self/mountinfo"

_SHARED_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "glusterfs", "lustre"}
)

_RECOVERIES_KEPT = 20
_MOST_RECOVERIES_PER_HOUR = 3


class OlderFormat(IndexCorrupt):
    """An earlier version of the program made this index: it has to be made anew, and nothing is wrong with it."""


_read_bytes = apsw.VFSFile.xRead


class _CheckedFile(apsw.VFSFile):
    """A database whose pages are compared with their checksums; the number of a page is part of its own."""

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 (SQLite's name)
        """Read a page, or the beginning of one; what SQLite looks at before it knows the size of pages is no page."""
        if amount == _PAGE_BYTES:  # as nearly always, some hundred times in a search
            page = _read_bytes(self, amount, offset)
            if crc32(page, offset // _PAGE_BYTES) == _RIGHT and not offset % _PAGE_BYTES:
                return page
        number, inside = divmod(offset, _PAGE_BYTES)
        if inside or (amount == _HEADER_BYTES and not number):
            return _read_bytes(self, amount, offset)
        page = _read_bytes(self, _PAGE_BYTES, offset)
        if crc32(page, number) != _RIGHT and (page or number):  # a new database has no first page yet
            raise _damage_of(page, number)
        return page if amount == _PAGE_BYTES else page[:amount]

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        """Write a page with its checksum."""
        content = bytes(data)[:-_CHECKSUM_BYTES]
        checksum = crc32(content, offset // _PAGE_BYTES)
        super().xWrite(content + checksum.to_bytes(_CHECKSUM_BYTES, "little"), offset)


class _CheckedFiles(apsw.VFS):
    """Opens databases so that they are checked, and all else as it is."""

    def __init__(self) -> None:
        super().__init__(_CHECKED, base="")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        """Open a file of a database, in a folder that no link leads to."""
        _require_real_folder(name)
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _CheckedFile("", name, flags)
        return super().xOpen(name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802, FBT001
        """Remove a log, in a folder that no link leads to."""
        _require_real_folder(name)
        super().xDelete(name, sync)


def _require_real_folder(name: str | apsw.URIFilename | None) -> None:
    """SQLite knows files by their paths alone: right before it uses one, no part of it may be a link."""
    if name is not None:  # a temporary file has no name
        path = name if isinstance(name, str) else name.filename()
        try:
            os.close(open_real_folder(os.path.dirname(path), PASSAGE_FLAGS))
        except OSError as error:
            raise apsw.CantOpenError(f"{path}: {error.strerror}") from error


_CHECKED_FILES = _CheckedFiles()  # known to SQLite as long as it lives


def _damage_of(page: bytes, number: int) -> IndexCorrupt:
    """What to say of a page that does not have its checksum."""
    is_unchecked = page[20:21] == b"\0"  # how many bytes of each page are not SQLite's
    version = int.from_bytes(page[60:64])
    if number == 0 and is_unchecked and 0 < version < SCHEMA_VERSION:
        return _other_format(version)
    what = "is cut off" if len(page) < _PAGE_BYTES else "has changed on the disk"
    return IndexCorrupt(
        f"the index is damaged (page {number + 1} {what})",
        hint="run `plainmind sync`: it is rebuilt from your notes",
    )


@contextmanager
def explain_sqlite_errors() -> Iterator[None]:
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
    with explain_sqlite_errors():
        if not os.path.exists(path):
            raise IndexCorrupt(
                f"the index file {os.path.basename(path)} is missing", hint="run `plainmind sync`"
            )
        _refuse_pipes(path)
        try:
            return _checked(_open(path, apsw.SQLITE_OPEN_READWRITE), for_writing=for_writing)
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            if for_writing or os.access(os.path.dirname(path), os.W_OK):
                raise
        # On a read-only disk SQLite cannot make the shared memory of a log, and needs none: nothing is written there.
        from urllib.parse import quote

        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return _checked(_open(f"file:{quote(path)}?immutable=1", flags), for_writing=False)


def _refuse_pipes(path: str) -> None:
    """Let SQLite open nothing that it would wait for, or that lies elsewhere."""
    for suffix in _WITH_LOGS:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(path + suffix).st_mode):
                raise IndexCorrupt(
                    f"the index file {os.path.basename(path)}{suffix} is not a plain file",
                    hint="run `plainmind sync`",
                )


def create(path: str, *, write_ahead: bool) -> apsw.Connection:
    """Make an empty index in a new file that only its owner can read."""
    SYSTEM.close(SYSTEM.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    with explain_sqlite_errors():
        db = _open(path, apsw.SQLITE_OPEN_READWRITE)
        try:
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
            setting(db, f"page_size = {_PAGE_BYTES}")  # before the journal's mode, which fixes it
            db.reserve_bytes("main", _CHECKSUM_BYTES)
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


def _open(name: str, flags: int) -> apsw.Connection:
    # SQLite opens by path: it refuses one with a link in it, and what it would create is made by us before.
    return apsw.Connection(name, flags=flags | apsw.SQLITE_OPEN_NOFOLLOW, vfs=_CHECKED)


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
    # Or each statement with a parameter that could choose another plan is prepared anew for every value.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    setting(db, "cell_size_check = on")
    setting(db, f"cache_size = -{_CACHE_KIB}")
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
        raise _other_format(found)
    if db.execute("SELECT value FROM revision").fetchone() is None:
        raise IndexCorrupt("the index has lost its revision", hint="run `plainmind sync`")
    db.execute("SELECT value FROM meta LIMIT 1").fetchone()


def _other_format(found: int) -> IndexCorrupt:
    kind = OlderFormat if 0 < found < SCHEMA_VERSION else IndexCorrupt
    return kind(
        f"the index has format {found}, this version of plainmind reads format {SCHEMA_VERSION}",
        hint="run `plainmind sync`: it is rebuilt from your notes",
    )


class IndexFolder:
    """Names, the pointer, and garbage. Methods that say so need the writer lock."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.recoveries = os.path.join(self.path, "recoveries.json")
        self._pointer = os.path.join(self.path, "CURRENT")
        self._writer = os.path.join(self.path, "writer.lock")

    def make(self) -> None:
        """Make the folder, private to the user, if it is not there."""
        with explain_errors("make", self.path):
            make_folders(SYSTEM, self.path)

    def database(self, number: int) -> str:
        """The file of a generation."""
        return os.path.join(self.path, f"gen-{number:06d}.sqlite")

    def writer_lock(self, operation: str) -> AbstractContextManager[object]:
        """Wait to be the only one who changes the index."""
        return hold_lock(self._writer, operation=operation, timeout_s=_WRITER_TIMEOUT_S)

    def try_writer_lock(self, operation: str) -> HeldLock | None:
        """Be the only one who changes the index, if that is possible at once."""
        return try_lock(self._writer, operation=operation)

    def share(self, number: int) -> HeldLock | None:
        """Keep a generation from being deleted; None when it is just being deleted."""
        return try_lock(self._lock(number), operation="read the index", shared=True)

    def signature(self) -> Signature | None:
        """What changes whenever another generation is published; None before the first."""
        with explain_errors("look at", self._pointer):
            try:
                found = os.stat(self._pointer)
            except FileNotFoundError:
                return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def current(self) -> int | None:
        """The generation that answers; None before the first. Raises IndexCorrupt for a damaged pointer."""
        with explain_errors("read", self._pointer):
            try:
                content = read_file(self._pointer, most=64)
            except FileNotFoundError:
                return None
        number = content[4:-1]
        if content != b"gen-%b\n" % number or not number.isdigit() or not 6 <= len(number) <= 18:
            raise IndexCorrupt("the pointer to the index is damaged", hint="run `plainmind sync`")
        return int(number)

    def numbers(self) -> list[int]:
        """Every generation of which something is left, oldest first."""
        with explain_errors("list", self.path):
            found = {
                int(match[1]) for name in SYSTEM.listdir(self.path) if (match := _GENERATION.fullmatch(name))
            }
        return sorted(found)

    def next_number(self) -> int:
        """A number that was not used before. Needs the writer lock."""
        try:
            current = self.current() or 0
        except IndexCorrupt:
            current = 0
        return max([current, *self.numbers()]) + 1

    def publish(self, number: int) -> None:
        """Let a complete generation answer from now on, for every process. Needs the writer lock."""
        from plainmind.files.atomic import write_atomically

        write_atomically(self._pointer, f"gen-{number:06d}\n".encode())

    def collect(self) -> None:
        """Delete what no process uses: old generations, half-built ones of the dead. Needs the writer lock."""
        from plainmind.files.atomic import remove_abandoned

        current = self.current()
        for number in self.numbers():
            if number != current:
                self.delete(number)
        for path in (self._pointer, self.recoveries):
            remove_abandoned(path, SYSTEM)

    def delete(self, number: int) -> bool:
        """Delete one generation unless it is in use. Needs the writer lock."""
        with self._alone_with(number) as alone:
            if alone:
                with explain_errors("delete", self.database(number)):
                    _delete_database(self.database(number))
                    SYSTEM.unlink(self._lock(number))
        return alone

    def set_aside(self, number: int) -> None:
        """Keep a damaged generation, unless it is still in use, as the only bad one. Needs the writer lock."""
        with self._alone_with(number) as alone:
            if not alone:
                return
            self.delete_bad()
            name = self.database(number)
            with explain_errors("rename", name):
                for suffix in _WITH_LOGS:
                    with suppress(FileNotFoundError):
                        SYSTEM.replace(name + suffix, self._bad(number) + suffix)
                SYSTEM.unlink(self._lock(number))

    def bad(self) -> list[str]:
        """The names of damaged databases of which something is kept; who set one aside may have died half-way."""
        with explain_errors("list", self.path):
            names = SYSTEM.listdir(self.path)
        return sorted({match[1] for name in names if (match := _BAD.fullmatch(name))})

    def delete_bad(self) -> None:
        """Delete damaged databases. Needs the writer lock."""
        for name in self.bad():
            with explain_errors("delete", name):
                _delete_database(os.path.join(self.path, name))

    @contextmanager
    def _alone_with(self, number: int) -> Iterator[bool]:
        lock = try_lock(self._lock(number), operation="delete an old index")
        try:
            yield lock is not None
        finally:
            if lock is not None:
                lock.release()

    def _bad(self, number: int) -> str:
        return os.path.join(self.path, f"bad-{number:06d}.sqlite")

    def _lock(self, number: int) -> str:
        return os.path.join(self.path, f"gen-{number:06d}.lock")


def _delete_database(path: str) -> None:
    for suffix in _WITH_LOGS:  # the database last: logs without it are not found again
        with suppress(FileNotFoundError):
            SYSTEM.unlink(path + suffix)


def file_system_of(folder: str, *, mounts: str = MOUNTS) -> str:
    """The type of the file system that holds a folder, "ext4"; "" where the system does not tell."""
    place = os.path.realpath(folder)
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    longest, kind = -1, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if not right or len(fields) < 5:
            continue
        point = _unescaped(fields[4])
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # of two mounts on one point the later one is on top
            longest, kind = len(point), right.split(" ")[0]
    return kind


def allows_write_ahead(kind: str) -> bool:
    """Whether a write-ahead log is safe there: not where another machine may have the file open too."""
    return kind not in _SHARED_FILE_SYSTEMS and not kind.startswith("fuse")


def _unescaped(point: str) -> str:
    # The kernel writes the four characters that would break the format as octal escapes.
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point


def read_recoveries(path: str) -> list[Mapping[str, Any]]:
    """Every recovery on record, oldest first: `at` (seconds since 1970) and `reason`."""
    try:
        with open(path, encoding="utf-8") as file:
            found = parse_json(file.read())
        return [{"at": float(each["at"]), "reason": str(each["reason"])} for each in found]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError):
        return [{"at": time.time(), "reason": "the record of recoveries was damaged"}]


def describe_last(recoveries: Sequence[Mapping[str, Any]]) -> str | None:
    """How often the index was replaced and why it was the last time, in words; None when it never was."""
    if not recoveries:
        return None
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(recoveries[-1]["at"]))
    times = "once" if len(recoveries) == 1 else f"{len(recoveries)} times, last"
    return f"{times} on {at}: {recoveries[-1]['reason']}"


def record_recovery(path: str, reason: str) -> None:
    """Write down that the index is replaced; refuses when the last hour saw too many."""
    import json

    from plainmind.files.atomic import write_atomically

    now = time.time()
    known = read_recoveries(path)
    # A clock that was set back must not lock anyone out: what lies in the future is not recent.
    recent = [each for each in known if now - 3600 < each["at"] <= now]
    if len(recent) >= _MOST_RECOVERIES_PER_HOUR:
        raise IndexUnavailable(
            f"the index was damaged more than {_MOST_RECOVERIES_PER_HOUR} times within an hour, last: {reason}",
            hint="check the disk and its free space, and that only one version of plainmind uses this"
            " folder; then delete the index folder (your notes are not in it) and run `plainmind sync`",
        )
    kept = [*known, {"at": now, "reason": reason}][-_RECOVERIES_KEPT:]
    write_atomically(path, json.dumps(kept, indent=1).encode())
