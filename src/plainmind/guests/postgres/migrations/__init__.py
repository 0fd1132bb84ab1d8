"""Numbered migrations: a shared server is brought up to date, never rebuilt.

All that are missing are made in one transaction, so that a schema has one whole version at every moment. A program
looks at the version when it begins: a migration must leave right what older programs do that are still running.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import psycopg
from psycopg import sql

from plainmind.base.errors import IndexUnavailable
from plainmind.guests.postgres.config import safe_dsn, valid_schema
from plainmind.guests.postgres.connections import Connection, first_line, locks_of, no_vectors, plain_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import LiteralString

_NAMES: Sequence[str] = (
    "0001-generations.sql",
    "0002-agents-of-a-workspace.sql",
    "0003-strangers.sql",
    "0004-keepers.sql",
)
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
_EXTENSION = """SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                 WHERE e.extname = 'vector'"""
_OWNER = "SELECT tableowner FROM pg_tables WHERE schemaname = %s AND tablename = 'migrations'"
_AS_OWNER = sql.SQL("SET LOCAL ROLE {owner}")
_GRANTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON {schema}.migrations FROM {role}",
    """GRANT EXECUTE ON FUNCTION {schema}.make_generation, {schema}.index_vectors, {schema}.analyze_generation,
                                 {schema}.drop_generation, {schema}.write_anew, {schema}.agents_of TO {role}""",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
)
_OPERATE = "GRANT EXECUTE ON FUNCTION {schema}.all_indexes TO {role}"
# Sweeping the vectors of what was erased, which before version 17 only their owner may: it is done in time anyway.
_MAINTAIN = (
    "GRANT MAINTAIN ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT MAINTAIN ON TABLES TO {role}",
)
_MAINTAIN_SINCE = 170_000
_OLDEST_VECTORS = (0, 8)  # scans that go on until a filter has let enough through
_DEADLINES = "SET LOCAL lock_timeout = '30s'", "SET LOCAL statement_timeout = '60s'"


def version_of(db: Connection, schema: str) -> int:
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
    The role of the DSN becomes the owner of everything. It must be allowed to create schemas; later, to be the owner.
    """
    valid_schema(schema)
    reached = safe_dsn(dsn)
    with plain_errors("prepare the schema"), Connection.connect(reached, connect_timeout=10) as db:
        for deadline in _DEADLINES:
            db.execute(deadline)
        db.execute(_LOCK, (locks_of(schema).index,))
        owner = None
        try:
            owner = _owner_of(db, schema)
            _become_owner(db, owner)
            _migrate(db, schema)
            if role is not None:
                _grant(db, schema, role, (*_GRANTS, _OPERATE) if is_operator else _GRANTS)
        except psycopg.errors.InsufficientPrivilege as error:
            if owner is not None:
                raise IndexUnavailable(
                    f"the schema `{schema}` belongs to {owner}, and this role may not change it: {first_line(error)}",
                    hint="it has to be brought up to date, once for all hosts: run `plainmind migrate-store --prepare`"
                    f" with a DSN of {owner} or of an administrator",
                ) from error
            raise IndexUnavailable(
                f"the schema `{schema}` is not ready, and this role may not prepare it: {first_line(error)}",
                hint="run `plainmind migrate-store --prepare` with the DSN of a role that may create schemas",
            ) from error
        except psycopg.errors.UndefinedObject as error:
            raise IndexUnavailable(
                f"the schema `{schema}` could not be prepared: {first_line(error)}",
                hint="--role must name a role that the server knows",
            ) from error


def _owner_of(db: Connection, schema: str) -> str | None:
    row = db.execute(_OWNER, (schema,)).fetchone()
    return str(row[0]) if row else None


def _become_owner(db: Connection, owner: str | None) -> None:
    """Let everything have one owner, whichever administrator comes later: what it makes belongs to it."""
    if owner is not None:
        db.execute(_AS_OWNER.format(owner=sql.Identifier(owner)))


def _migrate(db: Connection, schema: str) -> None:
    version = version_of(db, schema)
    check_not_newer(version, schema)
    if version == NEWEST:
        return
    _check_encoding(db)
    names = {"schema": sql.Identifier(schema)}
    db.execute(_CREATE.format(**names))
    vectors = _add_vectors(db)
    db.execute(_CREATE_TABLE.format(**names))
    for number, name in enumerate(_NAMES[version:], version + 1):
        text = files(__package__).joinpath(name).read_text("utf-8")
        statements = sql.SQL(text).format(
            **names,
            vectors=sql.Identifier(vectors),
            schema_name=sql.Literal(schema),
            index_lock=sql.Literal(locks_of(schema).index),
            generation_lock=sql.Literal(locks_of(schema).generation),
        )
        db.execute(statements)
        db.execute(_RECORD.format(**names), (number, name))


def _check_encoding(db: Connection) -> None:
    encoding = db.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise IndexUnavailable(
            f"this database keeps text as {encoding}, which has no place for every character",
            hint="use a database that was made with `ENCODING 'UTF8'`",
        )


def vector_schema(db: Connection) -> str | None:
    """The schema that pgvector is in; None when there is none in this database."""
    row = db.execute(_EXTENSION).fetchone()
    if row is None:
        return None
    schema, version = row
    if tuple(int(part) for part in str(version).split(".")[:2]) < _OLDEST_VECTORS:
        raise IndexUnavailable(
            f"this PostgreSQL has pgvector {version}, and 0.8 is the oldest that can be used",
            hint="install a newer one on the server, then let an administrator run"
            " `ALTER EXTENSION vector UPDATE` in this database",
        )
    return str(schema)


def _add_vectors(db: Connection) -> str:
    found = vector_schema(db)
    if found is None:
        try:
            db.execute("CREATE EXTENSION vector")
        except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported) as error:
            raise no_vectors() from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise IndexUnavailable(
                f"this database has no pgvector yet, and this role may not add it: {first_line(error)}",
                hint="let an administrator run `CREATE EXTENSION vector` in this database",
            ) from error
        found = vector_schema(db)
    return found or "public"


def _grant(db: Connection, schema: str, role: str, grants: Sequence[LiteralString]) -> None:
    maintain = _MAINTAIN if db.info.server_version >= _MAINTAIN_SINCE else ()
    for statement in (*grants, *maintain):
        db.execute(sql.SQL(statement).format(schema=sql.Identifier(schema), role=sql.Identifier(role)))
