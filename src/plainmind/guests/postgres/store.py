"""The index in PostgreSQL, for many threads, processes and hosts at once."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial

from psycopg.errors import InsufficientPrivilege

from plainmind.base.errors import ConfigError, IndexUnavailable, PlainmindError
from plainmind.base.model import IndexFingerprint, Source
from plainmind.base.value import asdict
from plainmind.guests.postgres import writer
from plainmind.guests.postgres.building import BuildingStore
from plainmind.guests.postgres.cache import GenerationCache
from plainmind.guests.postgres.changes import Change, Changes
from plainmind.guests.postgres.connections import Connections
from plainmind.guests.postgres.empty import EmptyReader
from plainmind.guests.postgres.migrations import NEWEST, check_not_newer, prepare, vector_schema, version_of
from plainmind.guests.postgres.options import DEFAULT_SCHEMA, DSN_KEY, READ_DSN_KEY, safe_dsn, valid_schema
from plainmind.guests.postgres.reader import PostgresReader
from plainmind.guests.postgres.replica import Replica
from plainmind.guests.postgres.session import (
    GenerationGone,
    Published,
    Session,
    Tables,
)
from plainmind.index.protocol import IndexReader, IndexStore, leave_as_is

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, LiteralString

    from plainmind.guests.postgres.connections import Connection

_ATTEMPTS = 100
_PAUSE_S = 0.01
_LONG_S = 3_600  # that catching up with others may take before a rebuild is published

_ADD_INDEX = """INSERT INTO indexes (agent, workspace) VALUES (%s, %s)
                ON CONFLICT (agent, workspace) DO NOTHING"""
_INDEX = "SELECT id FROM indexes WHERE agent = %s AND workspace = %s"
_MAKE = "SELECT make_generation(%s, %s, %s, %s)"
_HOLD = """SELECT pg_advisory_xact_lock_shared(%(generation)s, %(number)s),
                  pg_advisory_xact_lock_shared(%(index)s, -%(number)s)"""
_PUBLISH = "UPDATE indexes SET published = %s WHERE agent = %s AND workspace = %s"
_GENERATIONS = (
    "SELECT g.id FROM generations g JOIN indexes i ON i.id = g.index WHERE i.agent = %s AND i.workspace = %s"
)
_UNPUBLISHED = f"{_GENERATIONS} AND g.id IS DISTINCT FROM i.published"
_REVISION = "SELECT revision FROM generations WHERE id = %s"
_AGENTS = "SELECT agents_of(%s)"
_WORKSPACES = "SELECT workspace FROM indexes WHERE agent = %s ORDER BY workspace"
_ALL_INDEXES = "SELECT agent, workspace FROM all_indexes()"
_DROP = "SELECT drop_generation(%s)"


class PostgresStore(Changes):
    """Looks up the newest generation before each view and each change. Connects when it is first used."""

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
        """Use the index of an agent and a workspace; `read_dsn` names a replica that answers searches.

        `wait_s` is how long a change waits for those of others.
        """
        if sys.byteorder != "little":
            raise ConfigError("this machine orders bytes unlike the index on the server", key="store.driver")
        self._dsn = safe_dsn(dsn)
        self._schema = valid_schema(schema)
        self._agent = agent
        self._workspace = workspace
        self._wait_s = wait_s
        self._writing = Connections(self._dsn, read_only=False)
        self._reading = Connections(self._dsn, read_only=True)
        self._read_dsn = safe_dsn(read_dsn, key=READ_DSN_KEY) if read_dsn else None
        self._replica = Replica(self._read_dsn) if self._read_dsn else None
        self._guard = threading.Lock()
        self._session: Session | None = None
        self._newest: GenerationCache | None = None

    @property
    def neighbours(self) -> PostgresStore:
        """The server knows the other indexes of the installation."""
        return self

    @contextmanager
    def reading(self) -> Iterator[IndexReader]:
        """Open one consistent view, of the newest published index."""
        with ExitStack() as stack:
            db, now = self._view(stack)
            if now is None:
                yield EmptyReader()
                return
            reader = PostgresReader(db, self._cache(now.generation), now)
            stack.callback(reader.close)
            yield reader

    @contextmanager
    def rebuild(
        self,
        fingerprint: IndexFingerprint,
        *,
        reason: str,
        catch_up: Callable[[IndexStore], None] = leave_as_is,
    ) -> Iterator[BuildingStore]:
        """Build a new index beside this one and publish it at the end of the block."""
        session = self._ready()
        # The lock of this transaction tells others that somebody is still building. It has seen nothing and changed
        # nothing, so that it is in nobody's way; a lock of a whole connection would get lost behind a pooler.
        hold_on = partial(session.introduce, idle_s=0)
        locked = partial(session.lock, idle_s=_LONG_S)
        try:
            with self._writing.transaction(hold_on, "rebuild the index") as (holder, _):
                number = self._begin(session, holder, fingerprint, reason)
                beside = BuildingStore(session, self._writing, number, fingerprint)
                yield beside
                beside.finish()
                with self._writing.transaction(locked, "publish a rebuild") as (db, _):
                    catch_up(beside)
                    beside.settle()
                    holder.execute("SELECT")  # fails if the server was restarted: the tables may be gone
                    db.execute(_PUBLISH, (number, self._agent, self._workspace))
                    self._learn(db, number)
        finally:
            self._collect(session)

    def joined(self) -> AbstractContextManager[None]:
        """Make each change at once: others wait to read it, and to write."""
        return nullcontext()

    def erase(self, source: Source, *paths: str) -> None:
        """Drop files so that their text is in no row, and no byte, of any generation's tables."""
        from plainmind.guests.postgres.erasing import write_anew

        session = self._ready()
        kept = []
        with self._writing.transaction(session.lock, "erase files") as (db, now):
            numbers = db.execute(_GENERATIONS, (self._agent, self._workspace)).fetchall()
            for (number,) in numbers:
                if (now is None or number != now.generation) and _is_dropped(db, number):
                    continue
                tables = Tables(number)
                for path in paths:
                    writer.remove_file(db, tables, source, path, writer.AT_ONCE)
                writer.wipe_removed(db, tables)
                kept.append(number)
            if now is not None:
                self._learn(db, now.generation)
        write_anew(session, self._writing, kept)

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        from plainmind.guests.postgres.describing import facts_of

        with ExitStack() as stack:
            db, now = self._view(stack)
            return facts_of(db, self._ready(), now)

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part."""
        from plainmind.guests.postgres.describing import sizes_of

        with ExitStack() as stack:
            db, now = self._view(stack)
            return sizes_of(db, Tables(now.generation)) if now else {}

    def digest(self) -> str:
        """Hash everything that a rebuild would write again."""
        from plainmind.guests.postgres.digest import digest_generation
        from plainmind.index.digest import index_digest

        with ExitStack() as stack:
            db, now = self._view(stack)
            return digest_generation(db, Tables(now.generation), now) if now else index_digest(None, ())

    def all_indexes(self) -> list[tuple[str, str]]:
        """The agent and the workspace of every index of this installation, for a role that is an operator's.

        Raises IndexUnavailable for all others.
        """
        session = self._ready()
        try:
            with self._reading.transaction(session.introduce, "list the indexes of all agents") as (db, _):
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
        agents = self._named(_AGENTS, self._workspace)
        return [self.index_of(agent, self._workspace) for agent in agents if agent != self._agent]

    def of_other_workspaces(self) -> list[PostgresStore]:
        """What the same agent has indexed of other workspaces, on whichever host."""
        names = self._named(_WORKSPACES, self._agent)
        return [self.index_of(self._agent, name) for name in names if name != self._workspace]

    def _named(self, statement: LiteralString, what: str) -> list[str]:
        with self._writing.transaction(self._ready().introduce, "find other indexes") as (db, _):
            return [name for (name,) in db.execute(statement, (what,))]

    def index_of(self, agent: str, workspace: str) -> PostgresStore:
        """Another index of the same installation."""
        return PostgresStore(
            self._dsn,
            agent=agent,
            workspace=workspace,
            schema=self._schema,
            read_dsn=self._read_dsn,
            wait_s=self._wait_s,
        )

    def close(self) -> None:
        """Let go of connections; the next use opens them again."""
        for connections in (self._writing, self._reading, self._replica):
            if connections is not None:
                connections.close()

    @contextmanager
    def _changing(self, operation: str) -> Iterator[Change]:
        session = self._ready()
        with self._writing.transaction(session.lock, operation) as (db, now):
            tables = self._cache(now.generation).tables if now else Tables(0)
            yield db, tables, now
            if now and not now.graph:
                writer.make_graph_if_large(db, tables, now.dims)
            if now:
                self._learn(db, now.generation)

    def _learn(self, db: Connection, generation: int) -> None:
        """Whoever writes must see what was written: a replica that does not know it yet is not asked."""
        if self._replica is not None:
            (revision,) = db.execute(_REVISION, (generation,)).fetchone() or (0,)
            self._replica.learn(generation, revision)

    def _view(self, stack: ExitStack) -> tuple[Connection, Published | None]:
        session = self._ready()
        replica = self._replica
        if replica is not None and not replica.is_resting:
            found = replica.view(stack, session)
            if found is not None:
                return found
        for _ in range(_ATTEMPTS):
            try:
                db, now = stack.enter_context(self._reading.transaction(session.look_up, "read the index"))
            except GenerationGone:
                time.sleep(_PAUSE_S)
            else:
                if replica is not None and now is not None:
                    replica.learn(now.generation, now.revision)
                return db, now
        raise IndexUnavailable("the index changes faster than it can be opened", hint="try again")

    def _ready(self) -> Session:
        """Make sure, once, that the server is prepared for us, by a version that we know."""
        with self._guard:
            if self._session is None:
                self._session = self._looked_at()
            return self._session

    def _looked_at(self) -> Session:
        if self._replica is not None:
            try:
                version, vectors = self._look(self._replica.connections)
            except IndexUnavailable:
                self._replica.rest()
            else:
                if version == NEWEST:
                    return Session(self._schema, vectors, self._agent, self._workspace, self._wait_s)
        version, vectors = self._look(self._reading)
        if version < NEWEST:
            prepare(self._dsn, schema=self._schema)
            _, vectors = self._look(self._reading)
        return Session(self._schema, vectors, self._agent, self._workspace, self._wait_s)

    def _look(self, connections: Connections) -> tuple[int, str]:
        """The version of the schema, and the schema that pgvector is in."""
        with connections.separate("look at the database") as db:
            version = version_of(db, self._schema)
            check_not_newer(version, self._schema)
            return version, vector_schema(db) or "public"

    def _cache(self, generation: int) -> GenerationCache:
        with self._guard:
            if self._newest is None or self._newest.tables.generation != generation:
                self._newest = GenerationCache(generation)
            return self._newest

    def _begin(self, session: Session, holder: Connection, fingerprint: IndexFingerprint, reason: str) -> int:
        """Make the tables of a new generation, and take its lock before anybody else can see it."""
        with self._writing.transaction(session.introduce, "begin a rebuild") as (db, _):
            db.execute(_ADD_INDEX, (self._agent, self._workspace))
            (index,) = db.execute(_INDEX, (self._agent, self._workspace)).fetchone() or (0,)
            made = (index, writer.as_stored(fingerprint), reason, fingerprint.embedder.dims)
            (number,) = db.execute(_MAKE, made).fetchone() or (0,)
            holder.execute(_HOLD, {**asdict(session.locks), "number": number})
            return int(number)

    def _collect(self, session: Session) -> None:
        # Nobody asked for it: whoever cannot leaves it to the next one.
        with (
            suppress(PlainmindError),
            self._writing.transaction(session.introduce, "drop old indexes") as (db, _),
        ):
            for (number,) in db.execute(_UNPUBLISHED, (self._agent, self._workspace)).fetchall():
                _is_dropped(db, number)


def _is_dropped(db: Connection, number: int) -> bool:
    row = db.execute(_DROP, (number,)).fetchone()
    return bool(row and row[0])


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
