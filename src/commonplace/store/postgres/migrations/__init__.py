"""Numbered migrations: a shared server is brought up to date, never rebuilt."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import psycopg
from psycopg import sql

from commonplace.errors import ConfigError, IndexUnavailable
from commonplace.store.postgres.naming import checked_schema, locks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import LiteralString

_NAMES: Sequence[str] = ("0001-generations.sql",)
NEWEST = len(_NAMES)

_KNOWN = "SELECT to_regclass(%s) IS NOT NULL"
_NUMBER = sql.SQL("SELECT coalesce(max(number), 0) FROM {schema}.migrations")
_LOCK = "SELECT pg_advisory_xact_lock(%s, 0)"
_CREATE = sql.SQL("CREATE SCHEMA IF NOT EXISTS {schema}")
_CREATE_TABLE = sql.SQL(
    """CREATE TABLE IF NOT EXISTS {schema}.migrations (
           number  integer PRIMARY KEY,
           name    text NOT NULL,
           applied timestamptz NOT NULL DEFAULT now()
       )"""
)
_RECORD = sql.SQL("INSERT INTO {schema}.migrations (number, name) VALUES (%s, %s)")
_EXTENSION = """SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'vector'"""
_GRANTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON {schema}.migrations FROM {role}",
    """GRANT EXECUTE ON FUNCTION {schema}.make_generation, {schema}.index_vectors, {schema}.analyze_generation,
                                 {schema}.drop_generation, {schema}.write_anew TO {role}""",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
)
_OPERATE = "GRANT EXECUTE ON FUNCTION {schema}.all_indexes TO {role}"
# Sweeping the vectors of what was erased, which before version 17 only their owner may: it is done in time anyway.
_MAINTAIN = (
    "GRANT MAINTAIN ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT MAINTAIN ON TABLES TO {role}",
)
_MAINTAIN_SINCE = 170_000


def version_of(db: psycopg.Connection, schema: str) -> int:
    """The number of the newest migration that a schema has had; 0 when there is no such schema."""
    found = db.execute(_KNOWN, (f"{schema}.migrations",)).fetchone()
    if found is None or not found[0]:
        return 0
    row = db.execute(_NUMBER.format(schema=sql.Identifier(schema))).fetchone()
    return int(row[0]) if row else 0


def check_not_newer(version: int, schema: str) -> None:
    """Refuse what a newer version of this program has made."""
    if version > NEWEST:
        raise IndexUnavailable(
            f"the schema `{schema}` has version {version}, and this program knows up to {NEWEST}",
            hint="a newer version uses this server already: install it here too",
        )


def prepare(dsn: str, *, schema: str, role: str | None = None, is_operator: bool = False) -> None:
    """Make the schema or bring it up to date, and let a role use it; doing it twice changes nothing.

    An operator may also ask which indexes there are, of all agents.
    The role of the DSN becomes the owner of everything. It must be allowed to create schemas.
    """
    checked_schema(schema)
    with psycopg.connect(dsn, connect_timeout=10) as db:
        db.execute("SET LOCAL lock_timeout = '30s'")
        db.execute(_LOCK, (locks_of(schema).index,))
        try:
            _migrate(db, schema)
            if role is not None:
                _grant(db, schema, role, (*_GRANTS, _OPERATE) if is_operator else _GRANTS)
        except psycopg.errors.InsufficientPrivilege as error:
            raise IndexUnavailable(
                f"the schema `{schema}` is not ready, and this role may not prepare it: {error}",
                hint="run `commonplace migrate-store --prepare` with the DSN of a role that may create schemas",
            ) from error


def _migrate(db: psycopg.Connection, schema: str) -> None:
    version = version_of(db, schema)
    check_not_newer(version, schema)
    if version == NEWEST:
        return
    names = {"schema": sql.Identifier(schema)}
    db.execute(_CREATE.format(**names))
    vectors = _vector_schema_made(db)
    db.execute(_CREATE_TABLE.format(**names))
    for number, name in enumerate(_NAMES[version:], version + 1):
        text = files(__package__).joinpath(name).read_text("utf-8")
        statements = sql.SQL(text).format(
            **names,
            vectors=sql.Identifier(vectors),
            generation_lock=sql.Literal(locks_of(schema).generation),
        )
        db.execute(statements)
        db.execute(_RECORD.format(**names), (number, name))


def vector_schema(db: psycopg.Connection) -> str | None:
    """The schema that pgvector is in; None when there is none in this database."""
    row = db.execute(_EXTENSION).fetchone()
    return str(row[0]) if row else None


def _vector_schema_made(db: psycopg.Connection) -> str:
    found = vector_schema(db)
    if found is None:
        try:
            db.execute("CREATE EXTENSION vector")
        except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported) as error:
            raise ConfigError(
                "this PostgreSQL has no pgvector",
                key="store.dsn",
                hint="install pgvector 0.8 or newer on the server",
            ) from error
        found = vector_schema(db)
    return found or "public"


def _grant(db: psycopg.Connection, schema: str, role: str, grants: Sequence[LiteralString]) -> None:
    maintain = _MAINTAIN if db.info.server_version >= _MAINTAIN_SINCE else ()
    for statement in (*grants, *maintain):
        db.execute(sql.SQL(statement).format(schema=sql.Identifier(schema), role=sql.Identifier(role)))
