"""How a server is spoken to: connections with deadlines, what every transaction says first, values on their way.

A connection is lent to one thread at a time and used again, by whichever agent: a new one costs more than a search.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import struct
import threading
import time
import zlib
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from weakref import WeakSet, WeakValueDictionary

import psycopg
from psycopg import IsolationLevel, errors, sql
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from plainmind.base.errors import IndexCorrupt, IndexUnavailable, LockTimeout, StorageFailure
from plainmind.base.lazy import pattern
from plainmind.base.model import EVERY_SCOPE, IndexFingerprint, Source
from plainmind.base.value import asdict, value
from plainmind.index.vectors import BYTES_PER_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, LiteralString, TypeVar

    R = TypeVar("R")
    T = TypeVar("T")
    Waiting = Generator[Any, Any, R]


MOST_CONNECTIONS = 16  # of a process, to read, and as many to write
IDLE_S = 60.0  # that one is kept which nobody uses
# Longer than a statement may take by its own deadline, which the server keeps as long as it lives.
PATIENCE_S = 75.0
_WAIT_S = 30.0
_NOTES_ARE_SAFE = "your notes are safe, they are files"

# Where no logging is configured, psycopg's remarks about a lost connection would go to standard error, beside the
# error that we raise for it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

# The server, too, must notice soon that a host is gone: until then its locks keep the others waiting.
_VECTOR_TYPE = """SELECT t.oid, t.typarray, pg_backend_pid(),
                         set_config('tcp_keepalives_idle', '15', false),
                         set_config('tcp_keepalives_interval', '5', false),
                         set_config('tcp_keepalives_count', '3', false)
                    FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace
                   WHERE t.typname = 'halfvec' AND e.extname = 'vector'"""


@contextmanager
def plain_errors(operation: str) -> Iterator[None]:  # noqa: C901 (one branch for each kind of error)
    """Turn the errors of PostgreSQL into ours; never with the text of a note, which PostgreSQL likes to quote."""
    try:
        yield
    except errors.LockNotAvailable as error:
        raise LockTimeout(
            f"others keep the index busy: could not {operation} in time", hint="try again"
        ) from error
    except (errors.QueryCanceled, errors.IdleInTransactionSessionTimeout) as error:
        raise IndexUnavailable(
            f"the database took too long to {operation}", hint="try again, or see what keeps it busy"
        ) from error
    except errors.DiskFull as error:
        raise StorageFailure(
            f"the disk of the database is full: could not {operation}", hint="free some space on the server"
        ) from error
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        raise IndexCorrupt(
            f"the database has a damaged file: {first_line(error)}",
            hint="run `plainmind sync --force`: the index is made anew from your notes; then look at the server's disk",
        ) from error
    except (errors.UndefinedTable, errors.SerializationFailure) as error:
        raise IndexUnavailable("the index was made anew meanwhile", hint="try again") from error
    except errors.DeadlockDetected as error:
        raise IndexUnavailable(f"others were in the way: could not {operation}", hint="try again") from error
    except errors.ReadOnlySqlTransaction as error:
        raise IndexUnavailable(
            f"this server only answers, it takes no changes: could not {operation}",
            hint="`store.dsn` must name the server that takes changes; name several hosts, and the one that does is"
            " found after a failover too; a replica goes into `store.readDsn`",
        ) from error
    except errors.InsufficientPrivilege as error:
        raise IndexUnavailable(
            f"the database does not let this role {operation}: {first_line(error)}",
            hint="let the owner of the schema run `plainmind migrate-store --prepare` for this role",
        ) from error
    except psycopg.OperationalError as error:
        raise _unreachable(error) from error
    except psycopg.Error as error:
        raise IndexUnavailable(
            f"the database could not {operation}: {first_line(error)}", hint=f"see its log; {_NOTES_ARE_SAFE}"
        ) from error


def first_line(error: psycopg.Error) -> str:
    """The first line of what PostgreSQL says, without the details: those quote rows."""
    text = error.diag.message_primary or str(error).removeprefix("connection is bad: ")
    return text.strip().partition("\n")[0] or type(error).__name__


# What a server says that refuses a connection, and what helps. It has no code for it, and may speak another language.
_REFUSALS = (
    (
        pattern("password authentication failed"),
        "correct the password: in the DSN or the variable it is in, in PGPASSWORD, or in ~/.pgpass",
    ),
    (
        pattern("too many clients|too many connections|connection slots are reserved"),
        "end programs that keep connections, raise `max_connections`, or put a pooler before the server",
    ),
    (
        pattern('(?:database|role) ".*" does not exist'),
        "make it on the server, or correct the DSN (`store.dsn`)",
    ),
    (pattern("no pg_hba.conf entry"), "let `pg_hba.conf` of the server allow this host, role and database"),
    (
        pattern("server does not support SSL"),
        "switch TLS on there; or say `sslmode=disable` in the DSN, and text travels for all to read",
    ),
    (pattern("the database system is "), "try again in a moment"),
)
_SAY_IT = (
    "put it into a variable that the DSN is in (`store.dsn`: env:NAME), into PGPASSWORD or into ~/.pgpass"
)


def _unreachable(error: psycopg.Error) -> IndexUnavailable:
    said = first_line(error).removeprefix("connection failed: ")
    if error.pgconn is not None and error.pgconn.needs_password:
        return IndexUnavailable(f"the database asks for a password: {said}", hint=_SAY_IT)
    for refusal, advice in _REFUSALS:
        if refusal.search(said):
            return IndexUnavailable(
                f"the database cannot be reached: {said}", hint=f"{advice}; {_NOTES_ARE_SAFE}"
            )
    return IndexUnavailable(
        f"the database cannot be reached: {said}",
        hint=f"start it, or correct the DSN (`store.dsn`); {_NOTES_ARE_SAFE}",
    )


def no_vectors() -> IndexUnavailable:
    """The error of a server without pgvector."""
    return IndexUnavailable(
        "this PostgreSQL has no pgvector",
        hint="install pgvector 0.8 or newer on the server, then let an administrator run `CREATE EXTENSION vector`"
        " in this database",
    )


class Connection(psycopg.Connection["Any"]):
    """Gives up on a server that has not answered for `patience_s`, and is closed then.

    A server that hangs, or is cut off, says nothing at all.
    """

    patience_s: float = PATIENCE_S

    def wait(self, gen: Waiting[R], *others: Any, **named: Any) -> R:
        """Let the server answer."""
        return super().wait(self._until(time.monotonic() + self.patience_s, gen), *others, **named)

    def _until(self, deadline: float, gen: Waiting[R]) -> Waiting[R]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if (
                    not ready and time.monotonic() > deadline
                ):  # nothing has come, as happens ten times a second
                    self.close()
                    raise psycopg.OperationalError("it does not answer any more")
                wanted = gen.send(ready)
        except StopIteration as ended:
            answer: R = ended.value
            return answer


class Connections:
    """What one store has of the connections of its process, which it shares with all that reach a server the same way.

    They may be shared, for nothing that a transaction says about itself outlives it.
    """

    def __init__(self, dsn: str, *, read_only: bool) -> None:
        self._way = dsn, read_only
        self._guard = threading.Lock()
        self._pool: _Pool | None = None

    @contextmanager
    def transaction(
        self, begin: Callable[[Connection], T], operation: str, *, is_long: bool = False
    ) -> Iterator[tuple[Connection, T]]:
        """One transaction, whose first statements `begin` runs: again, on a new connection, if the old one was dead.

        One that `is_long` has a connection beside those of all others, who would wait for it.
        """
        pool = self._joined()
        with plain_errors(operation), nullcontext() if is_long else pool.slot():
            db, begun = pool.begin(begin)
            try:
                yield db, begun
                db.commit()
            except BaseException:
                pool.take_back(db)
                raise
            pool.take_back(db)

    @contextmanager
    def separate(self, operation: str, *, patience_s: float = PATIENCE_S) -> Iterator[Connection]:
        """A connection outside of the pool, in which each statement is a transaction. It knows no vectors."""
        with plain_errors(operation):
            db = _open(self._way[0])
            db.patience_s = patience_s
            try:
                yield db
            finally:
                db.close()

    def close(self) -> None:
        """Close what is idle, if nobody else in this process uses it; the next use opens new ones."""
        with self._guard:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.leave(self)

    def _joined(self) -> _Pool:
        with self._guard:
            if self._pool is None:
                self._pool = _join(self._way, self)
            return self._pool


class _OfThread(threading.local):
    """How many connections a thread has, as a list of one number: whoever gives one back may be another thread."""

    def __init__(self) -> None:
        self.held = [0]


class _Pool:
    """A pool that starts no thread: a thread that finds no idle connection opens one."""

    def __init__(self, dsn: str, *, read_only: bool) -> None:
        self._dsn = dsn
        self._read_only = read_only
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._guard = threading.Lock()
        self._idle: list[tuple[Connection, float]] = []  # and since when; the last one is used first
        self._users: WeakSet[Connections] = WeakSet()
        self._of_thread = _OfThread()

    def join(self, user: Connections) -> None:
        """Count one more who may use it."""
        with self._guard:
            self._users.add(user)

    def leave(self, user: Connections) -> None:
        """Close what is idle when the last one has left."""
        with self._guard:
            self._users.discard(user)
            is_used = bool(self._users)
        if not is_used:
            self.close()

    def close(self) -> None:
        """Close what is idle."""
        with self._guard:
            idle, self._idle = self._idle, []
        for db, _ in idle:
            db.close()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait until not too many are in use. Who has one already gets another: nobody waits for those that wait."""
        held = self._of_thread.held
        is_first = not held[0]
        if is_first and not self._room.acquire(timeout=_WAIT_S):
            raise LockTimeout("too many threads of this process use the index at once", hint="try again")
        held[0] += 1
        try:
            yield
        finally:
            held[0] -= 1
            if is_first:
                self._room.release()

    def begin(self, begin: Callable[[Connection], T]) -> tuple[Connection, T]:
        """Begin a transaction on a connection that `take_back` gets afterwards."""
        with self._guard:
            db = self._idle.pop()[0] if self._idle else None
        if db is not None:
            try:
                return db, begin(db)
            except psycopg.OperationalError:
                # The server was restarted since: nothing has happened yet, and none of the others is any better.
                self.take_back(db)
                if not db.closed:
                    raise
                self.close()
            except BaseException:
                self.take_back(db)
                raise
        db = self._connect()
        try:
            return db, begin(db)
        except BaseException:
            self.take_back(db)
            raise

    def take_back(self, db: Connection) -> None:
        """Keep a connection for the next thread, unless it is broken or nobody is left; close those unused for long."""
        with suppress(psycopg.Error):
            db.rollback()  # after a commit there is nothing to do
        now = time.monotonic()
        with self._guard:
            is_kept = bool(self._users) and not (db.closed or db.broken)
            unused = [one for one, since in self._idle if now - since > IDLE_S]
            self._idle = [(one, since) for one, since in self._idle if now - since <= IDLE_S]
            if is_kept:
                self._idle.append((db, now))
        for one in unused if is_kept else (*unused, db):
            one.close()

    def _connect(self) -> Connection:
        db = _open(self._dsn)
        try:
            _register_types(db)
            db.autocommit = False
            if self._read_only:
                db.read_only = True
                db.isolation_level = IsolationLevel.REPEATABLE_READ
            else:
                # Whatever the server's default: who has waited for a lock must see what the other did.
                db.isolation_level = IsolationLevel.READ_COMMITTED
        except BaseException:
            db.close()
            raise
        return db


