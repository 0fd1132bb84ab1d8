"""One generation of the index, open: its connections, its lock, and when to let go of both."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from plainmind.files.system import HeldLock
from plainmind.index.drivers.sqlite.connection import connect, speaking_plainly, transaction
from plainmind.index.drivers.sqlite.view import SqliteCache, SqliteView
from plainmind.index.reader import Reader

_MOST_IDLE = 4


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
        self._guard = threading.Lock()
        self._one_writer = threading.Lock()
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
        with self.in_use(), speaking_plainly():
            with self._guard:
                db = self._idle.pop() if self._idle else None
            if db is None:
                db = connect(self.path, for_writing=False)
            try:
                db.execute("BEGIN")
                yield db
                db.execute("COMMIT")
            except BaseException:
                db.close(force=True)  # after an error, nobody can say in what state it is
                raise
            self._put_back(db)

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """One transaction: all of the block or nothing."""
        with self.in_use(), self._one_writer, speaking_plainly():
            if self._writer is None:
                self._writer = connect(self.path, for_writing=True)
            with transaction(self._writer):
                yield self._writer

    def retire(self) -> None:
        """Close as soon as nobody uses it; more than once does no harm."""
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
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._lock.release()
