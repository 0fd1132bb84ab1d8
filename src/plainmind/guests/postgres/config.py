"""The settings of an index in PostgreSQL, beside those of every store: `store.dsn` and more; and what they must be."""

from __future__ import annotations

import os

from plainmind.base.errors import ConfigError, IndexUnavailable
from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.config.kinds import KEEPS, SENDS, Text, setting
from plainmind.config.load import resolve_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from plainmind.config.settings import Settings
    from plainmind.memory.doctor import Check


DEFAULT_SCHEMA = "plainmind"
DSN_KEY = "store.dsn"
READ_DSN_KEY = "store.readDsn"
SET_IT = "set it where this program, or the agent that starts it, is started; or correct `store.dsn`"

_SCHEMA_NAME = pattern(r"[a-z_][a-z0-9_]{0,47}")
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


@value
class PostgresConfig:
    """How the server is reached, and what the schema is called."""

    section = "store"
    dsn: str | None = setting(
        None,
        Text("an address", optional=True),
        SENDS,
        "How to reach PostgreSQL, `postgresql://role@host/database`; or `env:NAME`.",
        secret=True,
    )
    read_dsn: str | None = setting(
        None, Text("an address", optional=True), SENDS, "A replica of it that answers searches.", secret=True
    )
    schema: str = setting(
        DEFAULT_SCHEMA,
        Text("letters, digits and `_`", shape=r"[a-z_][a-z0-9_]{0,39}"),
        KEEPS,
        "The schema of this installation in PostgreSQL.",
    )


def store_options(
    settings: Settings, environ: Mapping[str, str], *, dsn: str | None = None
) -> dict[str, str | None]:
    """How the server is reached; `dsn` may name another one. Raises ConfigError for a variable of that one.

    A variable of the settings that is not set is told as `missing`: notes are read and written without a server.
    """
    config = settings.section(PostgresConfig)
    options = {"schema": config.schema, "workspace": settings.store.workspace_name}
    if dsn:
        return {**options, "dsn": resolve_secret(dsn, environ)}
    try:
        reached, read = resolve_secret(config.dsn, environ), resolve_secret(config.read_dsn, environ)
    except ConfigError as error:
        return {**options, "missing": str(error)}
    return {**options, "dsn": reached, "read_dsn": read}


def prepare_server(options: Mapping[str, str], *, role: str | None, is_operator: bool) -> str:
    """Make the schema of an installation, or bring it up to date, and let a role use it; returns its name."""
    from plainmind.guests.postgres.migrations import prepare

    if options.get("missing"):
        raise ConfigError(options["missing"], key=DSN_KEY, hint=SET_IT)
    if not options.get("dsn"):
        raise ConfigError(
            "which server is to be prepared?", key=DSN_KEY, hint="name it with --dsn, or set `store.dsn`"
        )
    prepare(options["dsn"], schema=options["schema"], role=role, is_operator=is_operator)
    return options["schema"]


def destination(options: Mapping[str, str]) -> str | None:
    """The hosts that hold the text of the notes, unless it is this machine. Raises ConfigError."""
    return ", ".join(other_hosts(options.get("dsn", ""))) or None


def valid_schema(name: str) -> str:
    """The name of a schema that needs no quoting anywhere. Raises ConfigError."""
    if not _SCHEMA_NAME.fullmatch(name):
        raise ConfigError(
            f"`{name}` cannot be the name of a schema",
            key="store.schema",
            hint="use small letters, digits and underscores",
        )
    return name


# --- which notes a name on a server stands for: an index of others is neither read nor changed by accident ---

_KEEPER = "keeper"  # the file that tells a machine from others


@value
class Claim:
    """The name of a workspace on a server, and the folder on this machine that its index would have without one.

    A name that nobody has given is made of the place of the folder, which folders on other machines have too: the
    server knows whose it is. A name that was given is meant for many machines, and for one folder of each.
    """

    folder: str
    name: str
    is_given: bool  # by a person: then other machines may share it
    server: str  # tells servers and schemas apart

    def keeper(self) -> str | None:
        """Who alone may use the index: this machine; None when every machine may that has given it the name.

        Raises IndexUnavailable when another folder of this machine has the name already.
        """
        import hashlib
        import json

        above, own = os.path.split(self.folder)
        if not self.is_given:
            return _settled(os.path.join(above, _KEEPER), os.urandom(16).hex())
        named = hashlib.sha256(json.dumps([self.server, self.name]).encode()).hexdigest()[:16]
        record = os.path.join(above, f"named-{named}")
        first = _settled(record, own)
        if first != own:
            raise IndexUnavailable(
                f"`{self.name}` on this server are the notes of another folder of yours, {first}",
                hint="`store.workspace` names one folder: give this one another name"
                f" (PLAINMIND_STORE_WORKSPACE), or a PLAINMIND_HOME of its own; if you have moved it, delete {record}",
            )
        return None


