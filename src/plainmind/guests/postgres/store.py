"""The index of one agent and workspace on a server, for many threads and hosts at once; a copy may answer for it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial

from psycopg import sql
from psycopg.errors import InsufficientPrivilege, UndefinedTable

from plainmind.base.errors import ConfigError, IndexCorrupt, IndexUnavailable, LockTimeout, PlainmindError
from plainmind.base.model import Chunk, IndexFingerprint, Source
from plainmind.base.value import asdict, replace, value
from plainmind.guests.postgres.change import InBulk, PostgresChange
from plainmind.guests.postgres.config import (
    DEFAULT_SCHEMA,
    DSN_KEY,
    READ_DSN_KEY,
    SET_IT,
    Claim,
    safe_dsn,
    server_of,
    valid_schema,
)
from plainmind.guests.postgres.connections import (
    KINDS,
    STATEMENT_S,
    Connections,
    GenerationGone,
    Published,
    Session,
    Tables,
    fingerprint_json,
)
from plainmind.guests.postgres.migrations import NEWEST, check_not_newer, prepare, vector_schema, version_of
from plainmind.guests.postgres.view import PostgresCache, PostgresContents, PostgresView, facts_of, sizes_of
from plainmind.index.reader import Reader
from plainmind.index.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, LiteralString, NoReturn, TypeAlias

    from plainmind.guests.postgres.connections import Connection

    View: TypeAlias = "tuple[Connection, Published | None]"


# Neither of these settles what a view sees, as any query would.
_SOON = "SET LOCAL lock_timeout = '1s'"
_LOCK = "LOCK TABLE {tables} IN ACCESS SHARE MODE"
_REVISION = "SELECT revision FROM generations WHERE id = %s"
_DOWN_S = 30.0  # not asked again for so long after it could not be reached
_BEHIND_S = 1.0  # nor after it did not know what we know
_ATTEMPTS_AT_REPLICA = 3


class Replica:
    """Asked before the server itself. What it does not know, or cannot say, the server is asked for."""

    def __init__(self, dsn: str) -> None:
        self.connections = Connections(dsn, read_only=True)
        self._guard = threading.Lock()
        self._newest = (0, 0)  # generation and revision: a process that has seen them must not see older ones
        self._resting_until = 0.0

    def learn_from(self, db: Connection, generation: int) -> None:
        """Remember the state that a transaction has just written: a search after it must see it."""
        (revision,) = db.execute(_REVISION, (generation,)).fetchone() or (0,)
        self.learn(generation, revision)

    def learn(self, generation: int, revision: int) -> None:
        """Remember a state that was seen or written."""
        with self._guard:
            self._newest = max(self._newest, (generation, revision))

    @property
    def is_resting(self) -> bool:
        """Whether it is not worth being asked just now."""
        return time.monotonic() < self._resting_until

    def rest(self) -> None:
        """Leave it alone for a while: it cannot be reached."""
        self._resting_until = time.monotonic() + _DOWN_S

    def view(self, stack: ExitStack, session: Session) -> View | None:
        """Open a view on it; None when the server itself must be asked."""
        generation = self._newest[0]
        for _ in range(_ATTEMPTS_AT_REPLICA):
            with ExitStack() as trying:
                try:
                    begin = partial(session.look_up, first=_lock_statements(session, generation))
                    db, now = trying.enter_context(self.connections.transaction(begin, "ask a replica"))
                except (GenerationGone, LockTimeout):
                    break
                except IndexUnavailable as error:
                    if not isinstance(error.__cause__, UndefinedTable):
                        self.rest()
                        break
                    generation = 0  # another one is published there, or none yet
                    continue
                found = (now.generation, now.revision) if now else (0, 0)
                if found < self._newest:
                    self._resting_until = time.monotonic() + _BEHIND_S
                    break
                if found[0] == generation:
                    self.learn(*found)
                    stack.push(trying.pop_all())
                    return db, now
                generation = found[0]
        return None

    def close(self) -> None:
        """Let go of connections."""
        self.connections.close()


def _lock_statements(session: Session, generation: int) -> Sequence[LiteralString]:
    """What keeps the tables of a generation as they are, before the view of them begins.

    Locks of readers reach the server itself only if they read there. When it writes tables anew, to erase, a replica
    does so too, and a view from before would see them empty; this lock makes the replica wait, or end the view.
    """
    if not generation:
        return ()
    names = [sql.Identifier(session.schema, f"{kind}_{generation}") for kind in KINDS]
    return _SOON, sql.SQL(_LOCK).format(tables=sql.SQL(", ").join(names)).as_string()


_ATTEMPTS = 100
_PAUSE_S = 0.01
_LONG_S = 3_600  # that catching up with others, or a large graph, may take before a rebuild is published
_READERS_S = 20.0  # that readers may take to end before tables are written anew
_WRITING_ANEW_S = 1_800
_MAINTAIN_SINCE = 170_000  # the version of the server

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
_DROP = "SELECT drop_generation(%s)"
_ANALYZE = "SELECT analyze_generation(%s)"
_WRITE_ANEW = "SELECT write_anew(%s)"
_MAY_SWEEP = "SELECT has_table_privilege(%s, 'MAINTAIN')"
_SWEEP = "VACUUM (INDEX_CLEANUP on) {table}"
_AGENTS = "SELECT agents_of(%s)"
_WORKSPACES = "SELECT workspace FROM indexes WHERE agent = %s ORDER BY workspace"
_ALL_INDEXES = "SELECT agent, workspace FROM all_indexes()"


@value
class Address:
    """Which index on which server, and how long a change of it waits for those of others."""

    dsn: str
    schema: str
    agent: str
    workspace: str
    read_dsn: str | None  # of a replica that answers searches
    wait_s: float
    claim: Claim | None = None  # to its name; without one it is asked for by those who know whose it is
    missing: str | None = None  # why it is not known how the server is reached


class PostgresDriver:
    """Looks up the newest generation before each view and each change. Connects when it is first used."""

    is_being_built = False

    def __init__(self, address: Address) -> None:
        if sys.byteorder != "little":
            raise ConfigError("this machine orders bytes unlike the index on the server", key="store.driver")
        self.address = address
        self.replica = Replica(address.read_dsn) if address.read_dsn else None
        self.for_writing = Connections(address.dsn, read_only=False)
        self.for_reading = Connections(address.dsn, read_only=True)
        self._guard = threading.Lock()
        self._session: Session | None = None
        self._newest: PostgresCache | None = None
        self._recovered: str | None = None  # what was wrong with the last one that was set aside here

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """One consistent view, of the newest published index."""
        generation = 0
        try:
            with ExitStack() as stack:
                db, now = self._look_up(stack)
                generation = now.generation if now else 0
                view = PostgresView(db, self._cache(generation), now)
                stack.callback(view.close)
                yield Reader(view)
        except IndexCorrupt as error:
            if generation and self.replica is None:  # a replica has a disk of its own
                self._recovered = str(error)
                self._set_aside(generation)
            raise

    def _set_aside(self, generation: int) -> None:
        """Let nobody read a damaged generation any more: whoever syncs next makes another one."""
        with (
            suppress(IndexUnavailable, LockTimeout),  # then whoever meets it next does it
            self.for_writing.transaction(self.session().lock, "set a damaged index aside") as (db, now),
        ):
            if now is not None and now.generation == generation:
                session = self.session()
                db.execute(_PUBLISH, (None, session.agent, session.workspace))

    @contextmanager
    def changing(self, operation: str) -> Iterator[PostgresChange]:
        """One transaction, with the lock of the index."""
        session = self.session()
        with self.for_writing.transaction(session.lock, operation) as (db, now):
            if now is not None:
                now.refuse_strangers()
            tables = self._cache(now.generation).tables if now else Tables(0)
            change = PostgresChange(db, tables, now.fingerprint if now else None)
            yield change
            if now and not now.graph:
                change.make_graph_if_large(now.dims)
            if now and self.replica:
                self.replica.learn_from(db, now.generation)

    def joined(self) -> AbstractContextManager[None]:
        """Make each change at once: others wait to read it, and to write."""
        return nullcontext()

    def body_of(self, chunk: Chunk) -> None:
        """Nothing: a text is stored as it is."""

    @contextmanager
    def build(self, fingerprint: IndexFingerprint, reason: str) -> Iterator[PostgresBuild]:
        """Build a new generation beside the one that answers."""
        session = self.session()
        # The lock of this transaction tells others that the generation is still being built. It has seen nothing and
        # changed nothing, so that it is in the way of nothing; a lock of a whole connection would get lost behind a
        # pooler.
        hold_on = partial(session.introduce, idle_s=0)
        try:
            with self.for_writing.transaction(hold_on, "rebuild the index", is_long=True) as (holder, _):
                number = self._begin_generation(session, holder, fingerprint, reason)
                yield PostgresBuild(
                    session, self.for_writing, holder, number, fingerprint=fingerprint, replica=self.replica
                )
        finally:
            self._collect(session)

    def erase(self, source: Source, paths: Sequence[str]) -> None:
        """Drop files so that their text is in no row, and no byte, of any generation's tables."""
        session = self.session()
        kept = []
        with self.for_writing.transaction(session.lock, "erase files") as (db, now):
            numbers = db.execute(_GENERATIONS, (session.agent, session.workspace)).fetchall()
            for (number,) in numbers:
                if (now is None or number != now.generation) and _drop(db, number):
                    continue
                change = PostgresChange(db, Tables(number), None)
                for path in paths:
                    change.remove(source, path)
                change.wipe_removed()
                kept.append(number)
            if now and self.replica:
                self.replica.learn_from(db, now.generation)
        _write_anew(session, self.for_writing, kept)

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        with ExitStack() as stack:
            db, now = self._look_up(stack)
            return {**facts_of(db, self.session(), now), "recovered": self._recovered}

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part."""
        with ExitStack() as stack:
            db, now = self._look_up(stack)
            return sizes_of(db, now.generation) if now else {}

    @contextmanager
    def contents(self) -> Iterator[PostgresContents]:
        """All that the newest published index holds."""
        with ExitStack() as stack:
            db, now = self._look_up(stack)
            if now is not None:
                now.refuse_strangers()
            yield PostgresContents(db, now)

    def close(self) -> None:
        """Let go of connections; the next use opens them again."""
        self.for_writing.close()
        self.for_reading.close()
        if self.replica:
            self.replica.close()

    def session(self) -> Session:
        """What transactions say about themselves; made once the server is known to be prepared for us."""
        with self._guard:
            if self._session is None:
                address = self.address
                if address.missing:
                    raise IndexUnavailable(address.missing, hint=SET_IT)
                keeper = address.claim.keeper() if address.claim else None
                vectors = self._find_vectors()
                self._session = Session(
                    address.schema, vectors, address.agent, address.workspace, address.wait_s, keeper
                )
            return self._session

    def _find_vectors(self) -> str:
        """The schema that pgvector is in, on a server whose own schema is brought up to date."""
        if self.replica is not None:
            try:
                version, vectors = self._look_at(self.replica.connections)
            except IndexUnavailable:
                self.replica.rest()
            else:
                if version == NEWEST:
                    return vectors
        version, vectors = self._look_at(self.for_reading)
        if version < NEWEST:
            prepare(self.address.dsn, schema=self.address.schema)
            _, vectors = self._look_at(self.for_reading)
        return vectors

    def _look_at(self, connections: Connections) -> tuple[int, str]:
        """The version of our schema, and the schema that pgvector is in."""
        with connections.separate("look at the database") as db:
            version = version_of(db, self.address.schema)
            check_not_newer(version, self.address.schema)
            return version, vector_schema(db) or "public"

    def _look_up(self, stack: ExitStack) -> tuple[Connection, Published | None]:
        """Begin a view, which ends with the stack."""
        session, replica = self.session(), self.replica
        if replica is not None and not replica.is_resting:
            found = replica.view(stack, session)
            if found is not None:
                return found
        gone: set[int] = set()
        for _ in range(_ATTEMPTS):
            try:
                db, now = stack.enter_context(self.for_reading.transaction(session.look_up, "read the index"))
            except GenerationGone as error:
                gone.add(error.generation)
                time.sleep(_PAUSE_S)
            else:
                if replica is not None and now is not None:
                    replica.learn(now.generation, now.revision)
                return db, now
        if len(gone) == 1:  # nobody has published another one: its tables were dropped by a stranger
            self._recovered = "a table of the index is gone"
            self._set_aside(*gone)
            raise IndexCorrupt(
                "the index is damaged: a table of it is gone",
                hint="run `plainmind sync --force`: it is rebuilt from your notes",
            )
        raise IndexUnavailable("the index changes faster than it can be opened", hint="try again")

    def _cache(self, generation: int) -> PostgresCache:
        with self._guard:
            if self._newest is None or self._newest.tables.generation != generation:
                self._newest = PostgresCache(generation)
            return self._newest

    def _begin_generation(
        self, session: Session, holder: Connection, fingerprint: IndexFingerprint, reason: str
    ) -> int:
        """Make the tables of a new generation, and take its lock before others can see it."""
        with self.for_writing.transaction(session.introduce, "begin a rebuild") as (db, _):
            db.execute(_ADD_INDEX, (session.agent, session.workspace))
            session.keep(db)
            (index,) = db.execute(_INDEX, (session.agent, session.workspace)).fetchone() or (0,)
            made = (index, fingerprint_json(fingerprint), reason, fingerprint.embedder.dims)
            (number,) = db.execute(_MAKE, made).fetchone() or (0,)
            holder.execute(_HOLD, {**asdict(session.locks), "number": number})
            return int(number)

    def _collect(self, session: Session) -> None:
        """Drop what does not answer and is not used; what cannot be dropped now is left to the next rebuild."""
        with (
            suppress(PlainmindError),
            self.for_writing.transaction(session.introduce, "drop old indexes") as (db, _),
        ):
            for (number,) in db.execute(_UNPUBLISHED, (session.agent, session.workspace)).fetchall():
                _drop(db, number)


class PostgresBuild:
    """A generation that is being built beside the one that answers: only its builder sees it."""

    is_being_built = True

    def __init__(
        self,
        session: Session,
        connections: Connections,
        holder: Connection,
        number: int,
        *,
        fingerprint: IndexFingerprint,
        replica: Replica | None,
    ) -> None:
        """`holder` is the connection whose transaction keeps others from dropping it."""
        self._session = session
        self._connections = connections
        self._holder = holder
        self._tables = Tables(number)
        self._fingerprint = fingerprint
        self._replica = replica
        self._bulk = InBulk()
        self._one_at_a_time = threading.RLock()
        self._joint: tuple[PostgresChange, list[bool]] | None = None  # and whether one of its changes failed

    def finish(self) -> None:
        """Make everything found, and found fast."""
        self._flush()
        with self.changing("finish a rebuild", statement_s=_LONG_S) as change:
            change.make_graph_if_large(self._fingerprint.embedder.dims)
            change.db.execute(_ANALYZE, (self._tables.generation,))

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Hold the lock of the index, and let this generation answer at the end."""
        session, number = self._session, self._tables.generation
        locked = partial(session.lock, idle_s=_LONG_S)
        with self._connections.transaction(locked, "publish a rebuild") as (db, _):
            yield
            self._flush()
            self._holder.execute("SELECT")  # fails if the server was restarted: the tables may be gone
            db.execute(_PUBLISH, (number, session.agent, session.workspace))
            if self._replica:
                self._replica.learn_from(db, number)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Look at what was built so far."""
        with self._look("read the index") as (db, now):
            yield Reader(PostgresView(db, PostgresCache(now.generation), now))

    @contextmanager
    def changing(self, operation: str, *, statement_s: int = STATEMENT_S) -> Iterator[PostgresChange]:
        """Make a change in a transaction of its own, or in that of the changes it is joined with."""
        with self._one_at_a_time:
            if self._joint is not None:
                change, failures = self._joint
                try:
                    yield change
                except BaseException:
                    failures.append(True)
                    raise
                return
            begin = partial(self._begin, statement_s=statement_s)
            with self._connections.transaction(begin, operation) as (db, now):
                yield PostgresChange(db, self._tables, now.fingerprint, self._bulk)
            self._write_full_segments()

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Make all changes of a block in one transaction: a commit takes longer than a small file."""
        with self._one_at_a_time:
            if self._joint is not None:
                yield  # of a block that is joined already
                return
            with self.changing("index files") as change:
                failures: list[bool] = []
                self._joint = (change, failures)
                try:
                    yield
                finally:
                    self._joint = None
                if failures:
                    raise IndexUnavailable(
                        "a change failed, and with it those it was joined with", hint="try again"
                    )

    def body_of(self, chunk: Chunk) -> None:
        """Nothing: a text is stored as it is."""

    def build(self, fingerprint: IndexFingerprint, reason: str) -> NoReturn:  # noqa: ARG002
        """Refuse: this is a rebuild already."""
        raise IndexUnavailable("an index that is being built cannot be rebuilt", hint="leave the block first")

    def erase(self, source: Source, paths: Sequence[str]) -> None:
        """Drop files and every trace of them."""
        self._flush()
        with self.changing("erase files") as change:
            for path in paths:
                change.remove(source, path)
            change.wipe_removed()
        _write_anew(self._session, self._connections, [self._tables.generation])

    def describe(self) -> Mapping[str, Any]:
        """Say what this is."""
        return {"driver": "postgres", "path": None, "generation": self._tables.generation, "building": True}

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part of what was built so far."""
        with self._look("measure the index") as (db, now):
            return sizes_of(db, now.generation)

    @contextmanager
    def contents(self) -> Iterator[PostgresContents]:
        """All that was built so far."""
        with self._look("check the index") as (db, now):
            yield PostgresContents(db, now)

    def close(self) -> None:
        """Do nothing: the end of the `build()` block closes it."""

    @contextmanager
    def _look(self, operation: str) -> Iterator[tuple[Connection, Published]]:
        self._flush()
        with self._connections.transaction(self._begin, operation) as (db, now):
            yield db, now

    def _begin(self, db: Connection, *, statement_s: int = STATEMENT_S) -> Published:
        self._session.introduce(db, statement_s=statement_s)
        found = self._session.generation(db, self._tables.generation)
        if found is None or not found.is_kept:
            raise IndexUnavailable("the index that was being built is gone", hint="sync again")
        return found

    def _flush(self) -> None:
        """Write all postings that wait for it."""
        with self._one_at_a_time:
            if self._joint is not None:
                raise IndexUnavailable(
                    "changes are being joined", hint="leave the block, then read the index"
                )
            self._bulk.complete()
            self._write_full_segments()

    def _write_full_segments(self) -> None:
        with self._one_at_a_time:
            if self._bulk.is_full:
                with self._connections.transaction(self._begin, "index files") as (db, _):
                    self._bulk.write(db, self._tables)
                self._bulk.forget_written()


def _drop(db: Connection, number: int) -> bool:
    """Drop the tables of a generation, unless they are used."""
    row = db.execute(_DROP, (number,)).fetchone()
    return bool(row and row[0])


def _write_anew(session: Session, connections: Connections, generations: Iterable[int]) -> None:
    """Write the tables of generations anew, so that no byte of their files has what was deleted from them."""
    patient = replace(session, wait_s=_READERS_S)
    begin = partial(patient.lock, statement_s=_WRITING_ANEW_S)
    for number in generations:
        try:
            with connections.transaction(begin, "erase text") as (db, _):
                db.execute(_WRITE_ANEW, (number,))
        except LockTimeout as error:
            raise LockTimeout(
                "a reader is in the way of erasing text: some of it may be left in the files of the database",
                hint="end long-running searches, then run `plainmind sync --force`:"
                " it makes the index anew, without the text",
            ) from error
        _sweep_vectors(session, connections, f"vectors_{number}")


def _sweep_vectors(session: Session, connections: Connections, table: str) -> None:
    """Let the places of deleted vectors be used again; they are no text, and writing a graph anew takes minutes."""
    with connections.separate("sweep vectors", patience_s=_WRITING_ANEW_S) as db:
        if db.info.server_version >= _MAINTAIN_SINCE:
            row = db.execute(_MAY_SWEEP, (f"{session.schema}.{table}",)).fetchone()
            if row and row[0]:
                db.execute(sql.SQL(_SWEEP).format(table=sql.Identifier(session.schema, table)))


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
        claim: Claim | None = None,
        missing: str | None = None,
    ) -> None:
        """Use the server of `dsn`; `read_dsn` names a replica that answers searches.

        `wait_s` is how long a change waits for those of others, `claim` what is known about the name of the workspace,
        `missing` what every use is told, where there is no DSN yet.
        """
        address = Address(
            dsn=safe_dsn(dsn),
            schema=valid_schema(schema),
            agent=agent,
            workspace=workspace,
            read_dsn=safe_dsn(read_dsn, key=READ_DSN_KEY) if read_dsn else None,
            wait_s=wait_s,
            claim=claim,
            missing=missing,
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
        own = self.driver.address
        return PostgresStore(
            own.dsn,
            agent=agent,
            workspace=workspace,
            schema=own.schema,
            read_dsn=own.read_dsn,
            wait_s=own.wait_s,
        )

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
    missing: str | None = None,
) -> PostgresStore:
    """Open the index that other stores would keep in `folder`: its last two names are an agent's and a workspace's."""
    if not dsn and not missing:
        raise ConfigError(
            "the store `postgres` needs to know its server",
            key=DSN_KEY,
            hint="set `store.dsn` to postgresql://role@host/database, or to env:NAME of a variable that holds it",
        )
    above, name = os.path.split(folder or "")
    called = workspace or name or "main"
    claim = Claim(folder, called, bool(workspace), server_of(dsn or "", schema)) if folder else None
    return PostgresStore(
        dsn or "",
        agent=agent or os.path.basename(above) or "main",
        workspace=called,
        schema=schema,
        read_dsn=read_dsn,
        claim=claim,
        missing=missing,
    )
