"""What we owe to providers and know about them, in one small file that outlives processes: usage, pauses, jobs.

Private to its owner, shared by processes, thrown away only when damaged.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import apsw

from plainmind.base.errors import StorageFailure
from plainmind.base.value import field, value
from plainmind.embed.cache import Damaged, SharedFile, inode_of, set_aside, write_transaction
from plainmind.guests.remote.failures import Breaker, BreakerPolicy
from plainmind.guests.remote.wire import ProviderKey

_Outcome = TypeVar("_Outcome")

_REFUSED_FOR_S = 24 * 3600.0
_KEPT_DAYS_S = 400 * 86_400.0
_POLICY = BreakerPolicy()

_USAGE = """
    SELECT day, provider, model, endpoint, requests, failures, tokens, cost
      FROM usage
     WHERE day >= :since
     ORDER BY day, provider, model, endpoint
"""
_TOKENS = "SELECT coalesce(sum(tokens), 0) FROM usage WHERE day = :day"
_ADD_USAGE = """
    INSERT INTO usage (day, provider, model, endpoint, requests, failures, tokens, cost)
    VALUES (:day, :provider, :model, :endpoint, :requests, :failures, max(0, :tokens), max(0, :cost))
        ON CONFLICT DO UPDATE
       SET requests = requests + :requests,
           failures = failures + :failures,
           tokens = max(0, tokens + :tokens),
           cost = max(0, cost + :cost)
"""
_DROP_OLD_USAGE = "DELETE FROM usage WHERE day < :day"
_DIMS = "SELECT dims FROM dims WHERE provider = :provider AND model = :model AND endpoint = :endpoint"
_SET_DIMS = "INSERT OR REPLACE INTO dims VALUES (:provider, :model, :endpoint, :dims)"
_REFUSED = """
    SELECT hash
      FROM refusals
     WHERE endpoint = :endpoint AND until > :now AND hash IN (SELECT value FROM json_each(:hashes))
"""
_SET_REFUSED = "INSERT OR REPLACE INTO refusals VALUES (:endpoint, :hash, :until)"
_DROP_REFUSED = "DELETE FROM refusals WHERE until <= :now"
_SALT = "SELECT value FROM facts WHERE name = 'salt'"
_SAVE_JOB = """
    INSERT INTO jobs (id, provider, model, endpoint, state, remote_id, items, created, updated, facts)
    VALUES (:id, :provider, :model, :endpoint, :state, :remote_id, :items, :created, :updated, :facts)
        ON CONFLICT DO UPDATE
       SET state = :state, remote_id = :remote_id, updated = :updated, facts = :facts
"""
_JOBS = """
    SELECT id, provider, model, endpoint, state, items, remote_id, created, updated, facts
      FROM jobs
     ORDER BY created, id