def _settled(path: str, wanted: str) -> str:
    """What a small file says; what is wanted, if there was none: of several who make it at once, one does."""
    from plainmind.files.atomic import write_first
    from plainmind.files.system import explain_errors, read_file

    with explain_errors("remember whose an index is", path):
        try:
            said = read_file(path)
        except FileNotFoundError:
            write_first(path, wanted.encode("utf-8", "surrogateescape"))
            said = read_file(path)
    return said.decode("utf-8", "surrogateescape")


# --- how the server is reached ---


def safe_dsn(dsn: str, *, key: str = DSN_KEY) -> str:
    """The DSN with deadlines, and with TLS to other machines unless it says itself how. Raises ConfigError."""
    from psycopg.conninfo import make_conninfo

    facts = _parse_dsn(dsn, key)
    more = {name: setting for name, setting in _DEFAULTS.items() if name not in facts}
    if key == DSN_KEY and len(_hosts(facts)) > 1 and "target_session_attrs" not in facts:
        more["target_session_attrs"] = "read-write"  # which of them that is changes with a failover
    if "sslmode" not in facts and "PGSSLMODE" not in os.environ and not _is_local(facts):
        more["sslmode"] = "require"
    return make_conninfo(dsn, **more)


def other_hosts(dsn: str) -> list[str]:
    """The other machines that a DSN leads to, as it names them. Raises ConfigError."""
    facts = _parse_dsn(dsn, DSN_KEY)
    if _is_local(facts):
        return []
    if service := facts.get("service") or os.environ.get("PGSERVICE"):
        return [f"the service `{service}`"]
    return [host for host in _hosts(facts) if not _is_local_host(host)]


def server_of(dsn: str, schema: str) -> str:
    """What tells an installation from others, whoever asks for it and with which password. Raises ConfigError."""
    facts = _parse_dsn(dsn, DSN_KEY)
    return " ".join(str(facts.get(name, "")) for name in ("service", "host", "port", "dbname")) + f" {schema}"


def _parse_dsn(dsn: str, key: str) -> dict[str, Any]:
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        return conninfo_to_dict(dsn)
    except ProgrammingError:
        # Neither the error's own words nor the error itself: they may quote a password.
        raise ConfigError(
            "the DSN of the database cannot be read",
            key=key,
            hint="write it as postgresql://role@host/database or as host=… dbname=… user=…",
        ) from None


def _is_local(facts: dict[str, Any]) -> bool:
    """Whether every host is a socket of this machine or its loopback."""
    if facts.get("service") or os.environ.get("PGSERVICE"):
        return False  # a file elsewhere names the host
    return all(_is_local_host(host) for host in _hosts(facts))


def _hosts(facts: dict[str, Any]) -> list[str]:
    named = (
        facts.get("hostaddr") or os.environ.get("PGHOSTADDR") or facts.get("host") or os.environ.get("PGHOST")
    )
    return str(named or "").split(",")


def _is_local_host(host: str) -> bool:
    if not host or host == "localhost" or host.startswith(("/", "@")):
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False  # a name, and where it leads is for others to say


def examine(facts: Mapping[str, Any]) -> Iterator[Check]:
    """Say which server keeps the index, how it is reached, and whether it keeps agents apart."""
    from plainmind.memory.doctor import Check

    how = "through TLS" if facts["tls"] else "without TLS"
    engine = f"PostgreSQL {facts['postgres']} with pgvector {facts['pgvector']}, as {facts['role']}, {how}"
    yield Check("engine", "ok", engine)
    if facts["passesGuards"]:
        yield Check(
            "engine",
            "warning",
            f"the role {facts['role']} passes by row-level security: nothing keeps agents and scopes apart for it",
            "use a role that owns nothing: docs/guides/postgresql.md",
        )
