"""Facts about an index in PostgreSQL, for `status` and for a closer look."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from plainmind.guests.postgres.migrations import NEWEST
from plainmind.guests.postgres.session import KINDS, Published, Session, Tables
from plainmind.index.vectors import choose_dots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.postgres.connections import Connection

_BYTES = "SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0) FROM unnest(%s::text[]) AS name"
_GENERATIONS = "SELECT count(*) FROM generations WHERE index = %s"
_EXTENSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
_PASSES_GUARDS = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
_SUMS: Mapping[str, str] = {
    "files": "SELECT count(*) FROM {files}",
    "chunks": "SELECT count(*) FROM {chunks}",
    "texts": "SELECT coalesce(sum(octet_length(text) + octet_length(context)), 0) FROM {chunks}",
    "vectors": "SELECT coalesce(sum(2 * vector_dims(vector)), 0) FROM {vectors}",
    "terms": "SELECT count(*) FROM {postings}",
    "postings": """SELECT coalesce(sum(octet_length(term) + octet_length(positions) + octet_length(counts)), 0)
                     FROM {postings}""",
    "segments": "SELECT count(*) FROM {segments}",
    "positions": "SELECT coalesce(sum(used), 0) FROM {segments}",
    "holes": "SELECT coalesce(sum(used - living), 0) FROM {segments}",
}


def sizes_of(db: Connection, tables: Tables) -> Mapping[str, int]:
    """Counts and bytes by part."""
    found = {name: _number(db.execute(tables(statement))) for name, statement in _SUMS.items()}
    for kind in KINDS:
        found[f"table.{kind}"] = _number(db.execute(_BYTES, ([f"{kind}_{tables.generation}"],)))
    return found


def facts_of(db: Connection, session: Session, now: Published | None) -> Mapping[str, Any]:
    """What is cheaply known."""
    info = db.info
    names = [f"{kind}_{now.generation}" for kind in KINDS] if now else []
    extension = db.execute(_EXTENSION).fetchone()
    kernel, _ = choose_dots()
    version = info.server_version
    return {
        "driver": "postgres",
        "path": f"{info.dbname}.{session.schema} on {info.host or 'this machine'}",
        "agent": session.agent,
        "workspace": session.workspace,
        "generation": now.generation if now else None,
        "generations": _number(db.execute(_GENERATIONS, (now.index,))) if now else 0,
        "bytes": _number(db.execute(_BYTES, (names,))),
        "schema": NEWEST,
        "postgres": f"{version // 10_000}.{version % 10_000}",
        "pgvector": extension[0] if extension else None,
        "tls": bool(info.pgconn.ssl_in_use),
        "role": info.user,
        "passesGuards": bool(_number(db.execute(_PASSES_GUARDS))),
        "vector": {
            "dims": now.dims if now else 0, "stored": "float16", "kernel": kernel,
            "graph": now.graph if now else False,
        },
        "recoveries": 0,
        "recovered": None,
    }  # fmt: skip


def _number(rows: psycopg.Cursor[Any]) -> int:
    row = rows.fetchone()
    return int(row[0]) if row else 0