_pools_guard = threading.Lock()
_pools: WeakValueDictionary[tuple[str, bool], _Pool] = WeakValueDictionary()


def _join(way: tuple[str, bool], user: Connections) -> _Pool:
    dsn, read_only = way
    with _pools_guard:
        pool = _pools.get(way)
        if pool is None:
            pool = _pools[way] = _Pool(dsn, read_only=read_only)
        pool.join(user)
        return pool


def _begin_anew() -> None:
    """Leave the connections of its parent to a forked process's parent: two cannot speak on one."""
    global _pools, _pools_guard
    _pools, _pools_guard = WeakValueDictionary(), threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


def _open(dsn: str) -> Connection:
    try:
        return Connection.connect(dsn, autocommit=True)
    except psycopg.OperationalError as error:
        raise _unreachable(error) from error


def _register_types(db: Connection) -> None:
    row = db.execute(_VECTOR_TYPE, prepare=False).fetchone()
    if row is None:
        raise no_vectors()
    halfvec, halfvecs, process, *_ = row
    register(db, halfvec, halfvecs)
    if process != db.info.backend_pid:
        # There is a pooler between: what was prepared for one server process another does not know.
        db.prepare_threshold = None


# --- what every transaction says first: whose rows it may touch, in which schema, and how long it may take ---


