"""The SQLite file behind the ledger: private to its owner, shared by processes, thrown away only when damaged.

Every connection holds a shared lock on `<path>.lock`, because a database that someone has open must never be renamed.
"""

from __future__ import annotations

import os

import apsw

from plainmind.base.errors import StorageFailure
from plainmind.embed.cache_file import SharedFile, writing

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
        facts     TEXT NOT NULL,              -- JSON; no text of any note
        owner     TEXT,                       -- which process works on it,
        owned_until REAL NOT NULL DEFAULT 0   -- and until when nobody else does
    ) WITHOUT ROWID
    """,
)


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
        with writing(connection):
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
