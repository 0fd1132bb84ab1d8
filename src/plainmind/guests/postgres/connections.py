"""Connections to a server: a pool, deadlines for a server that says nothing, and its errors in our words.

A connection is lent to one thread at a time and used again: a new one costs more than a search.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import IsolationLevel, errors

from plainmind.base.errors import IndexCorrupt, IndexUnavailable, LockTimeout, StorageFailure
from plainmind.guests.postgres import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    R = TypeVar("R")
    T = TypeVar("T")
    Waiting = Generator[Any, Any, R]

MOST_CONNECTIONS = 16
# Longer than a statement may take by its own deadline, which the server keeps as long as it lives.
PATIENCE_S = 75.0
_WAIT_S = 30.0
_NOTES_ARE_SAFE = "your notes are safe, they are files"

# Where no logging is configured, psycopg's remarks about a lost connection would go to standard error, beside the
# error that we raise for it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

# The server, too, must notice soon that a host is gone: until then its locks keep the others waiting.
_VECTOR_TYPE = """SELECT t.oid, t.typarray, pg_backend_pid(),
                         set_config('tcp_keepalives_idle', '15', false),
                         set_config('tcp_keepalives_interval', '5', false),
                         set_config('tcp_keepalives_count', '3', false)
                    FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace
                   WHERE t.typname = 'halfvec' AND e.extname = 'vector'"""


@contextmanager
def plain_errors(operation: str) -> Iterator[None]:  # noqa: C901 (one branch for each kind of error)
    """Turn the errors of PostgreSQL into ours; never with the text of a note, which PostgreSQL likes to quote."""
    try:
        yield
    except errors.LockNotAvailable as error:
        raise LockTimeout(
            f"others keep the index busy: could not {operation} in time", hint="try again"
        ) from error
    except (errors.QueryCanceled, errors.IdleInTransactionSessionTimeout) as error:
        raise IndexUnavailable(
            f"the database took too long to {operation}", hint="try again, or see what keeps it busy"
        ) from error
    except errors.DiskFull as error:
        raise StorageFailure(
            f"the disk of the database is full: could not {operation}", hint="free some space on the server"
        ) from error
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        raise IndexCorrupt(
            f"the database has a damaged file: {first_line(error)}",
            hint="run `plainmind sync --force`: the index is made anew from your notes; then look at the server's disk",
        ) from error
    except (errors.UndefinedTable, errors.SerializationFailure) as error:
        raise IndexUnavailable("the index was made anew meanwhile", hint="try again") from error
    except errors.DeadlockDetected as error:
        raise IndexUnavailable(f"others were in the way: could not {operation}", hint="try again") from error
    except errors.ReadOnlySqlTransaction as error:
        raise IndexUnavailable(
            f"this server only answers, it takes no changes: could not {operation}",
            hint="`store.dsn` must name the server that takes changes; name several hosts, and the one that does is"
            " found after a failover too; a replica goes into `store.readDsn`",
        ) from error
    except errors.InsufficientPrivilege as error:
        raise IndexUnavailable(
            f"the database does not let this role {operation}: {first_line(error)}",
            hint="let the owner of the schema run `plainmind migrate-store --prepare` for this role",
        ) from error
    except psycopg.OperationalError as error:
        raise _unreachable(error) from error
    except psycopg.Error as error:
        raise IndexUnavailable(
            f"the database could not {operation}: {first_line(error)}", hint=f"see its log; {_NOTES_ARE_SAFE}"
        ) from error


def first_line(error: psycopg.Error) -> str:
    """The first line of what PostgreSQL says, without the details: those quote rows."""
    text = error.diag.message_primary or str(error).removeprefix("connection is bad: ")
    return text.strip().partition("\n")[0] or type(error).__name__


def _unreachable(error: psycopg.Error) -> IndexUnavailable:
    return IndexUnavailable(
        f"the database cannot be reached: {first_line(error)}",
        hint=f"start it, or correct `store.dsn`; {_NOTES_ARE_SAFE}",
    )


def no_vectors() -> IndexUnavailable:
    """The error of a server without pgvector."""
    return IndexUnavailable(
        "this PostgreSQL has no pgvector",
        hint="install pgvector 0.8 or newer on the server, then let an administrator run `CREATE EXTENSION vector`"
        " in this database",
    )


class Connection(psycopg.Connection["Any"]):
    """Gives up on a server that has not answered for `patience_s`, and is closed then.

    A server that hangs, or is cut off, says nothing at all.
    """

    patience_s: float = PATIENCE_S

    def wait(self, gen: Waiting[R], *others: Any, **named: Any) -> R:
        """Let the server answer."""
        return super().wait(self._until(time.monotonic() + self.patience_s, gen), *others, **named)

    def _until(self, deadline: float, gen: Waiting[R]) -> Waiting[R]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if (
                    not ready and time.monotonic() > deadline
                ):  # nothing has come, as happens ten times a second
                    self.close()
                    raise psycopg.OperationalError("it does not answer any more")
                wanted = gen.send(ready)
        except StopIteration as ended:
            answer: R = ended.value
            return answer


class Connections:
    """A pool that starts no thread: a thread that finds no idle connection opens one."""

    def __init__(self, dsn: str, *, read_only: bool) -> None:
        self._dsn = dsn
        self._read_only = read_only
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._guard = threading.Lock()
        self._idle: list[Connection] = []

    @contextmanager
    def transaction(self, begin: Callable[[Connection], T], operation: str) -> Iterator[tuple[Connection, T]]:
        """One transaction, whose first statements `begin` runs: again, on a new connection, if the old one was dead."""
        with plain_errors(operation), self._slot():
            db, begun = self._begin(begin)
            try:
                yield db, begun
                db.commit()
            except BaseException:
                self._take_back(db)
                raise
            self._take_back(db)

    @contextmanager
    def separate(self, operation: str, *, patience_s: float = PATIENCE_S) -> Iterator[Connection]:
        """A connection outside of the pool, in which each statement is a transaction. It knows no vectors."""
        with plain_errors(operation):
            db = self._open()
            db.patience_s = patience_s
            try:
                yield db
            finally:
                db.close()

    def close(self) -> None:
        """Close what is idle; the next use opens new ones."""
        with self._guard:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if not self._room.acquire(timeout=_WAIT_S):
            raise LockTimeout("too many threads of this process use the index at once", hint="try again")
        try:
            yield
        finally:
            self._room.release()

    def _begin(self, begin: Callable[[Connection], T]) -> tuple[Connection, T]:
        with self._guard:
            db = self._idle.pop() if self._idle else None
        if db is not None:
            try:
                return db, begin(db)
            except psycopg.OperationalError:
                # The server was restarted since: nothing has happened yet, and none of the others is any better.
                self._take_back(db)
                if not db.closed:
                    raise
                self.close()
            except BaseException:
                self._take_back(db)
                raise
        db = self._connect()
        try:
            return db, begin(db)
        except BaseException:
            self._take_back(db)
            raise

    def _take_back(self, db: Connection) -> None:
        """Keep a connection for the next thread, unless it is broken."""
        with suppress(psycopg.Error):
            db.rollback()  # after a commit there is nothing to do
        if db.closed or db.broken:
            db.close()
            return
        with self._guard:
            self._idle.append(db)

    def _connect(self) -> Connection:
        db = self._open()
        try:
            _register_types(db)
            db.autocommit = False
            if self._read_only:
                db.read_only = True
                db.isolation_level = IsolationLevel.REPEATABLE_READ
            else:
                # Whatever the server's default: who has waited for a lock must see what the other did.
                db.isolation_level = IsolationLevel.READ_COMMITTED
        except BaseException:
            db.close()
            raise
        return db

    def _open(self) -> Connection:
        try:
            return Connection.connect(self._dsn, autocommit=True)
        except psycopg.OperationalError as error:
            raise _unreachable(error) from error


def _register_types(db: Connection) -> None:
    row = db.execute(_VECTOR_TYPE, prepare=False).fetchone()
    if row is None:
        raise no_vectors()
    halfvec, halfvecs, process, *_ = row
    wire.register(db, halfvec, halfvecs)
    if process != db.info.backend_pid:
        # There is a pooler between: what was prepared for one server process another does not know.
        db.prepare_threshold = None
