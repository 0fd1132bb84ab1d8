"""Erasing: having the server write tables anew, so that no byte of their files still has what was deleted."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import sql

from plainmind.base.errors import LockTimeout
from plainmind.base.value import replace
from plainmind.guests.postgres.connections import Connections
from plainmind.guests.postgres.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.postgres.connections import Connection

_WAIT_S = 20.0  # for readers to end
_LONG_S = 1_800

_WRITE_ANEW = "SELECT write_anew(%s)"
_MAY_SWEEP = "SELECT has_table_privilege(%s, 'MAINTAIN')"
_SWEEP = "VACUUM (INDEX_CLEANUP on) {table}"
_MAINTAIN_SINCE = 170_000


def write_anew(session: Session, connections: Connections, generations: Iterable[int]) -> None:
    """Write the tables of generations anew, without anything that was deleted from them."""
    patient = replace(session, wait_s=_WAIT_S)

    def begin(db: Connection) -> None:
        patient.lock(db, statement_s=_LONG_S)

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
    with connections.separate("sweep vectors", patience_s=_LONG_S) as db:
        if db.info.server_version >= _MAINTAIN_SINCE:
            row = db.execute(_MAY_SWEEP, (f"{session.schema}.{table}",)).fetchone()
            if row and row[0]:
                db.execute(sql.SQL(_SWEEP).format(table=sql.Identifier(session.schema, table)))