KINDS = ("files", "chunks", "vectors", "segments", "positions", "postings")
ALL_SCOPES = "*"
STATEMENT_S = 60
# A host that sleeps, or is cut off, must not keep the others from an index; the server forgets it after this.
_IDLE_S = 600
_FOR_THE_ANSWER_S = 15  # that a server which has ended a statement says so
_MOST_SCANNED = "100000"  # where most of what is near is hidden

_INTRODUCE = """SELECT set_config('plainmind.agent', %(agent)s, true),
                       set_config('plainmind.scopes', '*', true),
                       set_config('search_path', %(path)s, true),
                       set_config('statement_timeout', %(statement)s, true),
                       set_config('lock_timeout', %(lock)s, true),
                       set_config('idle_in_transaction_session_timeout', %(idle)s, true),
                       set_config('jit', 'off', true)"""
# A search among vectors goes through their graph where they have one, whatever the planner thinks of it.
_INTRODUCE_READER = f"""{_INTRODUCE},
                       set_config('hnsw.iterative_scan', 'relaxed_order', true),
                       set_config('hnsw.max_scan_tuples', %(scanned)s, true),
                       set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
                       set_config('plan_cache_mode', 'force_generic_plan', true)"""
_NARROW = "SELECT set_config('plainmind.scopes', %s, true)"
_LOCK_INDEX = "SELECT pg_advisory_xact_lock(%s, id) FROM indexes WHERE agent = %s AND workspace = %s"
_PUBLISHED = """SELECT i.id, g.id, g.fingerprint, g.dims, g.graph, g.revision, g.contents,
                       pg_try_advisory_xact_lock_shared(%(lock)s, g.id)
                       AND (SELECT bool_and(to_regclass(kind || '_' || g.id) IS NOT NULL)
                              FROM unnest(%(kinds)s::text[]) AS kind)
                  FROM indexes i LEFT JOIN generations g ON g.id = i.published
                 WHERE i.agent = %(agent)s AND i.workspace = %(workspace)s"""
