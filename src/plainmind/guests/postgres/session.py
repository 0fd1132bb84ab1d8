"""What every transaction says first: whose rows it may touch, in which schema, and how long it may take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import EVERY_SCOPE, EmbedderIdentity, IndexFingerprint
from plainmind.base.value import value
from plainmind.guests.postgres.naming import Locks, locks_of
from plainmind.guests.postgres.odd_text import storable
from plainmind.guests.postgres.patience import PatientConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, LiteralString

    from psycopg import Connection

    Db = PatientConnection

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
                       pg_try_advisory_xact_lock_shared(%(lock)s, g.id) AND to_regclass('files_' || g.id) IS NOT NULL
                  FROM indexes i LEFT JOIN generations g ON g.id = i.published
                 WHERE i.agent = %(agent)s AND i.workspace = %(workspace)s"""
_GENERATION = """SELECT index, id, fingerprint, dims, graph, revision, contents,
                        pg_try_advisory_xact_lock_shared(%(lock)s, id)
                   FROM generations WHERE id = %(generation)s"""


class GenerationGone(Exception):
    """Another generation was published, and this one dropped, while a view of it was being opened: look again."""


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
    is_kept: bool  # nobody drops its tables before the transaction ends


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

    def introduce(self, db: Db, *, statement_s: int = STATEMENT_S, idle_s: int = _IDLE_S) -> None:
        """Say whose rows this transaction may touch: without it there are none.

        No statement may take longer than `statement_s`, and no pause between two than `idle_s`; 0 is for any.
        """
        db.execute(_INTRODUCE, self._said(db, statement_s, idle_s))

    def _said(self, db: Db, statement_s: int = STATEMENT_S, idle_s: int = _IDLE_S) -> dict[str, str]:
        db.patience_s = statement_s + _FOR_THE_ANSWER_S
        return {
            "agent": self.agent,
            "path": f"{self.schema}, {self.vectors}",
            "statement": f"{statement_s}s",
            "lock": f"{int(1000 * self.wait_s)}ms",
            "idle": f"{idle_s}s",
        }

    def look_up(self, db: Db, *, first: Sequence[LiteralString] = ()) -> Published | None:
        """Begin a view: find what is published, and keep it from being dropped.

        `first` is what has to be done before it is settled what the view sees.
        """
        asked = {"lock": self.locks.generation, "agent": self.agent, "workspace": self.workspace}
        with db.pipeline():
            for statement in first:
                db.execute(statement)
            db.execute(_INTRODUCE_READER, {**self._said(db), "scanned": _MOST_SCANNED})
            row = db.execute(_PUBLISHED, asked)
        found = published(row.fetchone())
        if found is not None and not found.is_kept:
            raise GenerationGone
        return found

    def generation(self, db: Db, number: int) -> Published | None:
        """Find one generation, published or not, and keep it from being dropped."""
        row = db.execute(_GENERATION, {"lock": self.locks.generation, "generation": number}).fetchone()
        return published(row)

    def lock(self, db: Db, *, statement_s: int = STATEMENT_S, idle_s: int = _IDLE_S) -> Published | None:
        """Begin a change: nobody else changes or publishes this index until the transaction ends."""
        with db.pipeline():
            self.introduce(db, statement_s=statement_s, idle_s=idle_s)
            db.execute(_LOCK_INDEX, (self.locks.index, self.agent, self.workspace))
        # Not in the pipeline: after one the server does not begin to count how long a transaction idles.
        asked = {"lock": self.locks.generation, "agent": self.agent, "workspace": self.workspace}
        return published(db.execute(_PUBLISHED, asked).fetchone())


@contextmanager
def narrowed(db: Connection[Any], scopes: frozenset[str]) -> Iterator[None]:
    """Let the server itself hide the rows of all other scopes from the statements of a block."""
    if scopes == EVERY_SCOPE:
        yield
        return
    with db.pipeline():
        db.execute(_NARROW, (as_json(scopes),))
        yield
        db.execute(_NARROW, (ALL_SCOPES,))


def as_json(scopes: Iterable[str]) -> str:
    """Scopes as the server reads them."""
    return json.dumps([storable(scope) for scope in sorted(scopes)])


def published(row: tuple[Any, ...] | None) -> Published | None:
    """What a row says; None when nothing was ever published."""
    if row is None or row[1] is None:
        return None
    index, number, fingerprint, dims, graph, revision, contents, is_kept = row
    return Published(
        index, number, fingerprint_of(fingerprint), dims, graph, revision, contents, bool(is_kept)
    )


def fingerprint_of(stored: str) -> IndexFingerprint:
    """How an index is made."""
    try:
        facts = json.loads(stored)
        return IndexFingerprint(**{**facts, "embedder": EmbedderIdentity(**facts["embedder"])})
    except (ValueError, TypeError, KeyError) as error:
        raise IndexCorrupt(
            "the index does not say how it was made", hint="run `plainmind sync --force`"
        ) from error
