"""The index in SQLite: a folder of generations, one file each, for many threads and processes at once.

Vectors and keywords are written in the same transaction as their chunk. Read `schema.sql` first, then `view.py` (how
what is searched is packed, and read), `writer.py` (how it changes), `build.py` (how a new generation is filled),
`files.py` (which file is the index now), and this module, which ties them together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import apsw

from plainmind.base.errors import IndexCorrupt, IndexUnavailable, LockTimeout, PlainmindError, StorageFailure
from plainmind.base.lazy import Lock
from plainmind.base.model import Chunk, IndexFingerprint, Source
from plainmind.files.system import HeldLock
from plainmind.index.drivers.sqlite.files import (
    SCHEMA_VERSION,
    IndexFolder,
    OlderFormat,
    Signature,
    connect,
    create,
    explain_sqlite_errors,
    transaction,
)
from plainmind.index.drivers.sqlite.view import SqliteCache, SqliteView, deflate_text
from plainmind.index.reader import Reader
from plainmind.index.store import Store
from plainmind.index.vectors import choose_dots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.index.drivers.sqlite.build import SqliteBuild
    from plainmind.index.drivers.sqlite.contents import SqliteContents
    from plainmind.index.drivers.sqlite.writer import SqliteChange


_MOST_IDLE = 4  # connections of a generation
_ATTEMPTS = 200
_PAUSE_S = 0.005
_DAMAGED_POINTER = -1


class Generation:
    """A database that many threads read at once; each view has a connection of its own.

    `retire()` says that there is a newer one: the last user closes it.
    """

    def __init__(self, number: int, path: str, lock: HeldLock, db: apsw.Connection | None = None) -> None:
        """Open the database, or take over the connection that has just created it."""
        self.number = number
        self.path = path
        self._lock = lock
        self._cache = SqliteCache(number)
        self._guard = Lock()
        self._one_writer = Lock()
        self._idle: list[apsw.Connection] = []
        self._writer = db
        self._users = 0
        self._retired = False
        if db is None:
            self._idle.append(connect(path, for_writing=False))  # finds damage now rather than later

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the connections open during a block."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Keep the connections and the lock until `leave()`; only for a generation that is not retired yet."""
        with self._guard:
            self._users += 1

    def leave(self) -> None:
        """End what `enter()` began."""
        with self._guard:
            self._users -= 1
            self._close_if_over()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """One view: everything is read as it was at the start of the block."""
        with self.viewing() as db:
            yield Reader(SqliteView(db, self._cache))

    @contextmanager
    def viewing(self) -> Iterator[apsw.Connection]:
        """A connection in a transaction that only reads."""
        with self.in_use(), explain_sqlite_errors():
            with self._guard:
                db = self._idle.pop() if self._idle else None
            if db is None:
                db = connect(self.path, for_writing=False)
            try:
                db.execute("BEGIN")
                yield db
                db.execute("COMMIT")
            except BaseException:
                db.close(force=True)  # after an error, its state is not known
                raise
            self._put_back(db)

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """One transaction: all of the block or nothing."""
        with self.in_use(), self._one_writer, explain_sqlite_errors():
            if self._writer is None:
                self._writer = connect(self.path, for_writing=True)
            with transaction(self._writer):
                yield self._writer

    def retire(self) -> None:
        """Close as soon as it is not in use; more than once does no harm."""
        with self._guard:
            self._retired = True
            self._close_if_over()

    def _put_back(self, db: apsw.Connection) -> None:
        with self._guard:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(db)
                return
        db.close()

    def _close_if_over(self) -> None:
        if not self._retired or self._users:
            return
        for db in self._idle:
            db.close()
        self._idle.clear()
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                with suppress(
                    apsw.FullError, apsw.IOError
                ):  # what cannot be moved into the file stays in its log
                    writer.close()
        finally:
            self._lock.release()


class _Damage(Exception):
    """A generation cannot be opened: which one (None: there is none yet), and why."""

    def __init__(self, number: int | None, reason: object) -> None:
        super().__init__(str(reason))
        self.number = number
        self.is_old = isinstance(reason, OlderFormat)


class SqliteStore(Store):
    """An index in a folder. Not to be used on both sides of a fork: SQLite's locks do not survive it."""

    driver: SqliteDriver

    def __init__(self, folder: str, *, mounts: str | None = None) -> None:
        """Open the index in `folder`; both are created when missing. `mounts` stands for the kernel's mount table."""
        super().__init__(SqliteDriver(folder, mounts))


