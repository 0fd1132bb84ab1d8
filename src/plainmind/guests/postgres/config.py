"""The settings of an index in PostgreSQL, beside those of every store: `store.dsn` and more."""

from __future__ import annotations

from plainmind.base.errors import ConfigError
from plainmind.base.value import value
from plainmind.config.kinds import KEEPS, SENDS, Text, setting
from plainmind.config.load import resolve_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from plainmind.config.settings import Settings


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
        "plainmind",
        Text("letters, digits and `_`", shape=r"[a-z_][a-z0-9_]{0,39}"),
        KEEPS,
        "The schema of this installation in PostgreSQL.",
    )


def store_options(
    settings: Settings, environ: Mapping[str, str], *, dsn: str | None = None
) -> dict[str, str | None]:
    """How the server is reached; `dsn` may name another one. Raises ConfigError for a variable that is not set."""
    config = settings.section(PostgresConfig)
    return {
        "dsn": resolve_secret(dsn or config.dsn, environ),
        "read_dsn": None if dsn else resolve_secret(config.read_dsn, environ),
        "schema": config.schema,
        "workspace": settings.store.workspace_name,
    }


def prepare_server(options: Mapping[str, str], *, role: str | None, is_operator: bool) -> str:
    """Make the schema of an installation, or bring it up to date, and let a role use it; returns its name."""
    from plainmind.guests.postgres.migrations import prepare

    if not options.get("dsn"):
        raise ConfigError(
            "which server is to be prepared?", key="store.dsn", hint="name it with --dsn, or set `store.dsn`"
        )
    prepare(options["dsn"], schema=options["schema"], role=role, is_operator=is_operator)
    return options["schema"]


def destination(options: Mapping[str, str]) -> str | None:
    """The hosts that hold the text of the notes, unless it is this machine. Raises ConfigError."""
    from plainmind.guests.postgres.options import other_hosts

    return ", ".join(other_hosts(options.get("dsn", ""))) or None
