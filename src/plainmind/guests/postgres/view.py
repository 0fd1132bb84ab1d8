"""One view of a generation: what its tables answer to the reader, in few round trips; and all that they hold."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import EVERY_SCOPE, Chunk, FileState, IndexFingerprint, SearchFilter, Source
from plainmind.base.value import replace, value
from plainmind.guests.postgres.connections import (
    KINDS,
    HalfVector,
    Ids,
    Published,
    Session,
    Tables,
    file_name,
    from_stored,
    only_scopes,
    term_key,
    to_stored,
    unsigned_64,
)
from plainmind.guests.postgres.migrations import NEWEST
from plainmind.index.bm25 import Postings
from plainmind.index.digest import contradiction
from plainmind.index.driver import ChunkContents, SegmentContents
from plainmind.index.reader import OVERHEAD, Cache, IndexCounts
from plainmind.index.vectors import choose_dots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, LiteralString, TypeAlias

    from psycopg import Cursor

    from plainmind.guests.postgres.connections import Connection

    Part: TypeAlias = "tuple[Segment, None]"
    Expected: TypeAlias = tuple[bytes, SearchFilter, int]  # a query, and for whom and how many


MOST = 65_536  # chunks of a segment: positions are uint16
# Fewer vectors are sooner compared one by one than by a graph, and none of them is missed.
GRAPH_FROM = 4_096
# So many that a filter admits are sooner compared one by one than found in a graph of all, and none is missed.
COMPARED = 32_768
_MOST_BYTES = 96_000_000
_CHUNK_OVERHEAD = 600
# The server compares in single precision and its graph finds hardly all: so many more are compared again.
_MARGIN = 16
# How many candidates a search in the graph keeps, by how many vectors there are: so that it finds 98 of 100, and more.
_EFFORTS = ((50_000, "400"), (200_000, "550"))
_MOST_EFFORT = "1000"  # that pgvector takes; for a filter, which hides some of them

SEGMENT_COLUMNS = "number, source, scope, first_id, capacity, used, living, terms, revision, posted"
ALL_SEGMENTS = f"SELECT {SEGMENT_COLUMNS} FROM {{segments}} ORDER BY first_id, number"  # noqa: S608 (a constant)
_COUNT_FILES = "SELECT source, count(*), sum(chunks)::bigint FROM {files} GROUP BY source"
_FILES = "SELECT path, source, hash, size, mtime_ns, inode, scope FROM {files}"
_POSITIONS = "SELECT segment, ids, lengths FROM {positions} WHERE segment = ANY(%s)"
_POSTINGS = """SELECT segment, term, positions, counts FROM {postings}
                WHERE segment = ANY(%s) AND term = ANY(%s)"""
_CHUNKS = """SELECT c.id, f.path, f.source, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
               FROM {chunks} c JOIN {files} f ON f.id = c.file
              WHERE c.id = ANY(%s)"""
_CHUNKS_BETWEEN = """SELECT f.path, f.source, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
                       FROM {files} f JOIN {chunks} c ON c.file = f.id
                      WHERE f.name = %(name)s AND c.end_line >= %(first)s
                        AND c.start_line BETWEEN %(first)s - f.tallest AND %(last)s
                      ORDER BY c.ordinal"""
_IDS_OF = """SELECT c.id, f.source, f.scope
               FROM {files} f JOIN {chunks} c ON c.file = f.id
              WHERE f.name = ANY(%s)"""
_VECTORS = "SELECT id, vector FROM {vectors} WHERE id = ANY(%s)"
_VECTORS_OF = """SELECT v.vector
                   FROM {files} f JOIN {chunks} c ON c.file = f.id LEFT JOIN {vectors} v ON v.id = c.id
                  WHERE f.name = %s ORDER BY c.ordinal"""
_SET_EFFORT = "SELECT set_config('hnsw.ef_search', %s, true)"
_NEAR_ADMITTED = """SELECT id, vector, source, scope FROM {vectors}
                     WHERE source = ANY(%(sources)s) AND (%(all)s OR scope = ANY(%(scopes)s))
                     ORDER BY vector <#> %(query)s, id LIMIT {limit}"""
