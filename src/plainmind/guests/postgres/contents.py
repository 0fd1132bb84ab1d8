"""All that a generation holds: row by row for its digest, and added up for `status` and for a closer look."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter

from plainmind.base.model import Chunk, FileState, IndexFingerprint, Source
from plainmind.base.value import value
from plainmind.guests.postgres.change import Segments
from plainmind.guests.postgres.connections import KINDS, Published, Session, Tables, from_stored
from plainmind.guests.postgres.migrations import NEWEST
from plainmind.guests.postgres.view import position_of
from plainmind.index.digest import contradiction
from plainmind.index.driver import ChunkContents, SegmentContents
from plainmind.index.vectors import choose_dots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psycopg import Cursor

    from plainmind.guests.postgres.connections import Connection

_FILES = "SELECT id, path, source, hash, scope, chunks, tallest FROM {files}"
_CHUNKS = """SELECT c.file, c.id, c.scope, c.ordinal, c.start_line, c.end_line, c.length, c.text, c.context, c.day,
                    v.vector, v.source, v.scope
               FROM {chunks} c LEFT JOIN {vectors} v ON v.id = c.id
              ORDER BY c.file, c.ordinal, c.id"""
_STRAYS = """SELECT (SELECT count(*) FROM {vectors} v WHERE NOT EXISTS (SELECT FROM {chunks} c WHERE c.id = v.id)),
                    (SELECT count(*) FROM {postings} p
                      WHERE NOT EXISTS (SELECT FROM {segments} s WHERE s.number = p.segment)),
                    (SELECT count(*) FROM {positions} p
                      WHERE NOT EXISTS (SELECT FROM {segments} s WHERE s.number = p.segment)),
                    (SELECT count(*) FROM {chunks} c WHERE NOT EXISTS (SELECT FROM {files} f WHERE f.id = c.file))"""
_AT_ONCE = 1_000

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


@value
class _File:
    """One row of `files`."""

    id: int
    path: str
    source: Source
    hash: str
    scope: str
    chunks: int
    tallest: int


class PostgresContents:
    """Read inside one transaction, which its store has begun and will end."""

    def __init__(self, db: Connection, now: Published | None) -> None:
        self._db = db
        self._now = now
        self._tables = Tables(now.generation if now else 0)
        # By source and scope: the numbers of segments, counted as they come, and their ids.
        self._ids: dict[tuple[Source, str], list[tuple[int, array[int]]]] = {}

    def fingerprint(self) -> IndexFingerprint | None:
        """How it was made."""
        return self._now.fingerprint if self._now else None

    def segments(self) -> Iterator[SegmentContents]:
        """Every segment."""
        if self._now is None:
            return
        segments = Segments(self._db, self._tables)
        for at, segment in enumerate(segments.all()):
            ids, lengths = segments.positions(segment)
            if sorted(ids) != list(ids) or ids[0] < segment.first_id:
                raise contradiction("the ids of a segment are not in order")
            if sum(lengths) != segment.terms:
                raise contradiction("a segment has other chunks than it says")
            self._ids.setdefault((segment.source, segment.scope), []).append((at, ids))
            yield SegmentContents(
                lengths=lengths.tobytes(),
                living=segment.living,
                postings=segments.postings(segment),
                has_stale_postings=segment.has_stale_postings,
            )

    def files(self) -> Iterator[tuple[FileState, Iterator[ChunkContents]]]:
        """Every file with its chunks; those without any come last."""
        if self._now is None:
            return
        files = {}
        for id_, path, source, hash_, scope, chunks, tallest in self._db.execute(self._tables(_FILES)):
            files[id_] = _File(id_, from_stored(path), source, hash_, from_stored(scope), chunks, tallest)
        with self._db.cursor(name="digest", binary=True) as cursor:
            cursor.itersize = _AT_ONCE
            for id_, rows in groupby(cursor.execute(self._tables(_CHUNKS)), key=itemgetter(0)):
                file = files.pop(id_, None)
                if file is None:
                    raise contradiction("a chunk belongs to no file")
                yield _state(file), self._chunks(file, rows)
        for file in files.values():
            yield _state(file), self._chunks(file, iter(()))

    def check(self) -> None:
        """Look for what belongs to nothing."""
        if self._now and any(self._db.execute(self._tables(_STRAYS)).fetchone() or (1,)):
            raise contradiction("vectors, postings or chunks belong to nothing")

    def _chunks(self, file: _File, rows: Iterator[tuple[Any, ...]]) -> Iterator[ChunkContents]:
        """The chunks of one file, compared with what the file and the vectors say of them."""
        count = 0
        for _, id_, scope, ordinal, first, last, length, text, context, day, vector, *seen in rows:
            if last - first > file.tallest:
                raise contradiction("a chunk has more lines than the tallest of its file")
            others = [from_stored(scope)] if vector is None else [from_stored(scope), from_stored(seen[1])]
            if any(each != file.scope for each in others) or (vector is not None and seen[0] != file.source):
                raise contradiction("a chunk would be found by others than may see its file")
            count += 1
            chunk = Chunk(
                file.path, file.source, ordinal, first, last, from_stored(text), from_stored(context), day
            )
            yield ChunkContents(chunk, length, vector, *self._locate(file, id_))
        if count != file.chunks:
            raise contradiction("a file has other chunks than it says")

    def _locate(self, file: _File, id_: int) -> tuple[int, int]:
        for segment, ids in self._ids.get((file.source, file.scope), ()):
            position = position_of(ids, id_)
            if position is not None:
                return segment, position
        raise contradiction("a chunk belongs to no segment")


def _state(file: _File) -> FileState:
    return FileState(file.path, file.source, file.hash, 0, 0, 0, file.scope)


def sizes_of(db: Connection, generation: int) -> Mapping[str, int]:
    """Counts and bytes by part."""
    tables = Tables(generation)
    found = {name: _number(db.execute(tables(statement))) for name, statement in _SUMS.items()}
    for kind in KINDS:
        found[f"table.{kind}"] = _number(db.execute(_BYTES, ([f"{kind}_{generation}"],)))
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


def _number(rows: Cursor[Any]) -> int:
    row = rows.fetchone()
    return int(row[0]) if row else 0
