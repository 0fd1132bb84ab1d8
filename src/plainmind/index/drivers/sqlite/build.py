"""A generation that is being built beside the one that answers, its segments large and written when they are full."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import apsw

from plainmind.base.errors import IndexUnavailable
from plainmind.base.model import Chunk, IndexFingerprint, Source
from plainmind.index.drivers.sqlite import Generation
from plainmind.index.drivers.sqlite.contents import SqliteContents, check_parts, sizes_of
from plainmind.index.drivers.sqlite.files import (
    IndexFolder,
    connect,
    create,
    empty_log,
    explain_sqlite_errors,
    rows,
    setting,
)
from plainmind.index.drivers.sqlite.view import MOST, deflate_text
from plainmind.index.drivers.sqlite.writer import (
    AT_ONCE,
    Packed,
    Ready,
    SqliteChange,
    erase_traces,
    fill,
    next_contents,
    reserve,
    write_fingerprint,
)
from plainmind.index.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# It is not read yet, so the log may grow; each checkpoint waits for the disk twice.
_PAGES_BETWEEN_CHECKPOINTS = 8_000
# What collected postings may take; beside them a chunk needs only its length, its signs and a byte.
_MOST_BYTES = 56_000_000

_IDS_BETWEEN = "SELECT id FROM chunks WHERE id >= ? AND id < ?"


class _Waiting:
    """A segment whose chunks have rows already, and no postings yet."""

    def __init__(self, first_id: int, dims: int) -> None:
        self.first_id = first_id
        self.packed = Packed(dims)

    @property
    def is_full(self) -> bool:
        return len(self.packed.absent) == MOST or self.packed.postings.bytes_used > _MOST_BYTES


class InBulk:
    """Chunks are found only after `write()`. Not for threads at once: the generation has one writer at a time."""

    def __init__(self) -> None:
        self._filling: dict[Source, _Waiting] = {}
        self._full: list[_Waiting] = []
        self._uncertain: list[_Waiting] = []  # begun in a transaction that has not ended

    def put(
        self, db: apsw.Connection, source: Source, chunks: Sequence[Ready], *, dims: int, revision: int
    ) -> list[int]:
        """Pack the chunks."""
        ids = []
        for each in chunks:
            waiting = self._filling.get(source) or self._begin(db, source, dims, revision)
            position = len(waiting.packed.absent)
            waiting.packed.add(each.prepared.length, each.signs, each.scope)
            waiting.packed.postings.add(position, each.prepared.counted)
            ids.append(waiting.first_id + position)
            if waiting.is_full:
                self._full.append(self._filling.pop(source))
        return ids

    def take(self, db: apsw.Connection, ids: Iterable[int], *, dims: int, revision: int) -> None:
        """Leave holes in what is written; what waits is looked through when it is written."""
        AT_ONCE.take(db, ids, dims=dims, revision=revision)

    def complete(self) -> None:
        """Let nothing more come to the segments that wait: all of them are to be written."""
        self._full += self._filling.values()
        self._filling.clear()

    def write(self, db: apsw.Connection) -> None:
        """Write the segments that are full, without what was removed, or rolled back, since it was packed."""
        for waiting in self._full:
            first_id, count = waiting.first_id, len(waiting.packed.absent)
            living = {id_ - first_id for (id_,) in rows(db, _IDS_BETWEEN, (first_id, first_id + count))}
            dead = frozenset(range(count)).difference(living)
            if dead:
                waiting.packed.leave_out(dead)
            fill(db, first_id, waiting.packed, dead=len(dead), revision=next_contents(db))

    def written(self) -> None:
        """Let go of what `write()` has written, when its transaction has ended well."""
        self._full.clear()

    def ended(self, *, well: bool) -> None:
        """Hear how a transaction ended: the ids of a segment that was begun in a failed one are not ours."""
        if not well:
            self._full = [each for each in self._full if each not in self._uncertain]
            self._filling = {
                source: each for source, each in self._filling.items() if each not in self._uncertain
            }
        self._uncertain.clear()

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        return bool(self._full)

    def _begin(self, db: apsw.Connection, source: Source, dims: int, revision: int) -> _Waiting:
        begun = _Waiting(reserve(db, source, revision=revision), dims)
        self._filling[source] = begun
        self._uncertain.append(begun)
        return begun


class SqliteBuild:
    """Takes files as any index does; only its builder sees it."""

    is_being_built = True

    def __init__(self, folder: IndexFolder, generation: Generation) -> None:
        self.generation = generation
        self._folder = folder
        self._bulk = InBulk()
        self._one_at_a_time = threading.RLock()
        self._joint: _Joint | None = None

    @classmethod
    def begin(
        cls, folder: IndexFolder, fingerprint: IndexFingerprint, reason: str, *, write_ahead: bool
    ) -> SqliteBuild:
        """Create the next generation, locked so that it is not taken for abandoned."""
        with folder.writer_lock("begin a rebuild"):
            number = folder.next_number()
            lock = folder.share(number)
            if lock is None:  # cannot be: the number is new, and only the holder of the writer lock deletes
                raise IndexUnavailable(f"generation {number} is locked", hint="try again")
            try:
                db = create(folder.database(number), write_ahead=write_ahead)
            except BaseException:
                lock.release()
                raise
        setting(db, f"wal_autocheckpoint = {_PAGES_BETWEEN_CHECKPOINTS}")
        generation = Generation(number, folder.database(number), lock, db)
        with generation.writing() as db:
            write_fingerprint(db, fingerprint, reason)
        return cls(folder, generation)

    def finish(self) -> None:
        """Make sure that it is sound, and bring everything into one file."""
        self._flush()
        with explain_sqlite_errors():
            db = connect(self.generation.path, for_writing=True)
            try:
                check_parts(db)
            finally:
                db.close()
        self._settle()

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Hold the lock of those who write, and let this generation answer at the end."""
        with self._folder.writer_lock("publish a rebuild"):
            yield
            self._settle()
            self._folder.publish(self.generation.number)

    def reading(self) -> AbstractContextManager[Reader]:
        """Look at what was built so far."""
        self._flush()
        return self.generation.reading()

    @contextmanager
    def changing(self, operation: str) -> Iterator[SqliteChange]:  # noqa: ARG002
        """Make a change in a transaction of its own, or in that of the changes it is joined with."""
        with self._writing() as db:
            yield SqliteChange(db, self._bulk)

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Make all changes of a block in one transaction: the commit of a small file takes longer than the file.

        Who erases text waits for the end of it: a block must not wait for anything slow.
        """
        with self._one_at_a_time, self._writing() as db:
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

    def body_of(self, chunk: Chunk) -> str | bytes:
        """The text, deflated."""
        return deflate_text(chunk.text)

    def build(self, fingerprint: IndexFingerprint, reason: str) -> NoReturn:  # noqa: ARG002
        """Refuse: this is a rebuild already."""
        raise IndexUnavailable("an index that is being built cannot be rebuilt", hint="leave the block first")

    def erase(self, source: Source, paths: Sequence[str]) -> None:
        """Drop files and every trace of them."""
        self._flush()
        erase_traces(self.generation.path, source, paths)

    def describe(self) -> Mapping[str, Any]:
        """Say what this is."""
        return {"driver": "sqlite", "path": self.generation.path, "building": True}

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part of what was built so far."""
        self._flush()
        with self.generation.viewing() as db:
            return sizes_of(db)

    @contextmanager
    def contents(self) -> Iterator[SqliteContents]:
        """All that was built so far."""
        self._flush()
        with self.generation.viewing() as db:
            yield SqliteContents(db)

    def close(self) -> None:
        """Do nothing: the end of the `build()` block closes it."""

    def _settle(self) -> None:
        """Bring into one file what was written last."""
        self._flush()
        with explain_sqlite_errors():
            db = connect(self.generation.path, for_writing=True)
            try:
                empty_log(db)
            finally:
                db.close()

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
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