_NEAR_AMONG_IDS = """SELECT id, vector, source, scope FROM {vectors} WHERE id = ANY(%(ids)s)
                      ORDER BY vector <#> %(query)s, id LIMIT {limit}"""
_NEAR_BY_GRAPH = "SELECT id, vector, source, scope FROM {vectors} ORDER BY vector <=> %(query)s LIMIT {limit}"
_NEAR_ADMITTED_BY_GRAPH = """SELECT id, vector, source, scope FROM {vectors}
                              WHERE source = ANY(%(sources)s) AND (%(all)s OR scope = ANY(%(scopes)s))
                              ORDER BY vector <=> %(query)s LIMIT {limit}"""


@value
class Segment:
    """One row of `segments`: chunks of one source and scope, by ascending id."""

    number: int
    source: Source
    scope: str
    first_id: int
    capacity: int
    used: int
    living: int
    terms: int
    revision: int
    posted: int
    first_place: int = 0

    @property
    def has_stale_postings(self) -> bool:
        """Whether there are postings of chunks that are no more."""
        return self.living < self.used


@value
class Overview:
    """Numbers of one state of a generation."""

    generation: int
    revision: int
    contents: int  # the stamp of the last change by which a chunk came or went
    fingerprint: IndexFingerprint | None
    dims: int
    has_graph: bool
    counts: IndexCounts
    chunk_count: int
    average_length: float
    segments: tuple[Segment, ...]
    neighbours: Mapping[tuple[Source, str], tuple[Sequence[int], Sequence[Segment]]]  # first ids and segments


_NOTHING = Overview(
    generation=0,
    revision=0,
    contents=0,
    fingerprint=None,
    dims=0,
    has_graph=False,
    counts=IndexCounts(files={}, chunks={}),
    chunk_count=0,
    average_length=0.0,
    segments=(),
    neighbours={},
)


class PostgresCache(Cache):
    """What a process has read of one generation, and how its statements are written."""

    def __init__(self, generation: int) -> None:
        super().__init__(_MOST_BYTES)
        self.tables = Tables(generation)
        self._overview: Overview | None = None

    def overview(self, db: Connection, now: Published | None) -> Overview:
        """What the index holds, in numbers, as this view sees it."""
        if now is None:
            return _NOTHING
        now.refuse_strangers()
        known = self._overview
        if known is None or known.contents != now.contents:
            self._overview = known = _read_overview(db, self.tables, now)
        elif known.revision != now.revision or known.has_graph != now.graph:
            self._overview = known = replace(known, revision=now.revision, has_graph=now.graph)
        return known


