"""What every transaction says first: whose rows it may touch, in which schema, and how long it may take."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from psycopg import sql

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import EVERY_SCOPE, IndexFingerprint
from plainmind.base.value import asdict, value
from plainmind.guests.postgres.wire import to_stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, LiteralString

    from plainmind.guests.postgres.connections import Connection


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
            row = db.execute(_PUBLISHED, asked)
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
        # Not in the pipeline: after one the server does not begin to count how long a transaction idles.
        return published_in(db.execute(_PUBLISHED, self._asked()).fetchone())

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