class SqliteDriver:
    """Follows the pointer to the newest generation before each view and each change."""

    is_being_built = False

    def __init__(self, folder: str, mounts: str | None) -> None:
        self._folder = IndexFolder(folder)
        self._mounts = mounts
        self._guard = Lock()  # never held while waiting for the writer lock
        self._generation: Generation | None = None
        self._signature: Signature | None = None

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """One consistent view, of the newest published index."""
        with self._setting_aside_damage(self._newest()) as generation, generation.reading() as reader:
            yield reader

    @contextmanager
    def changing(self, operation: str) -> Iterator[SqliteChange]:
        """One transaction, with the lock of those who write."""
        from plainmind.index.drivers.sqlite.writer import AT_ONCE, SqliteChange

        with (
            self._setting_aside_damage(self._folder_in_order(operation)) as generation,
            generation.writing() as db,
        ):
            yield SqliteChange(db, AT_ONCE)

    def joined(self) -> AbstractContextManager[None]:
        """Make each change at once: others wait to read it, and to write."""
        return nullcontext()

    def body_of(self, chunk: Chunk) -> str | bytes:
        """The text, deflated."""
        return deflate_text(chunk.text)

    @contextmanager
    def build(self, fingerprint: IndexFingerprint, reason: str) -> Iterator[SqliteBuild]:
        """Build a new generation beside the one that answers."""
        from plainmind.index.drivers.sqlite.build import SqliteBuild

        self._folder.make()
        beside = SqliteBuild.begin(self._folder, fingerprint, reason, write_ahead=self._write_ahead())
        try:
            yield beside
        except BaseException:
            beside.generation.retire()
            self._collect()  # takes it, unless it was published: then it is whole, and answers
            raise
        beside.generation.retire()
        with self._newest():  # lets go of the old generation, so that it can be deleted
            self._collect()

    def erase(self, source: Source, paths: Sequence[str]) -> None:
        """Drop files so that their text is in no byte of any generation."""
        try:
            self._erase(source, paths)
        except IndexCorrupt:
            self._erase(source, paths)  # the damaged one is set aside by now, and goes with all that it holds

    def _erase(self, source: Source, paths: Sequence[str]) -> None:
        from plainmind.index.drivers.sqlite.writer import erase_traces

        with self._setting_aside_damage(self._folder_in_order("erase files")):
            current = self._folder.current()
            for number in self._folder.numbers():
                if number == current:
                    erase_traces(self._folder.database(number), source, paths)
                elif not self._folder.delete(number):
                    self._erase_beside(number, source, paths)
            self._folder.delete_bad()

    def _erase_beside(self, number: int, source: Source, paths: Iterable[str]) -> None:
        """Erase from a generation that another one still reads or builds."""
        from plainmind.index.drivers.sqlite.writer import erase_traces

        database = self._folder.database(number)
        if not os.path.exists(database):
            return  # the process that has its lock came too late for it, and is about to see that
        try:
            erase_traces(database, source, paths)
        except IndexCorrupt as error:
            # The one that answers is not damaged, and must not be set aside for this one.
            raise IndexUnavailable(
                f"an old index that another process uses still holds the text: {error}",
                hint="end the other processes that use this memory, then run `plainmind sync --force`",
            ) from error

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        from plainmind.index.drivers.sqlite.files import describe_last, read_recoveries

        with self._setting_aside_damage(self._newest()) as generation, generation.reading() as reader:
            fingerprint = reader.fingerprint()
            path = generation.path
        recoveries = read_recoveries(self._folder.recoveries)
        kernel, _ = choose_dots()
        return {
            "driver": "sqlite",
            "path": path,
            "generation": generation.number,
            "generations": len(self._folder.numbers()),
            "bytes": sum(_size(path + end) for end in ("", "-wal")),
            "schema": SCHEMA_VERSION,
            "sqlite": apsw.sqlite_lib_version(),
            "journal": "wal" if self._write_ahead() else "truncate (no write-ahead log on a shared file system)",
            "fileSystem": self._file_system(),
            "vector": {
                "dims": fingerprint.embedder.dims if fingerprint else 0, "stored": "int8", "kernel": kernel,
            },
            "recoveries": len(recoveries),
            "recovered": describe_last(recoveries),
            "setAside": self._folder.bad(),
        }  # fmt: skip

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part."""
        from plainmind.index.drivers.sqlite.contents import sizes_of

        with self._setting_aside_damage(self._newest()) as generation, generation.viewing() as db:
            return sizes_of(db)

    @contextmanager
    def contents(self) -> Iterator[SqliteContents]:
        """All that the newest published index holds."""
        from plainmind.index.drivers.sqlite.contents import SqliteContents

        with self._setting_aside_damage(self._newest()) as generation, generation.viewing() as db:
            yield SqliteContents(db)

    def close(self) -> None:
        """Let go of files and locks; the next use opens them again."""
        with self._guard:
            generation, self._generation = self._generation, None
        if generation is not None:
            generation.retire()

    @contextmanager
    def _folder_in_order(self, operation: str) -> Iterator[Generation]:
        """Hold the writer lock with the newest generation open: the pointer cannot change any more."""
        self._folder.make()
        with self._folder.writer_lock(operation), self._newest(writer_locked=True) as generation:
            yield generation

    @contextmanager
    def _setting_aside_damage(self, opened: AbstractContextManager[Generation]) -> Iterator[Generation]:
        """When a block finds its generation damaged, put an empty one in its place once it is closed."""
        number: int | None = None
        try:
            with opened as generation:
                number = generation.number
                yield generation
        except IndexCorrupt as error:
            if number is not None:
                self._recover(_Damage(number, error), writer_locked=False)
            raise

    @contextmanager
    def _newest(self, *, writer_locked: bool = False) -> Iterator[Generation]:
        for _ in range(_ATTEMPTS):
            try:
                generation, old = self._follow_pointer()
            except _Damage as damage:
                self._recover(damage, writer_locked=writer_locked)
                continue
            try:
                if old is not None:
                    old.retire()
                    if not writer_locked:
                        self._collect()
                yield generation
            finally:
                generation.leave()
            return
        raise IndexUnavailable("the index changes faster than it can be opened", hint="try again")

    def _follow_pointer(self) -> tuple[Generation, Generation | None]:
        """The generation to use now, entered, and the one it has replaced.

        Entered before the guard is let go: another thread can only retire it afterwards, and then it stays open.
        """
        with self._guard:
            signature = self._folder.signature()
            if self._generation is not None and signature == self._signature:
                self._generation.enter()
                return self._generation, None
            opened = self._open()
            opened.enter()
            old, self._generation, self._signature = self._generation, opened, signature
            return opened, old

    def _open(self) -> Generation:
        for _ in range(_ATTEMPTS):
            try:
                number = self._folder.current()
            except IndexCorrupt as error:
                raise _Damage(_DAMAGED_POINTER, error) from error
            if number is None:
                raise _Damage(None, "there is no index yet")
            lock = self._folder.share(number)
            if lock is None or self._folder.current() != number:
                if lock is not None:
                    lock.release()
                time.sleep(_PAUSE_S)
                continue
            try:
                return Generation(number, self._folder.database(number), lock)
            except IndexCorrupt as error:
                lock.release()
                raise _Damage(number, error) from error
            except BaseException:
                lock.release()
                raise
        raise IndexUnavailable("the index changes faster than it can be opened", hint="try again")

    def _recover(self, damage: _Damage, *, writer_locked: bool) -> None:
        """Put an empty generation, which asks for a rebuild, in the place of a damaged or missing one."""
        try:
            self._replace(damage, writer_locked=writer_locked)
        except (IndexUnavailable, LockTimeout, StorageFailure) as error:
            if damage.number is None:
                raise
            raise IndexCorrupt(f"{damage}, and could not be replaced: {error}", hint=error.hint) from error

    def _replace(self, damage: _Damage, *, writer_locked: bool) -> None:
        self._folder.make()
        with nullcontext() if writer_locked else self._folder.writer_lock("replace a damaged index"):
            try:
                now = self._folder.current()
            except IndexCorrupt:
                now = _DAMAGED_POINTER
            if now != damage.number:
                return  # another process was faster
            self.close()
            broken = None if damage.is_old else damage.number
            if broken is not None:
                from plainmind.index.drivers.sqlite.files import record_recovery

                record_recovery(self._folder.recoveries, str(damage))
            number = self._folder.next_number()
            create(self._folder.database(number), write_ahead=self._write_ahead()).close()
            self._folder.publish(number)
            if broken is not None and broken != _DAMAGED_POINTER:
                self._folder.set_aside(broken)
            self._folder.collect()

    def _collect(self) -> None:
        # It was not asked for: a process that cannot (another writes, a read-only disk) leaves it to the next one.
        with suppress(PlainmindError):
            lock = self._folder.try_writer_lock("delete old indexes")
            if lock is not None:
                with lock:
                    self._folder.collect()

    def _write_ahead(self) -> bool:
        from plainmind.index.drivers.sqlite.files import allows_write_ahead

        return allows_write_ahead(self._file_system())

    def _file_system(self) -> str:
        from plainmind.index.drivers.sqlite.files import MOUNTS, file_system_of

        return file_system_of(self._folder.path, mounts=self._mounts or MOUNTS)


def _size(path: str) -> int:
    """How large a file is; one that another process has just removed has no size."""
    with suppress(FileNotFoundError):
        return os.path.getsize(path)
    return 0