class PostgresView:
    """Reads inside one transaction, which the store has begun and will end."""

    def __init__(self, db: Connection, cache: PostgresCache, now: Published | None) -> None:
        self.cache = cache
        self.overview = cache.overview(db, now)
        self._db = db
        self._tables = cache.tables
        self._places: dict[int, tuple[Segment, int]] = {}  # of chunks: the segment, and the position in it
        self._owners: dict[
            int, tuple[Source, str]
        ] = {}  # of chunks that were found by a vector: source and scope
        self._begun: tuple[Expected, _VectorQuery] | None = None

    def close(self) -> None:
        """End what was begun ahead."""
        if self._begun is not None:
            (_, query), self._begun = self._begun, None
            query.close()

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""
        found: dict[tuple[Source, str], FileState] = {}
        if self.overview.fingerprint is None:
            return found
        for stored, source, hash_, size, mtime_ns, inode, scope in self._db.execute(self._tables(_FILES)):
            path = from_stored(stored)
            found[source, path] = FileState(
                path, source, hash_, size, mtime_ns, unsigned_64(inode), from_stored(scope)
            )
        return MappingProxyType(found)

    def admitted(self, where: SearchFilter) -> list[Part]:
        """The segments that a filter lets through, which it does as a whole: they are of one source and scope."""
        return [(each, None) for each in self.overview.segments if where.admits(each.source, each.scope)]

    def postings(self, wanted: Sequence[tuple[Segment, str]]) -> list[Postings | None]:
        """The postings of terms in segments, in one round trip."""
        keys = {term: term_key(term) for _, term in wanted}
        numbers = {segment.number for segment, _ in wanted}
        rows = self._db.execute(self._tables(_POSTINGS), (list(numbers), list(keys.values())), binary=True)
        found = {(number, key): Postings(positions, counts) for number, key, positions, counts in rows}
        return [found.get((segment.number, keys[term])) for segment, term in wanted]

    def lengths(self, parts: Sequence[Part]) -> list[memoryview]:
        """The lengths of segments, in one round trip."""
        found = self._read_positions([segment for segment, _ in parts])
        return [found[segment.number][1] for segment, _ in parts]

    def ids_at(self, places: Sequence[int]) -> list[int]:
        """The ids of the chunks at some places."""
        by_place = [divmod(place, MOST) for place in places]
        segments = self.overview.segments
        ids_of = self._ids({at: segments[at] for at, _ in by_place}.values())
        found = []
        for at, position in by_place:
            segment = segments[at]
            id_ = ids_of[segment.number][position]
            self._places[id_] = segment, position
            found.append(id_)
        return found

    def locate(self, ids: Sequence[int]) -> Iterable[tuple[Segment, list[int], list[int]]]:
        """Where chunks are that this view has given out."""
        self._find_places([id_ for id_ in ids if id_ not in self._places])
        found: dict[int, tuple[Segment, list[int], list[int]]] = {}
        for id_ in ids:
            segment, position = self._places[id_]
            _, own, positions = found.setdefault(segment.number, (segment, [], []))
            own.append(id_)
            positions.append(position)
        return found.values()

    def expect(self, query: bytes, parts: Sequence[Part], where: SearchFilter, limit: int) -> None:
        """Let the server begin with a query that will be asked for, while words are weighed here.

        Only for those who may see everything: what others ask between would be limited to their scopes too.
        """
        self.close()
        if where.scopes == EVERY_SCOPE:
            self._begun = (query, where, limit), self._begin_query(query, parts, where, limit)

    def near(
        self,
        query: bytes,
        parts: Sequence[Part],
        where: SearchFilter,
        limit: int,
        *,
        besides: Sequence[int],
        compare: Callable[[Sequence[int]], Mapping[int, float]],
    ) -> Mapping[int, float]:
        """What the server finds near, compared again here."""
        begun, self._begun = self._begun, None
        if begun is not None and begun[0] != (query, where, limit):
            begun[1].close()
            begun = None
        running = begun[1] if begun is not None else self._begin_query(query, parts, where, limit)
        rows = running.answer(lambda: self.cache.vectors(self, besides))
        self.cache.keep_vectors({id_: vector for id_, vector, _, _ in rows})
        self._owners.update({id_: (source, from_stored(scope)) for id_, _, source, scope in rows})
        return compare([id_ for id_, *_ in rows])

    def cosines(self, query: bytes, ids: Sequence[int]) -> Mapping[int, float]:  # noqa: ARG002
        """None: vectors are read one by one."""
        return {}

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Packed vectors by id."""
        return dict(self._db.execute(self._tables(_VECTORS), (list(ids),), binary=True).fetchall())

    def chunks(self, ids: Sequence[int], scopes: frozenset[str]) -> dict[int, tuple[Chunk, int]]:
        """Chunks by id, which must be of these scopes: the server makes sure of that."""
        with only_scopes(self._db, scopes):
            rows = self._db.execute(self._tables(_CHUNKS), (list(ids),), binary=True)
        found = {}
        for id_, *fields in rows:
            chunk = _chunk_of_row(*fields)
            found[id_] = chunk, _CHUNK_OVERHEAD + 2 * len(chunk.text)
        if len(found) < len(ids):
            raise IndexCorrupt(
                "the index contradicts itself: a segment shows what its files do not",
                hint="run `plainmind sync --force`: it is rebuilt from your notes",
            )
        return found

    def confirm(self, ids: Sequence[int], where: SearchFilter) -> None:
        """Do nothing: the server makes sure of it when the chunks are read."""

    def ids_of(self, names: Sequence[tuple[Source, str]]) -> list[int]:
        """The ids of all chunks of some files."""
        asked = [file_name(*name) for name in names]
        rows = self._db.execute(self._tables(_IDS_OF), (asked,)).fetchall()
        self._owners.update({id_: (source, from_stored(scope)) for id_, source, scope in rows})
        return [id_ for id_, _, _ in rows]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""
        if self.overview.fingerprint is None:
            return []
        asked = {"name": file_name(source, path), "first": first_line, "last": last_line}
        return [_chunk_of_row(*row) for row in self._db.execute(self._tables(_CHUNKS_BETWEEN), asked)]

    def vectors_of(self, source: Source, path: str) -> list[bytes | None]:
        """The packed vectors of the chunks of one file, in their order."""
        if self.overview.fingerprint is None:
            return []
        rows = self._db.execute(self._tables(_VECTORS_OF), (file_name(source, path),), binary=True)
        return [vector for (vector,) in rows]

    def _read_positions(self, segments: Sequence[Segment]) -> dict[int, tuple[array[int], memoryview]]:
        """The ids and lengths of segments, by number; the ids are kept."""
        numbers = [each.number for each in segments]
        rows = self._db.execute(self._tables(_POSITIONS), (numbers,), binary=True)
        found = {number: (array("q", ids), memoryview(lengths).cast("H")) for number, ids, lengths in rows}
        for each in segments:
            ids, lengths = found.get(each.number, ((), ()))
            if len(ids) != each.used or len(lengths) != each.used:
                raise IndexCorrupt("a segment of the index is damaged", hint="run `plainmind sync --force`")
            self.cache.kept.put(_ids_key(each), ids, OVERHEAD + 8 * each.used)
        return found

    def _ids(self, segments: Iterable[Segment]) -> dict[int, array[int]]:
        """The ids of segments, by the number of the segment."""
        asked = {_ids_key(each): each for each in segments}
        known, missing = self.cache.kept.get_all(asked)
        found = {asked[key].number: ids for key, ids in known.items()}
        if missing:
            read = self._read_positions([asked[key] for key in missing])
            found |= {number: ids for number, (ids, _) in read.items()}
        return found

    def _find_places(self, ids: Sequence[int]) -> None:
        """Find the segments and positions of chunks that a vector has found."""
        segments: dict[int, Segment] = {}
        for id_ in ids:
            firsts, own = self.overview.neighbours.get(self._owners[id_], ((), ()))
            at = bisect_right(firsts, id_)
            if not at:
                raise _no_segment()
            segments[id_] = own[at - 1]
        ids_of = self._ids({each.number: each for each in segments.values()}.values())
        for id_, segment in segments.items():
            position = position_of(ids_of[segment.number], id_)
            if position is None:
                raise _no_segment()
            self._places[id_] = segment, position

    def _begin_query(
        self, query: bytes, parts: Sequence[Part], where: SearchFilter, limit: int
    ) -> _VectorQuery:
        """Let the server look for what is near: by its graph, or among all that a filter admits."""
        now = self.overview
        is_all = len(parts) == len(now.segments)
        asked: dict[str, Any] = {
            "query": HalfVector(query),
            "sources": list(where.sources),
            "all": where.scopes == EVERY_SCOPE,
            "scopes": [to_stored(scope) for scope in where.scopes],
        }
        effort = None
        if not now.has_graph:
            statement: LiteralString = _NEAR_ADMITTED
        else:
            effort = _effort_for(now.chunk_count) if is_all else _MOST_EFFORT
            if sum(segment.used for segment, _ in parts) <= (GRAPH_FROM if is_all else COMPARED):
                statement = _NEAR_AMONG_IDS
                asked["ids"] = Ids(self._all_ids(parts))
            else:
                statement = _NEAR_BY_GRAPH if is_all else _NEAR_ADMITTED_BY_GRAPH
        return _VectorQuery(
            self._db, self._tables(statement, limit=limit + _MARGIN), asked, where.scopes, effort
        )

    def _all_ids(self, parts: Sequence[Part]) -> array[int]:
        found = array("q")
        for ids in self._ids([segment for segment, _ in parts]).values():
            found += ids
        return found


class _VectorQuery:
    """One look among the vectors: the server begins at once, and its answer is fetched later."""

    def __init__(
        self,
        db: Connection,
        statement: LiteralString,
        asked: Mapping[str, Any],
        scopes: frozenset[str],
        effort: str | None,
    ) -> None:
        with ExitStack() as stack:
            stack.enter_context(db.pipeline())  # in which a statement is sent at once, and not waited for
            stack.enter_context(only_scopes(db, scopes))
            if effort is not None:
                db.execute(_SET_EFFORT, (effort,))
            self._rows = db.execute(statement, asked, binary=True)
            self._open = stack.pop_all()

    def answer(self, ask_also: Callable[[], object]) -> list[tuple[int, bytes, Source, str]]:
        """The id, vector, source and scope of chunks; what is asked also comes in the same round trip."""
        with self._open:
            ask_also()
            return self._rows.fetchall()

    def close(self) -> None:
        """Wait for an answer that is not wanted any more."""
        self._open.close()


def position_of(ids: Sequence[int], id_: int) -> int | None:
    """Where an id stands among ascending ones."""
    at = bisect_left(ids, id_)
    return at if at < len(ids) and ids[at] == id_ else None


def segment_of_row(row: Sequence[Any]) -> Segment:
    """A segment as a row tells it."""
    number, source, scope, *numbers = row
    return Segment(number, source, from_stored(scope), *numbers)


def _read_overview(db: Connection, tables: Tables, now: Published) -> Overview:
    with db.pipeline():
        rows = db.execute(tables(ALL_SEGMENTS))
        counted = db.execute(tables(_COUNT_FILES))
    segments = tuple(
        replace(segment_of_row(row), first_place=at * MOST) for at, row in enumerate(rows.fetchall())
    )
    by_source = counted.fetchall()
    files: dict[Source, int] = {source: count for source, count, _ in by_source}
    chunks: Counter[Source] = Counter(dict.fromkeys(files, 0))
    neighbours: dict[tuple[Source, str], tuple[list[int], list[Segment]]] = {}
    for each in segments:
        chunks[each.source] += each.living
        firsts, own = neighbours.setdefault((each.source, each.scope), ([], []))
        firsts.append(each.first_id)
        own.append(each)
    # A page that was zeroed has no checksum: its rows are gone, and nothing else tells.
    if chunks != Counter({source: of_files for source, _, of_files in by_source}):
        raise IndexCorrupt(
            "the index contradicts itself: its segments have other chunks than its files",
            hint="run `plainmind sync --force`: it is rebuilt from your notes",
        )
    chunk_count = sum(chunks.values())
    return Overview(
        generation=now.generation,
        revision=now.revision,
        contents=now.contents,
        fingerprint=now.fingerprint,
        dims=now.dims,
        has_graph=now.graph,
        counts=IndexCounts(files=files, chunks=chunks),
        chunk_count=chunk_count,
        average_length=sum(each.terms for each in segments) / (chunk_count or 1),
        segments=segments,
        neighbours=neighbours,
    )


def _effort_for(vectors: int) -> str:
    """How hard to look among so many."""
    return next((effort for most, effort in _EFFORTS if vectors <= most), _MOST_EFFORT)


def _ids_key(segment: Segment) -> tuple[Any, ...]:
    return "ids", segment.number, segment.revision


def _no_segment() -> IndexCorrupt:
    return IndexCorrupt("a chunk of the index belongs to no segment", hint="run `plainmind sync --force`")


def _chunk_of_row(  # noqa: PLR0917 (the columns of a row, in their order)
    path: str,
    source: Source,
    ordinal: int,
    start_line: int,
    end_line: int,
    text: str,
    context: str,
    day: str | None,
) -> Chunk:
    return Chunk(
        from_stored(path), source, ordinal, start_line, end_line, from_stored(text), from_stored(context), day
    )


# --- all that a generation holds: row by row for its digest, and added up for `status` and for a closer look ---


_ALL_FILES = "SELECT id, path, source, hash, scope, chunks, tallest FROM {files}"
_ALL_CHUNKS = """SELECT c.file, c.id, c.scope, c.ordinal, c.start_line, c.end_line, c.length, c.text, c.context, c.day,
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
        from plainmind.guests.postgres.change import Segments  # which reads through a view

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
        for id_, path, source, hash_, scope, chunks, tallest in self._db.execute(self._tables(_ALL_FILES)):
            files[id_] = _File(id_, from_stored(path), source, hash_, from_stored(scope), chunks, tallest)
        with self._db.cursor(name="digest", binary=True) as cursor:
            cursor.itersize = _AT_ONCE
            for id_, rows in groupby(cursor.execute(self._tables(_ALL_CHUNKS)), key=itemgetter(0)):
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