_KEPT_BY = "SELECT keeper FROM indexes WHERE agent = %s AND workspace = %s"
_KEEP = "UPDATE indexes SET keeper = %s WHERE agent = %s AND workspace = %s AND keeper IS NULL"
_GENERATION = """SELECT index, id, fingerprint, dims, graph, revision, contents,
                        pg_try_advisory_xact_lock_shared(%(lock)s, id)
                   FROM generations WHERE id = %(generation)s"""


@value
class Locks:
    """The first halves of advisory locks; the second is the number of an index or of a generation."""

    index: int  # held while an index is changed or published; by a builder with the number of a generation, negated
    generation: int  # shared by those who read or build a generation, so that it is not dropped


def locks_of(schema: str) -> Locks:
    """The locks of one installation: others may share its server."""
    return Locks(_number(f"{schema}.indexes"), _number(f"{schema}.generations"))


def _number(name: str) -> int:
    return zlib.crc32(name.encode()) - 2**31


class Tables:
    """SQL for one generation: the same statements, each with the tables of that generation."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self._names = {kind: sql.Identifier(f"{kind}_{generation}") for kind in KINDS}
        self._texts: dict[tuple[LiteralString, int], LiteralString] = {}

    def __call__(self, statement: LiteralString, *, limit: int = 0) -> LiteralString:
        """A statement in which `{files}` stands for the table of files, and so on.

        Where it has a `{limit}`, that is the number itself: a plan for any number at all is one without a graph.
        """
        found = self._texts.get((statement, limit))
        if found is None:
            made = sql.SQL(statement).format(**self._names, limit=sql.Literal(limit))
            found = self._texts[statement, limit] = made.as_string()
        return found


class GenerationGone(Exception):
    """Another generation was published, and this one dropped, while a view of it was being opened: look again."""

    def __init__(self, generation: int = 0) -> None:
        super().__init__(generation)
        self.generation = generation


@value
class Published:
    """The generation that a transaction works on."""

    index: int
    generation: int
    fingerprint: IndexFingerprint
    dims: int
    graph: bool
    revision: int
    contents: int
    is_kept: bool  # its tables are there, and are not dropped before the transaction ends

    def refuse_strangers(self) -> None:
        """Raise IndexCorrupt if a program that is none of ours has changed a row since it was built."""
        if self.contents < 0:
            raise IndexCorrupt(
                "the index is damaged: another program has changed rows of it",
                hint="run `plainmind sync --force`: it is rebuilt from your notes",
            )


@value
class Session:
    """Who uses which index of which installation."""

    schema: str
    vectors: str  # the schema that pgvector is in
    agent: str
    workspace: str
    wait_s: float = 30.0  # for a lock that another holds
    keeper: str | None = None  # this machine, if the index is for no other

    @property
    def locks(self) -> Locks:
        """The locks of the installation."""
        return locks_of(self.schema)

    def introduce(self, db: Connection, *, statement_s: int = STATEMENT_S, idle_s: int = _IDLE_S) -> None:
        """Say whose rows this transaction may touch: without it there are none.

        No statement may take longer than `statement_s`, and no pause between two than `idle_s`; 0 is for any.
        """
        db.execute(_INTRODUCE, self._parameters(db, statement_s, idle_s))

    def _parameters(
        self, db: Connection, statement_s: int = STATEMENT_S, idle_s: int = _IDLE_S
    ) -> dict[str, str]:
        db.patience_s = statement_s + _FOR_THE_ANSWER_S
        return {
            "agent": self.agent,
            "path": f"{self.schema}, {self.vectors}",
            "statement": f"{statement_s}s",
            "lock": f"{int(1000 * self.wait_s)}ms",
            "idle": f"{idle_s}s",
        }

    def look_up(self, db: Connection, *, first: Sequence[LiteralString] = ()) -> Published | None:
        """Begin a view: find what is published, and keep it from being dropped.

        `first` is what has to be done before it is settled what the view sees.
        """
        asked = self._asked()
        with db.pipeline():
            for statement in first:
                db.execute(statement)
            db.execute(_INTRODUCE_READER, {**self._parameters(db), "scanned": _MOST_SCANNED})
            kept_by = db.execute(_KEPT_BY, (self.agent, self.workspace)) if self.keeper else None
            row = db.execute(_PUBLISHED, asked)
        if kept_by is not None:
            self._refuse_others(kept_by.fetchone())
        found = published_in(row.fetchone())
        if found is not None and not found.is_kept:
            raise GenerationGone(found.generation)
        return found

    def generation(self, db: Connection, number: int) -> Published | None:
        """Find one generation, published or not, and keep it from being dropped."""
        row = db.execute(_GENERATION, {"lock": self.locks.generation, "generation": number}).fetchone()
        return published_in(row)

    def lock(
        self, db: Connection, *, statement_s: int = STATEMENT_S, idle_s: int = _IDLE_S
    ) -> Published | None:
        """Begin a change: until the transaction ends, this index is not changed or published by others."""
        with db.pipeline():
            self.introduce(db, statement_s=statement_s, idle_s=idle_s)
            db.execute(_LOCK_INDEX, (self.locks.index, self.agent, self.workspace))
            kept_by = db.execute(_KEPT_BY, (self.agent, self.workspace)) if self.keeper else None
        if kept_by is not None:
            self._keep(db, kept_by.fetchone())
        # Not in the pipeline: after one the server does not begin to count how long a transaction idles.
        return published_in(db.execute(_PUBLISHED, self._asked()).fetchone())

    def keep(self, db: Connection) -> None:
        """Before a change, say that the index is of this machine's notes. Raises IndexUnavailable if it is not."""
        if self.keeper is not None:
            self._keep(db, db.execute(_KEPT_BY, (self.agent, self.workspace)).fetchone())

    def _keep(self, db: Connection, row: tuple[Any, ...] | None) -> None:
        self._refuse_others(row)
        if row == (None,):
            db.execute(_KEEP, (self.keeper, self.agent, self.workspace))
            self._refuse_others(db.execute(_KEPT_BY, (self.agent, self.workspace)).fetchone())

    def _refuse_others(self, row: tuple[Any, ...] | None) -> None:
        """Raise IndexUnavailable when the index is of another machine's notes."""
        kept_by = row[0] if row else None
        if kept_by is not None and kept_by != self.keeper:
            name = self.workspace
            raise IndexUnavailable(
                f"the index `{name}` on this server is of another machine's notes, in a folder at the same place",
                hint="say what these notes are called there: `plainmind config set store.workspace NAME`, with a name"
                f" of their own; or, on every machine that has the same notes, the same name: {name}",
            )

    def _asked(self) -> dict[str, Any]:
        return {
            "lock": self.locks.generation,
            "agent": self.agent,
            "workspace": self.workspace,
            "kinds": list(KINDS),
        }


