"""Passwords inside addresses: `postgres://user:password@host`, `https://user:password@host`."""

from __future__ import annotations

from collections.abc import Iterator

from plainmind.base.pattern import pattern
from plainmind.redaction.findings import Found, Page
from plainmind.redaction.stand_ins import is_stand_in

# Greedy up to the last `@`: people forget to encode one in a password.
_WITH_PASSWORD = pattern(
    r"""://[^\s/:@"'`<>?#\\]{0,128}+:([^\s/"'`<>?#\\]{1,256})@(?=[A-Za-z0-9_.%{$(\[\-])"""
)
_DATABASES = (
    "postgres", "postgresql", "mysql", "mysql2", "mariadb", "mongodb", "mongodb+srv", "redis", "rediss", "amqp",
    "amqps", "mssql", "sqlserver", "clickhouse", "cockroachdb", "psycopg", "psycopg2", "asyncpg", "pymysql",
    "aiomysql", "pyodbc", "neo4j", "bolt", "cassandra", "couchbase", "nats", "ldap", "ldaps",
)  # fmt: skip
_LONGEST_SCHEME = 16


def passwords_in_addresses(page: Page) -> Iterator[Found]:
    """Report every password that an address carries; the rest of the address stays readable."""
    text = page.text
    if "://" not in text:
        return
    for found in _WITH_PASSWORD.finditer(text):
        if is_stand_in(found[1]):
            continue
        scheme = text[max(0, found.start() - _LONGEST_SCHEME) : found.start()].lower()
        if scheme.endswith(_DATABASES):
            yield found.start(1), found.end(1), "database-password"
        elif text[found.start() + 3] != ":":  # only a database lets somebody in without a name
            yield found.start(1), found.end(1), "url-password"
