"""The index in PostgreSQL, and the other indexes that the same server keeps."""

from __future__ import annotations

import os

from psycopg.errors import InsufficientPrivilege

from plainmind.base.errors import ConfigError, IndexUnavailable
from plainmind.base.value import asdict
from plainmind.guests.postgres.config import DEFAULT_SCHEMA, DSN_KEY, READ_DSN_KEY, safe_dsn, valid_schema
from plainmind.guests.postgres.driver import Address, PostgresDriver
from plainmind.index.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import LiteralString

_AGENTS = "SELECT agents_of(%s)"
_WORKSPACES = "SELECT workspace FROM indexes WHERE agent = %s ORDER BY workspace"
_ALL_INDEXES = "SELECT agent, workspace FROM all_indexes()"


class PostgresStore(Store):
    """The index of an agent and a workspace."""

    driver: PostgresDriver

    def __init__(
        self,
        dsn: str,
        *,
        agent: str,
        workspace: str,
        schema: str = DEFAULT_SCHEMA,
        read_dsn: str | None = None,
        wait_s: float = 30.0,
    ) -> None:
        """Use the server of `dsn`; `read_dsn` names a replica that answers searches.

        `wait_s` is how long a change waits for those of others.
        """
        address = Address(
            dsn=safe_dsn(dsn),
            schema=valid_schema(schema),
            agent=agent,
            workspace=workspace,
            read_dsn=safe_dsn(read_dsn, key=READ_DSN_KEY) if read_dsn else None,
            wait_s=wait_s,
        )
        super().__init__(PostgresDriver(address))

    @property
    def neighbours(self) -> PostgresStore:
        """The server knows the other indexes of the installation."""
        return self

    def all_indexes(self) -> list[tuple[str, str]]:
        """The agent and the workspace of every index of this installation, for a role that is an operator's.

        Raises IndexUnavailable for all others.
        """
        driver = self.driver
        begin = driver.session().introduce
        try:
            with driver.for_reading.transaction(begin, "list the indexes of all agents") as (db, _):
                return [(agent, workspace) for agent, workspace in db.execute(_ALL_INDEXES)]
        except IndexUnavailable as error:
            if not isinstance(error.__cause__, InsufficientPrivilege):
                raise
            raise IndexUnavailable(
                str(error),
                hint="let the owner of the schema run `plainmind migrate-store --prepare --role … --operator`",
            ) from error

    def of_other_agents(self) -> list[PostgresStore]:
        """What other agents of this installation have indexed of a workspace of the same name, on whichever host."""
        own = self.driver.address
        agents = self._names(_AGENTS, own.workspace)
        return [self.index_of(agent, own.workspace) for agent in agents if agent != own.agent]

    def of_other_workspaces(self) -> list[PostgresStore]:
        """What the same agent has indexed of other workspaces, on whichever host."""
        own = self.driver.address
        workspaces = self._names(_WORKSPACES, own.agent)
        return [self.index_of(own.agent, name) for name in workspaces if name != own.workspace]

    def index_of(self, agent: str, workspace: str) -> PostgresStore:
        """Another index of the same installation."""
        return PostgresStore(**{**asdict(self.driver.address), "agent": agent, "workspace": workspace})

    def _names(self, statement: LiteralString, what: str) -> list[str]:
        driver = self.driver
        with driver.for_writing.transaction(driver.session().introduce, "find other indexes") as (db, _):
            return [name for (name,) in db.execute(statement, (what,))]


def open_postgres_store(
    dsn: str | None = None,
    *,
    folder: str | None = None,
    agent: str | None = None,
    workspace: str | None = None,
    schema: str = DEFAULT_SCHEMA,
    read_dsn: str | None = None,
) -> PostgresStore:
    """Open the index that other stores would keep in `folder`: its last two names are an agent's and a workspace's."""
    if not dsn:
        raise ConfigError(
            "the store `postgres` needs to know its server",
            key=DSN_KEY,
            hint="set `store.dsn` to postgresql://role@host/database, or to env:NAME of a variable that holds it",
        )
    above, name = os.path.split(folder or "")
    return PostgresStore(
        dsn,
        agent=agent or os.path.basename(above) or "main",
        workspace=workspace or name or "main",
        schema=schema,
        read_dsn=read_dsn,
    )
