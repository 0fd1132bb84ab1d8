"""A copy of the server that answers searches, for as long as it knows all that this process has seen or written."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from psycopg import sql
from psycopg.errors import UndefinedTable

from plainmind.base.errors import IndexUnavailable, LockTimeout
from plainmind.guests.postgres.connections import Connections
from plainmind.guests.postgres.session import KINDS, GenerationGone, Published, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import LiteralString, TypeAlias

    from plainmind.guests.postgres.connections import Connection

    View: TypeAlias = "tuple[Connection, Published | None]"

# Neither of these settles what a view sees, as any query would.
_SOON = "SET LOCAL lock_timeout = '1s'"
_LOCK = "LOCK TABLE {tables} IN ACCESS SHARE MODE"
_REVISION = "SELECT revision FROM generations WHERE id = %s"
_DOWN_S = 30.0  # not asked again for so long after it could not be reached
_BEHIND_S = 1.0  # nor after it did not know what we know
_ATTEMPTS = 3


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
        for _ in range(_ATTEMPTS):
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