@contextmanager
def only_scopes(db: Connection, scopes: frozenset[str]) -> Iterator[None]:
    """Let the server itself hide the rows of all other scopes from the statements of a block."""
    if scopes == EVERY_SCOPE:
        yield
        return
    with db.pipeline():
        db.execute(_NARROW, (scopes_json(scopes),))
        yield
        db.execute(_NARROW, (ALL_SCOPES,))


def scopes_json(scopes: Iterable[str]) -> str:
    """Scopes as the server reads them."""
    return json.dumps([to_stored(scope) for scope in sorted(scopes)])


def published_in(row: tuple[Any, ...] | None) -> Published | None:
    """What a row says; None when nothing was ever published."""
    if row is None or row[1] is None:
        return None
    index, number, fingerprint, dims, graph, revision, contents, is_kept = row
    return Published(
        index, number, fingerprint_of(fingerprint), dims, graph, revision, contents, bool(is_kept)
    )


def fingerprint_json(fingerprint: IndexFingerprint) -> str:
    """A fingerprint as a row keeps it."""
    return json.dumps(asdict(fingerprint))


def fingerprint_of(stored: str) -> IndexFingerprint:
    """How an index is made."""
    try:
        return IndexFingerprint.from_facts(json.loads(stored))
    except (ValueError, TypeError, KeyError) as error:
        raise IndexCorrupt(
            "the index does not say how it was made", hint="run `plainmind sync --force`"
        ) from error


