"""A generation that is being built beside the one that answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import apsw

from plainmind.base.errors import IndexUnavailable
from plainmind.base.model import EmbeddedChunk, IndexFingerprint, Source
from plainmind.index.drivers.sqlite import writer
from plainmind.index.drivers.sqlite.bulk import InBulk
from plainmind.index.drivers.sqlite.changes import Changes
from plainmind.index.drivers.sqlite.connection import connect, create, empty_log, setting, speaking_plainly
from plainmind.index.drivers.sqlite.erasing import erase_traces
from plainmind.index.drivers.sqlite.folder import IndexFolder
from plainmind.index.drivers.sqlite.generation import Generation
from plainmind.index.protocol import IndexStore, leave_as_is
from plainmind.index.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# Nobody reads it yet, so the log may grow; each checkpoint waits for the disk twice.
_PAGES_BETWEEN_CHECKPOINTS = 8_000


class BuildingStore(Changes):
    """What `rebuild()` yields: it takes files as any store does, and nobody else sees it yet."""

    neighbours = None

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._bulk = InBulk()
        self._one_at_a_time = threading.RLock()
        self._joint: _Joint | None = None

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
        from plainmind.index.drivers.sqlite.digest import check_parts

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

    def reading(self) -> AbstractContextManager[Reader]:
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
        from plainmind.index.drivers.sqlite.sizes import sizes_of

        self._flush()
        with self.generation.viewing() as db:
            return sizes_of(db)

    def digest(self) -> str:
        """Hash what was built so far."""
        from plainmind.index.drivers.sqlite.digest import digest_generation

        self._flush()
        with self.generation.viewing() as db:
            return digest_generation(db)

    def close(self) -> None:
        """Do nothing: the end of the `rebuild()` block closes it."""

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Make all changes of a block in one transaction: the commit of a small file takes longer than the file.

        Who erases text waits for the end of it: a block must not wait for anything slow.
        """
        with self._one_at_a_time, self._changing("index files") as db:
            if self._joint is not None:
                yield  # of a block that is joined already
                return
            self._joint = joint = _Joint(db)
            try:
                yield
            finally:
                self._joint = None
            if joint.has_failed:
                raise IndexUnavailable(
                    "a change failed, and with it those it was joined with", hint="try again"
                )

    @contextmanager
    def _changing(self, operation: str) -> Iterator[apsw.Connection]:  # noqa: ARG002
        with self._one_at_a_time:
            if self._joint is not None:
                with self._joint.changing() as db:
                    yield db
                return
            try:
                with self.generation.writing() as db:
                    yield db
            except BaseException:
                self._bulk.ended(well=False)
                raise
            self._bulk.ended(well=True)
        self._write_full_segments()

    def _placing(self) -> writer.Placing:
        return self._bulk

    def _portions(self, chunks: Sequence[EmbeddedChunk]) -> Iterable[Sequence[writer.Prepared]]:
        """Prepare chunks while they are written: the terms of a large file take many times the room of its text."""
        return writer.in_portions(chunks)

    def _flush(self) -> None:
        """Write all postings that wait for it."""
        with self._one_at_a_time:
            if self._joint is not None:
                raise IndexUnavailable(
                    "changes are being joined", hint="leave the block, then read the index"
                )
            self._bulk.complete()
            self._write_full_segments()

    def _write_full_segments(self) -> None:
        with self._one_at_a_time:
            if self._bulk.is_full:
                with self.generation.writing() as db:
                    self._bulk.write(db)
                self._bulk.written()


class _Joint:
    """The one transaction of changes that are made together."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.has_failed = False

    @contextmanager
    def changing(self) -> Iterator[apsw.Connection]:
        """One of the changes; when it fails, half of it is in the transaction, which must not be kept."""
        try:
            yield self._db
        except BaseException:
            self.has_failed = True
            raise