"""
_DROP_JOB = "DELETE FROM jobs WHERE id = :id"

_SCHEMA_VERSION = 1

_CREATE = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    """
    CREATE TABLE usage (
        day       TEXT NOT NULL,              -- 2026-05-09, UTC
        provider  TEXT NOT NULL,
        model     TEXT NOT NULL,
        endpoint  TEXT NOT NULL,              -- SHA-256; never a credential
        requests  INTEGER NOT NULL DEFAULT 0,
        failures  INTEGER NOT NULL DEFAULT 0,
        tokens    INTEGER NOT NULL DEFAULT 0,
        cost      REAL NOT NULL DEFAULT 0,    -- about, USD
        PRIMARY KEY (day, provider, model, endpoint)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE breakers (
        name        TEXT PRIMARY KEY,         -- what is paused
        credential  TEXT NOT NULL,            -- salted and cut hash: another key is another chance
        failures    INTEGER NOT NULL,
        openings    INTEGER NOT NULL,
        open_until  REAL NOT NULL,            -- seconds since 1970, 0: not paused
        trial_until REAL NOT NULL,
        terminal    INTEGER NOT NULL,
        reason      TEXT NOT NULL,
        hint        TEXT
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE dims (
        provider TEXT NOT NULL,
        model    TEXT NOT NULL,
        endpoint TEXT NOT NULL,
        dims     INTEGER NOT NULL,            -- as its first answer had
        PRIMARY KEY (provider, model, endpoint)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE refusals (
        endpoint TEXT NOT NULL,
        hash     TEXT NOT NULL,               -- SHA-256 of a text that the provider does not take
        until    REAL NOT NULL,
        PRIMARY KEY (endpoint, hash)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE jobs (
        id        TEXT PRIMARY KEY,           -- ours, made before anything is sent
        provider  TEXT NOT NULL,
        model     TEXT NOT NULL,
        endpoint  TEXT NOT NULL,
        state     TEXT NOT NULL,
        remote_id TEXT,                       -- theirs
        items     INTEGER NOT NULL,
        created   REAL NOT NULL,
        updated   REAL NOT NULL,
        facts     TEXT NOT NULL               -- JSON; no text of any note
    ) WITHOUT ROWID
    """,
)


@value
class Usage:
    """What one provider was asked in one day; `cost` is about, in USD."""

    day: str
    key: ProviderKey
    requests: int
    failures: int
    tokens: int
    cost: float


@value
class JobRecord:
    """One job. `id` is ours and exists before theirs; `facts` is whatever JSON the job needs, without note text."""

    id: str
    key: ProviderKey
    state: str
    items: int
    remote_id: str | None = None
    created: float = 0.0
    updated: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)


class Ledger:
    """Shared by threads and processes. Where its file cannot be used it goes on in memory, and `trouble` says why."""

    def __init__(self, path: str, *, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self.now = now
        self._turn = threading.RLock()
        self._file: LedgerFile | LedgerInMemory | None = None
        self.trouble: str | None = None

    def usage(self, *, days: int = 1) -> list[Usage]:
        """What was asked today, or in the last days, by day and provider."""
        since = self._day(self.now() - (days - 1) * 86_400)
        rows = self.read(lambda connection: connection.execute(_USAGE, {"since": since}).fetchall())
        return [_usage(row) for row in rows]

    def add_usage(
        self, key: ProviderKey, *, requests: int = 0, failures: int = 0, tokens: int = 0, cost: float = 0.0
    ) -> None:
        """Count; negative tokens and costs take back what was reserved and not used."""
        counts = {"requests": requests, "failures": failures, "tokens": tokens, "cost": cost}
        row = {"day": self._day(self.now()), **_columns(key), **counts}
        self.write(lambda connection: connection.execute(_ADD_USAGE, row))

    def reserve(self, key: ProviderKey, *, tokens: int, cost: float, limit: int | None) -> bool:
        """Count one request, unless all of today's tokens would then be more than `limit`.

        Done before the request is sent and in one step, so processes cannot overrun the limit together.
        """
        day = self._day(self.now())
        row = {"day": day, **_columns(key), "requests": 1, "failures": 0, "tokens": tokens, "cost": cost}

        def work(connection: apsw.Connection) -> bool:
            if limit is not None and connection.execute(_TOKENS, {"day": day}).get + tokens > limit:
                return False
            connection.execute(_ADD_USAGE, row)
            connection.execute(_DROP_OLD_USAGE, {"day": self._day(self.now() - _KEPT_DAYS_S)})
            return True

        return self.write(work)

    def tokens_today(self) -> int:
        """All tokens of today, of all providers."""
        day = self._day(self.now())
        tokens: int = self.read(lambda connection: connection.execute(_TOKENS, {"day": day}).get)
        return tokens

    def breaker_for(
        self,
        key: ProviderKey,
        *,
        credential: str = "",
        of: str = "requests",
        policy: BreakerPolicy = _POLICY,
    ) -> Breaker:
        """What pauses asking `key`, for one kind of asking; with another credential it is not paused."""
        salt = self.read(lambda connection: connection.execute(_SALT).get)
        # Four bytes tell two keys apart and do not tell what they are.
        mark = hashlib.blake2b(credential.encode(), key=salt, digest_size=4).hexdigest()
        return Breaker(self, f"{key.provider}/{key.model}/{key.endpoint}/{of}", mark, policy)

    def dims(self, key: ProviderKey) -> int | None:
        """How many dimensions its vectors had."""
        dims: int | None = self.read(lambda connection: connection.execute(_DIMS, _columns(key)).get)
        return dims

    def remember_dims(self, key: ProviderKey, dims: int) -> None:
        """Keep what the first answer has taught us."""
        self.write(lambda connection: connection.execute(_SET_DIMS, {**_columns(key), "dims": dims}))

    def refused_texts(self, key: ProviderKey, hashes: Iterable[str]) -> set[str]:
        """Those of the texts that the provider has refused within a day."""
        row = {"endpoint": key.endpoint, "now": self.now(), "hashes": json.dumps([*hashes])}
        rows = self.read(lambda connection: connection.execute(_REFUSED, row).fetchall())
        return {str(name) for (name,) in rows}

    def remember_refused(self, key: ProviderKey, text_hash: str) -> None:
        """Do not ask about this text again for a day."""
        row = {"endpoint": key.endpoint, "hash": text_hash, "until": self.now() + _REFUSED_FOR_S}

        def work(connection: apsw.Connection) -> None:
            connection.execute(_DROP_REFUSED, {"now": self.now()})
            connection.execute(_SET_REFUSED, row)

        self.write(work)

    def save_job(self, job: JobRecord) -> None:
        """Keep a new job or its new state: on disk, not only on its way there. Raises StorageFailure."""
        row = {
            "id": job.id,
            "provider": job.key.provider,
            "model": job.key.model,
            "endpoint": job.key.endpoint,
            "state": job.state,
            "remote_id": job.remote_id,
            "items": job.items,
            "created": job.created or self.now(),
            "updated": self.now(),
            "facts": json.dumps(dict(job.facts)),
        }
        # A job that is forgotten is paid for twice, so even a power cut must not lose it.
        self.read(lambda connection: connection.execute("PRAGMA synchronous = FULL").fetchall())
        try:
            self.write(lambda connection: connection.execute(_SAVE_JOB, row))
        finally:
            self.read(lambda connection: connection.execute("PRAGMA synchronous = NORMAL").fetchall())
        if self.trouble is not None:
            raise StorageFailure(self.trouble, hint="no job is begun that could be forgotten; check the disk")

    def jobs(self, key: ProviderKey | None = None) -> list[JobRecord]:
        """Every job that is remembered, oldest first, or those of one provider."""
        rows = self.read(lambda connection: connection.execute(_JOBS).fetchall())
        return [job for job in map(_job, rows) if key is None or job.key == key]

    def drop_job(self, job_id: str) -> None:
        """Forget a job whose vectors are kept."""
        self.write(lambda connection: connection.execute(_DROP_JOB, {"id": job_id}))

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        with self._turn:
            file, self._file = self._file, None
            if file is not None:
                file.close()

    def read(self, work: Callable[[apsw.Connection], _Outcome]) -> _Outcome:
        """Run queries."""
        with self._turn:
            try:
                return work(self._open().connection)
            except (apsw.Error, OSError, StorageFailure) as error:
                return work(self._without_file(error))

    def write(self, work: Callable[[apsw.Connection], _Outcome]) -> _Outcome:
        """Run one transaction, which waits for other writers at its start."""
        with self._turn:
            try:
                connection = self._open().connection
                with write_transaction(connection):
                    return work(connection)
            except (apsw.Error, OSError, StorageFailure) as error:
                connection = self._without_file(error)
                with write_transaction(connection):
                    return work(connection)

    def _open(self) -> LedgerFile | LedgerInMemory:
        if self._file is None:
            inode = inode_of(self._path)
            try:
                self._file = LedgerFile(self._path)
            except Damaged:
                # It counts money, so it is kept to look at; what it knew about pauses is learnt again.
                set_aside(self._path, inode)
                self._file = LedgerFile(self._path)
        return self._file

    def _without_file(self, error: Exception) -> apsw.Connection:
        """Go on in memory. Only bounds within this process hold then, so it is said aloud."""
        with suppress(apsw.Error, OSError):
            self.close()
        self.trouble = f"the ledger {self._path} cannot be used: {error}"
        self._file = LedgerInMemory()
        return self._file.connection

    def _day(self, at: float) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(at))


def _job(row: tuple[Any, ...]) -> JobRecord:
    name, provider, model, endpoint, state, items, remote_id, created, updated, facts = row
    of = ProviderKey(provider, model, endpoint)
    return JobRecord(name, of, state, items, remote_id, created, updated, json.loads(facts))


def _usage(row: tuple[Any, ...]) -> Usage:
    day, provider, model, endpoint, *counts = row
    return Usage(day, ProviderKey(provider, model, endpoint), *counts)


def _columns(key: ProviderKey) -> dict[str, str]:
    return {"provider": key.provider, "model": key.model, "endpoint": key.endpoint}


class LedgerFile(SharedFile):
    """The ledger's own."""

    def __init__(self, path: str) -> None:
        super().__init__(path, _prepare)


class LedgerInMemory:
    """Stands in where no file can be written; what it knows ends with the process."""

    def __init__(self) -> None:
        self.connection = apsw.Connection(":memory:")
        _create(self.connection)

    def close(self) -> None:
        """Forget everything."""
        self.connection.close()


def _prepare(connection: apsw.Connection) -> None:
    for pragma in (
        "PRAGMA synchronous = NORMAL",
        "PRAGMA trusted_schema = OFF",
        "PRAGMA cell_size_check = ON",
        "PRAGMA journal_size_limit = 1048576",
    ):
        connection.execute(pragma).fetchall()
    if connection.pragma("user_version") != _SCHEMA_VERSION:
        with write_transaction(connection):
            _create(connection)


def _create(connection: apsw.Connection) -> None:
    version = connection.pragma("user_version")
    if version == _SCHEMA_VERSION:
        return  # another process was quicker
    if version:
        raise StorageFailure(
            f"the ledger of remote providers has version {version}, this program knows {_SCHEMA_VERSION}",
            hint="use one version of plainmind for one home",
        )
    for statement in _CREATE:
        connection.execute(statement)
    connection.execute("INSERT INTO facts VALUES ('salt', ?)", (os.urandom(16),))
    connection.pragma("user_version", _SCHEMA_VERSION)