# --- values on their way to the server and back: any text at all, names and numbers, vectors, long lists of ids ---


# A private character of the last plane: it stands before what is spelled out, and spells itself out too.
_MARK = "\U0010fffd"
_UNSTORABLE = pattern("[\x00\ud800-\udfff\U0010fffd]")
_SPELLED = pattern("\U0010fffd([0-9a-f]{4})")
_OWN = "ffff"  # spells the mark
_KEY_CHARACTERS = 200  # an index takes no longer keys
_HEADER = struct.Struct(">HH")  # the number of dimensions, and nothing
_LIST = struct.Struct(">iiIii")  # one dimension, no NULL, of int8, so many, counted from one


def to_stored(text: str) -> str:
    """The form in which a text is stored: nearly always itself.

    PostgreSQL takes no NUL and no lone surrogate: those few are spelled out.
    """
    if "\x00" not in text and _MARK not in text:
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return text
    return _UNSTORABLE.sub(
        lambda found: _MARK + (_OWN if found[0] == _MARK else f"{ord(found[0]):04x}"), text
    )


def from_stored(stored: str) -> str:
    """The text that was stored."""
    if _MARK not in stored:
        return stored
    return _SPELLED.sub(lambda found: _MARK if found[1] == _OWN else chr(int(found[1], 16)), stored)


