"""Connections to one server, lent to one thread at a time and used again: a new one costs more than a search."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from plainmind.base.errors import ConfigError, LockTimeout
from plainmind.guests.postgres import halfvec
from plainmind.guests.postgres.failures import speaking_plainly, unreachable
from plainmind.guests.postgres.patience import PATIENCE_S, PatientConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")
    Db = PatientConnection

MOST_CONNECTIONS = 16
_WAIT_S = 30.0
# A host that is gone says nothing: the kernel must give up, and soon.
_DEFAULTS = {
    "connect_timeout": "5",
    "application_name": "plainmind",
    "client_encoding": "utf8",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
# Where nobody has configured logging, psycopg's remarks about a lost connection would go to standard error, beside the
# error that we raise for it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


_WRITES = "store.dsn"


def checked_dsn(dsn: str, *, key: str = _WRITES) -> str:
    """A DSN with deadlines, and with TLS to other machines unless it says itself how."""
    try:
        facts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # Neither the error's own words nor the error itself: they may quote a password.
        raise _unreadable(key) from None
    more = {name: setting for name, setting in _DEFAULTS.items() if name not in facts}
    if key == _WRITES and len(_hosts(facts)) > 1 and "target_session_attrs" not in facts:
        more["target_session_attrs"] = "read-write"  # which of them that is changes with a failover
    if "sslmode" not in facts and "PGSSLMODE" not in os.environ and not _stays_here(facts):
        more["sslmode"] = "require"
    return make_conninfo(dsn, **more)


def hosts_elsewhere(dsn: str) -> list[str]:
    """The other machines that a DSN leads to, as it names them; raises ConfigError when it cannot be read."""
    try:
        facts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise _unreadable(_WRITES) from None
    if _stays_here(facts):
        return []
    if service := facts.get("service") or os.environ.get("PGSERVICE"):
        return [f"the service `{service}`"]
    return [host for host in _hosts(facts) if not _is_here(host)]


def _stays_here(facts: dict[str, Any]) -> bool:
    """Whether every host is a socket of this machine or its loopback."""
    if facts.get("service") or os.environ.get("PGSERVICE"):
        return False  # a file elsewhere names the host
    return all(_is_here(host) for host in _hosts(facts))


def _hosts(facts: dict[str, Any]) -> list[str]:
    named = (
        facts.get("hostaddr") or os.environ.get("PGHOSTADDR") or facts.get("host") or os.environ.get("PGHOST")
    )
    return str(named or "").split(",")


def _unreadable(key: str) -> ConfigError:
    return ConfigError(
        "the DSN of the database cannot be read",
        key=key,
        hint="write it as postgresql://role@host/database or as host=… dbname=… user=…",
    )


def _is_here(host: str) -> bool:
    if not host or host == "localhost" or host.startswith(("/", "@")):
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False  # a name, and where it leads is for others to say


class Connections:
    """A pool that starts no thread: whoever finds no idle connection opens one."""

    def __init__(self, dsn: str, *, read_only: bool) -> None:
        self._dsn = dsn
        self._read_only = read_only
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._guard = threading.Lock()
        self._idle: list[Db] = []

    @contextmanager
    def transaction(self, begin: Callable[[Db], T], operation: str) -> Iterator[tuple[Db, T]]:
        """One transaction, whose first statements `begin` runs: again, on a new connection, if the old one was dead."""
        with speaking_plainly(operation), self._one_of_many():
            db, begun = self._begun(begin)
            try:
                yield db, begun
                db.commit()
            except BaseException:
                self._take_back(db)
                raise
            self._take_back(db)

    @contextmanager
    def own(self, operation: str, *, patience_s: float = PATIENCE_S) -> Iterator[Db]:
        """A connection outside of the pool, in which each statement is a transaction. It knows no vectors."""
        with speaking_plainly(operation):
            db = self._reached()
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
    def _one_of_many(self) -> Iterator[None]:
        if not self._room.acquire(timeout=_WAIT_S):
            raise LockTimeout("too many threads of this process use the index at once", hint="try again")
        try:
            yield
        finally:
            self._room.release()

    def _begun(self, begin: Callable[[Db], T]) -> tuple[Db, T]:
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

    def _take_back(self, db: Db) -> None:
        """Keep a connection for the next one, unless it is broken."""
        with suppress(psycopg.Error):
            db.rollback()  # after a commit there is nothing to do
        if db.closed or db.broken:
            db.close()
            return
        with self._guard:
            self._idle.append(db)

    def _connect(self) -> Db:
        db = self._reached()
        try:
            if not halfvec.register(db):
                db.prepare_threshold = None  # what was prepared for one server process another does not know
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

    def _reached(self) -> Db:
        try:
            return PatientConnection.connect(self._dsn, autocommit=True)
        except psycopg.OperationalError as error:
            raise unreachable(error) from error
