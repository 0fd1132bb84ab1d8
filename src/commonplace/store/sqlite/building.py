"""A generation that is being built beside the one that answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import apsw

from commonplace.errors import IndexUnavailable, LockTimeout, StorageFailure
from commonplace.model import IndexFingerprint, Source
from commonplace.store.protocol import IndexStore, leave_as_is
from commonplace.store.sqlite import writer
from commonplace.store.sqlite.bulk import InBulk
from commonplace.store.sqlite.changes import Changes
from commonplace.store.sqlite.connection import (
    connect,
    create,
    empty_log,
    setting,
    speaking_plainly,
    transaction,
)
from commonplace.store.sqlite.folder import IndexFolder
from commonplace.store.sqlite.generation import Generation
from commonplace.store.sqlite.reader import SqliteReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# Nobody reads it yet, so the log may grow; each checkpoint waits for the disk twice.
_PAGES_BETWEEN_CHECKPOINTS = 8_000

_LOG_TIMEOUT_S = 10.0


class BuildingStore(Changes):
    """What `rebuild()` yields: it takes files as any store does, and nobody else sees it yet."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._bulk = self._placing = InBulk()
        self._one_at_a_time = threading.RLock()

    @classmethod
    def begin(
        cls, folder: IndexFolder, fingerprint: IndexFingerprint, reason: str, *, write_ahead: bool
    ) -> BuildingStore:
        """Create the next generation, locked so that nobody takes it for abandoned."""
        with folder.writer_lock("begin a rebuild"):
            number = folder.next_number()
            lock = folder.share(number)
            if lock is None:  # cannot be: the number is new, and whoever deletes holds the writer lock
                raise IndexUnavailable(f"generation {number} is locked", hint="try again")
            try:
                db = create(folder.database(number), write_ahead=write_ahead)
            except BaseException:
                lock.release()
                raise
        setting(db, f"wal_autocheckpoint = {_PAGES_BETWEEN_CHECKPOINTS}")
        generation = Generation(number, folder.database(number), lock, db)
        with generation.writing() as db:
            writer.write_fingerprint(db, fingerprint, reason)
        return cls(generation)

    def finish(self) -> None:
        """Make sure that it is sound, and bring everything into one file."""
        from commonplace.store.sqlite.digest import check_parts

        self._flush()
        with speaking_plainly():
            db = connect(self.generation.path, for_writing=True)
            try:
                check_parts(db)
            finally:
                db.close()
        self.settle()

    def settle(self) -> None:
        """Bring into one file what was written last."""
        self._flush()
        with speaking_plainly():
            db = connect(self.generation.path, for_writing=True)
            try:
                empty_log(db)
            finally:
                db.close()

    def reading(self) -> AbstractContextManager[SqliteReader]:
        """Look at what was built so far."""
        self._flush()
        return self.generation.reading()

    def erase(self, source: Source, *paths: str) -> None:
        """Drop files and every trace of them."""
        self._flush()
        erase_traces(self.generation.path, source, paths)

    def rebuild(
        self,
        fingerprint: IndexFingerprint,  # noqa: ARG002
        *,
        reason: str,  # noqa: ARG002
        catch_up: Callable[[IndexStore], None] = leave_as_is,  # noqa: ARG002
    ) -> NoReturn:
        """Refuse: this is a rebuild already."""
        raise IndexUnavailable("an index that is being built cannot be rebuilt", hint="leave the block first")

    def describe(self) -> Mapping[str, Any]:
        """Say what this is."""
        return {"driver": "sqlite", "path": self.generation.path, "building": True}

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part of what was built so far."""
        from commonplace.store.sqlite.sizes import sizes_of

        self._flush()
        with self.generation.viewing() as db:
            return sizes_of(db)

    def digest(self) -> str:
        """Hash what was built so far."""
        from commonplace.store.sqlite.digest import digest_generation

        self._flush()
        with self.generation.viewing() as db:
            return digest_generation(db)

    def close(self) -> None:
        """Do nothing: the end of the `rebuild()` block closes it."""

    @contextmanager
    def _changing(self, operation: str) -> Iterator[apsw.Connection]:  # noqa: ARG002
        with self._one_at_a_time:
            try:
                with self.generation.writing() as db:
                    yield db
            except BaseException:
                self._bulk.ended(well=False)
                raise
            self._bulk.ended(well=True)
        if self._bulk.is_full:
            self._flush()

    def _flush(self) -> None:
        """Write the postings that wait for it."""
        with self._one_at_a_time:
            if self._bulk.waits:
                with self.generation.writing() as db:
                    self._bulk.write(db)
                self._bulk.written()


def erase_traces(database: str, source: Source, paths: Iterable[str]) -> None:
    """Take files out of one generation, and out of its postings, free space and log."""
    with speaking_plainly():
        db = connect(database, for_writing=True)
        try:
            with transaction(db):
                for path in paths:
                    writer.remove_file(db, source, path, writer.AT_ONCE)
                writer.wipe_removed(db)
            _write_anew(db)
            deadline = time.monotonic() + _LOG_TIMEOUT_S
            while not empty_log(db):
                if time.monotonic() > deadline:
                    raise LockTimeout(
                        "the text is out of the index, but a reader keeps the log that still holds it",
                        hint="end long-running searches, then run `commonplace sync --force`: it makes the index anew",
                    )
                time.sleep(0.01)
        finally:
            db.close()


def _write_anew(db: apsw.Connection) -> None:
    """Write every page anew: zeros go over what is deleted, but not over what SQLite has moved to another page."""
    try:
        db.execute("VACUUM")
    except apsw.FullError as error:
        raise StorageFailure(
            "the text is out of the index, but the disk is too full to write over what may be left of it",
            hint="free as much space as the index takes, then forget it again",
        ) from error