def file_name(source: Source, path: str) -> bytes:
    """By what a file is found: its path may be too long for an index."""
    return hashlib.sha256(json.dumps([source, path]).encode()).digest()


def term_key(term: str) -> str:
    """By what a term is found: itself, unless it is too long for an index."""
    if len(term) <= _KEY_CHARACTERS:
        return term
    # No term has a control character in it, so that none looks like the key of another.
    return "\x01" + hashlib.sha256(term.encode()).hexdigest()


def signed_64(number: int) -> int:
    """Fit an unsigned 64-bit number, an inode, into a signed one; `unsigned_64` undoes it."""
    return number - 2**64 if number >= 2**63 else number


def unsigned_64(number: int) -> int:
    """Undo `signed_64`."""
    return number + 2**64 if number < 0 else number


@value
class HalfVector:
    """A packed vector on its way to the server."""

    packed: bytes


@value
class Ids:
    """Many ids on their way to the server: a list of numbers would take ten times as long."""

    numbers: array[int]  # int64


class _IdsDumper(Dumper):
    format = Format.BINARY
    oid = 1016  # of an array of int8

    def dump(self, obj: Ids) -> Buffer:
        count = len(obj.numbers)
        numbers = array("q", obj.numbers)
        numbers.byteswap()
        packed = numbers.tobytes()
        out = bytearray(12 * count)  # of each: how many bytes it has, in four, then those
        out[3::12] = bytes((8,)) * count
        for place in range(8):
            out[4 + place :: 12] = packed[place::8]
        return _LIST.pack(1, 0, 20, count, 1) + out


def register(db: psycopg.Connection[Any], halfvec: int, halfvecs: int) -> None:
    """Let a connection send and read vectors: `halfvec` is their type on this server, `halfvecs` that of arrays."""

    class HalfVectorDumper(Dumper):
        format = Format.BINARY
        oid = halfvec

        def dump(self, obj: HalfVector) -> Buffer:
            return _HEADER.pack(len(obj.packed) // BYTES_PER_NUMBER, 0) + _swap_bytes(obj.packed)

    TypeInfo("halfvec", halfvec, halfvecs).register(db)
    db.adapters.register_dumper(HalfVector, HalfVectorDumper)
    db.adapters.register_dumper(Ids, _IdsDumper)
    db.adapters.register_loader(halfvec, _HalfVectorLoader)


class _HalfVectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return _swap_bytes(bytes(data)[_HEADER.size :])


def _swap_bytes(numbers: bytes) -> bytes:
    """Change between the byte order of the machine, which is little-endian, and that of the network."""
    swapped = array("H", numbers)
    swapped.byteswap()
    return swapped.tobytes()
