"""One view of a generation: what its tables answer to the reader."""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import apsw

from plainmind.base.errors import IndexCorrupt
from plainmind.base.lazy import parse_json
from plainmind.base.model import (
    EVERY_SCOPE,
    Chunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    Source,
)
from plainmind.base.value import replace, value
from plainmind.index.bm25 import Postings
from plainmind.index.drivers.sqlite.files import one_row, rows
from plainmind.index.reader import OVERHEAD, Cache, IndexCounts
from plainmind.index.vectors import (
    BYTES_PER_NUMBER,
    EXACT_UP_TO,
    LEAST_LIMIT,
    Absences,
    SignPart,
    cosines_of,
    effort_for,
    lengthen,
    lengthen_all,
    query_signs,
    sign_arithmetic,
    signs_width,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from plainmind.index.drivers.sqlite.vector_copies import Compared, Int8Copies, VectorBlocks
    from plainmind.index.vectors import SignArithmetic

    Scopes: TypeAlias = frozenset[int]  # by their numbers
    Part: TypeAlias = "tuple[Segment, Scopes | None]"
    Compare: TypeAlias = Callable[[Sequence[int]], Mapping[int, float]]


_RAW = -15  # no header and no checksum: SQLite's own pages have none either
_LEVEL = 6
_LEAST_WINDOW = 9  # bits
_LITTLE_MEMORY = 7


def deflate_text(text: str) -> str | bytes:
    """What to store for a text."""
    plain = text.encode("utf-8", "surrogatepass")
    # A window that holds this text, and little around it: most texts are short, and most of the time went into clearing
    # what they do not need. What comes out is as small.
    window = min(-_RAW, max(_LEAST_WINDOW, len(plain).bit_length()))
    deflating = zlib.compressobj(_LEVEL, zlib.DEFLATED, -window, _LITTLE_MEMORY)
    small = deflating.compress(plain) + deflating.flush()
    # Lone surrogates have no place in a text of SQLite.
    return small if len(small) < len(plain) or not _is_storable(text) else text


def storable(text: str) -> str | bytes:
    """What to store for a text that is too short to be worth deflating."""
    return text if _is_storable(text) else deflate_text(text)


def inflate_text(stored: str | bytes) -> str:
    """The text that was stored."""
    if isinstance(stored, str):
        return stored
    try:
        return zlib.decompress(stored, _RAW).decode("utf-8", "surrogatepass")
    except (zlib.error, UnicodeDecodeError) as error:
        raise IndexCorrupt("a text of the index is damaged", hint="run `plainmind sync --force`") from error


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class StoredChunk(Chunk):
    """A chunk as the index gives it: its text is inflated when it is read.

    A search is given some ninety chunks and reads the best third of them; inflating is half the cost of fetching one.
    """

    __slots__ = ("_stored",)
    _stored: str | bytes

    def __init__(  # noqa: PLR0917 (the fields of a chunk, in their order)
        self,
        path: str,
        source: Source,
        ordinal: int,
        start_line: int,
        end_line: int,
        text: str | bytes,
        context: str = "",
        day: str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "path", path)
        put(self, "source", source)
        put(self, "ordinal", ordinal)
        put(self, "start_line", start_line)
        put(self, "end_line", end_line)
        put(self, "_stored", text)
        put(self, "context", context)
        put(self, "day", day)

    @property
    def text(self) -> str:
        """The text itself."""
        stored = self._stored
        if isinstance(stored, bytes):
            stored = inflate_text(stored)
            object.__setattr__(self, "_stored", stored)
        return stored

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chunk):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Chunk.__match_args__)

    __hash__ = Chunk.__hash__

    def __reduce__(self) -> tuple[type[Chunk], tuple[object, ...]]:
        return Chunk, tuple(getattr(self, name) for name in Chunk.__match_args__)


def _chunk_of(  # noqa: PLR0917 (the columns, in their order)
    path: str,
    source: Source,
    ordinal: int,
    start_line: int,
    end_line: int,
    text: str | bytes,
    context: str | bytes,
    day: str | None,
) -> tuple[Chunk, int]:
    """A chunk from its row, and about how many bytes it takes."""
    chunk = StoredChunk(path, source, ordinal, start_line, end_line, text, inflate_text(context), day)
    return chunk, _CHUNK_OVERHEAD + _INFLATED * len(text)


# What may be kept beside the signs, which every search looks through, and in all.
BESIDE_SIGNS = 40_000_000
BESIDE_INT8_COPIES = 14_000_000
MOST_BYTES = 104_000_000
# A byte a number moves a cosine by less than 0.002: so many times the wanted ones are compared exactly.
INT8_EFFORT = 2
# So many vectors are copied, all in their order, in the time in which one is read that was asked for.
COPIED_AT_ONCE = 4
MOST = 65_536  # chunks of a segment: positions are uint16
_CHUNK_OVERHEAD = 500
_BYTES_PER_ID = 40
# Where in a key the number of a segment stands, followed by the revision of its state.
_STATE_AT = {"postings": 2, "count": 2, "lengths": 1, "words": 1, "hidden": 1, "absent": 1, "signs": 1}
_HIDDEN_VECTOR = 9  # bytes: its flag, and its position among the absent ones
_INFLATED = 3  # times its stored size is a text that was read, and what it was read from, at most
_NOTHING = b""  # is hidden

# The blobs of segments: table and column.
LENGTHS = ("lengths", "lengths")
ABSENCES = ("absences", "absent")
AUDIENCES = ("audiences", "scopes")
SIGNS = ("signs", "signs")

SEGMENT_COLUMNS = "first_id, source, capacity, used, dead, stale, revision, posted"
_SEGMENTS = f"SELECT {SEGMENT_COLUMNS} FROM segments ORDER BY first_id"  # noqa: S608 (a constant)
_REVISION = "SELECT value, contents FROM revision"
_FINGERPRINT = "SELECT value FROM meta WHERE key = 'fingerprint'"
_TOTALS = "SELECT source, files, chunks, terms FROM totals WHERE files > 0"
_FILES = "SELECT path, source, hash, size, mtime_ns, inode, scope FROM files"
_SCOPES = "SELECT id, name FROM scopes"
_SCOPE = "SELECT id FROM scopes WHERE name = ?"
_SCOPES_OF = """SELECT DISTINCT f.source, s.name
                  FROM chunks c JOIN files f ON f.id = c.file_id LEFT JOIN scopes s ON s.id = f.scope
                 WHERE c.id IN (SELECT value FROM json_each(?))"""
_POSTINGS = "SELECT positions, counts FROM postings WHERE segment = ? AND term = ?"
_CHUNKS = """SELECT c.id, f.path, f.source, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
               FROM chunks c JOIN files f ON f.id = c.file_id
              WHERE c.id IN (SELECT value FROM json_each(?))"""
_CHUNKS_BETWEEN = """SELECT c.id, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
                       FROM files f JOIN chunks c ON c.file_id = f.id
                      WHERE f.source = :source AND f.path = :path
                        AND c.start_line BETWEEN :first - f.tallest AND :last AND c.end_line >= :first
                      ORDER BY c.ordinal"""
_IDS_OF = """SELECT c.id
               FROM json_each(?) named
                    CROSS JOIN files f ON f.source = named.value ->> 0 AND f.path = named.value ->> 1
                    CROSS JOIN chunks c ON c.file_id = f.id"""
_THERE = "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
_VECTORS = "SELECT id, vector FROM vectors WHERE id IN (SELECT value FROM json_each(?))"
_VECTORS_BETWEEN = "SELECT id, vector FROM vectors WHERE id >= ? AND id < ? ORDER BY id"
_VECTORS_OF = """SELECT v.vector
                   FROM files f JOIN chunks c ON c.file_id = f.id LEFT JOIN vectors v ON v.id = c.id
                  WHERE f.source = ? AND f.path = ? ORDER BY c.ordinal"""


@value
class Segment:
    """One row of `segments`: a run of ids, each the first id and a position."""

    first_id: int
    source: Source
    capacity: int
    used: int
    dead: int
    stale: int
    revision: int
    posted: int

    @property
    def number(self) -> int:
        """The first id is nothing else's."""
        return self.first_id

    @property
    def first_place(self) -> int:
        """Places are ids."""
        return self.first_id

    @property
    def has_stale_postings(self) -> bool:
        """Whether there are postings of chunks that are no more."""
        return self.stale > 0


@value
class Overview:
    """One revision of a generation."""

    generation: int
    revision: int
    contents: int  # the revision at which a chunk last came or went
    fingerprint: IndexFingerprint | None
    dims: int
    counts: IndexCounts
    chunk_count: int
    average_length: float
    segments: tuple[Segment, ...]  # by first id, those with a position in use
    first_ids: tuple[int, ...]

    def of(self, sources: Iterable[Source]) -> list[Segment]:
        """The segments of some sources, those that hold anything."""
        wanted = frozenset(sources)
        return [each for each in self.segments if each.source in wanted and each.used > each.dead]

    def by_segment(self, ids: Iterable[int]) -> Iterator[tuple[Segment, list[int]]]:
        """Ids, each once and ascending, grouped by their segments."""
        ordered = sorted(set(ids))
        start = 0
        while start < len(ordered):
            following = bisect_right(self.first_ids, ordered[start])
            end = len(ordered)
            if following < len(self.first_ids):
                end = bisect_left(ordered, self.first_ids[following], start)
            yield self.segments[following - 1], ordered[start:end]
            start = end


class SqliteCache(Cache):
    """What a process has read of one generation, the parts that only SQLite has among it."""

    def __init__(self, generation: int = 0) -> None:
        super().__init__(BESIDE_SIGNS)
        self._generation = generation
        self._overview: Overview | None = None
        self._copies: Int8Copies | None = None
        self._blocks: VectorBlocks | None = None
        self._most_bytes = BESIDE_SIGNS
        self._compared = 0  # how many vectors single questions have needed so far

    def overview(self, db: apsw.Connection) -> Overview:
        """What the index holds, in numbers, as the view of this connection sees it."""
        revision, contents = one_row(db, _REVISION)  # the first read fixes what the view sees
        known = self._overview
        if known is not None and known.contents == contents:
            found = known if known.revision == revision else replace(known, revision=revision)
        else:
            found = _read_overview(db, self._generation, revision, contents)
            signs = found.chunk_count * signs_width(found.dims)
            self.kept.most_bytes = self._most_bytes = min(MOST_BYTES, BESIDE_SIGNS + signs)
            # Of more than fit, hardly one is asked for again before it has to go, and others with it.
            vectors = found.chunk_count * (OVERHEAD + BYTES_PER_NUMBER * found.dims)
            self.keeps_vectors = vectors <= BESIDE_SIGNS
            if self._copies is not None:
                self._copies.keep(found.first_ids)
            if self.kept.has_doubled:
                self._let_go(db, found)
            if self._blocks is not None:
                self._blocks.keep(found.first_ids)
        self._overview = found
        return found

    def _let_go(self, db: apsw.Connection, now: Overview) -> None:
        """Drop what was read of chunks and of states of segments that are no more: it would stay until all is full."""
        keys: list[Any] = self.kept.keys()
        ids = {key if isinstance(key, int) else key[1] for key in keys if _is_of_chunk(key)}
        there = {id_ for (id_,) in db.execute(_THERE, (_listed([*ids]),))}
        states = {(each.first_id, at) for each in now.segments for at in (each.revision, each.posted)}

        def is_gone(key: Any) -> bool:
            if _is_of_chunk(key):
                return (key if isinstance(key, int) else key[1]) not in there
            if key[0] == "between":
                return bool(key[-1] != now.contents)
            at = _STATE_AT[key[0]]
            return key[at : at + 2] not in states

        self.kept.sweep([key for key in keys if is_gone(key)])

    def hidden(self, db: apsw.Connection, segment: Segment, scopes: Scopes) -> bytes | None:
        """Which positions of a segment are hidden from those who may see only these scopes; None: all."""
        key = ("hidden", segment.first_id, segment.revision, scopes)
        return self.once(key, lambda: hidden_positions(read_audience(db, segment), scopes), segment.used)

    def absences(self, db: apsw.Connection, segment: Segment, scopes: Scopes | None = None) -> Absences:
        """Which of a segment's chunks have no vector, or one that is hidden from who may see only some scopes."""
        key = ("absent", segment.first_id, segment.revision, scopes)

        def read() -> Absences:
            if scopes is None:
                return Absences(read_absences(db, segment))
            hidden = self.hidden(db, segment, scopes) or _NOTHING
            return Absences(absent_with(self.absences(db, segment).flags, hidden))

        return self.once(key, read, segment.used if scopes is None else _HIDDEN_VECTOR * segment.used)

    def signs(self, db: apsw.Connection, segment: Segment, dims: int, arithmetic: SignArithmetic) -> Any:
        """The signs of a segment's vectors, as this arithmetic compares them."""
        width = signs_width(dims)
        key = ("signs", segment.first_id, segment.posted)

        def read() -> Any:
            self.kept.sweep([(*key, "rows")])  # nobody asks for them again once they are needed otherwise
            return arithmetic.prepare_signs(read_signs(db, segment, dims=dims), width)

        return self.once((*key, arithmetic.SIGNS_STAND_IN), read, segment.used * width)

    def int8_copies(self, segments: Sequence[Segment], dims: int) -> Int8Copies | None:
        """Copies of all vectors of some segments, once that is the cheaper way to read them."""
        used = sum(each.used for each in segments)
        # A process that has had no need of numpy yet may be about to end.
        if "numpy" not in sys.modules or not 0 < used <= COPIED_AT_ONCE * self._compared:
            return None
        from plainmind.index.drivers.sqlite.vector_copies import Int8Copies

        if self._copies is None:
            self._copies = Int8Copies()
        if not self._copies.fit(segments, dims):
            return None
        # They take the room of vectors read one by one, and of the signs, once these are not read any more.
        room = max(BESIDE_INT8_COPIES, BESIDE_SIGNS - self._copies.bytes_with(segments, dims))
        signs = 0 if self.has_read_all(segments) else used * signs_width(dims)
        self.kept.most_bytes = room + signs
        return self._copies

    def has_read_all(self, segments: Sequence[Segment]) -> bool:
        """Whether as many vectors were read for single questions as there are in some segments."""
        return 0 < sum(each.used for each in segments) <= self._compared

    def vector_blocks(self, segments: Sequence[Segment], dims: int) -> VectorBlocks | None:
        """All vectors of some segments side by side, once as many were read one by one."""
        if not self.has_read_all(segments):
            return None
        if self._blocks is None:
            from plainmind.index.drivers.sqlite.vector_copies import VectorBlocks

            self._blocks = VectorBlocks()
        return self._blocks if self._blocks.fit(segments, dims) else None

    def take_room_for_blocks(self) -> None:
        """Let what is kept beside the blocks be so much less."""
        if self._blocks is not None:
            self.kept.most_bytes = max(BESIDE_INT8_COPIES, self._most_bytes - self._blocks.size)

    @property
    def has_copies(self) -> bool:
        """Whether any were made."""
        return self._copies is not None

    def exact_vectors(self, segment: Segment, ids: Sequence[int]) -> tuple[list[int], bytes]:
        """Those of some ids of a segment whose packed vectors are among the copies, and these vectors."""
        return ([], b"") if self._copies is None else self._copies.exact(segment, ids)

    def compared(self, count: int) -> None:
        """Note that a search has needed so many vectors."""
        self._compared += count


class SqliteView:
    """Reads inside one transaction, which the generation has begun and will end."""

    def __init__(self, db: apsw.Connection, cache: SqliteCache) -> None:
        self.db = db
        self.cache = cache
        self.overview = cache.overview(db)
        # The last vector that was compared with all others, and its cosines.
        self._compared: tuple[bytes, Compared] | None = None

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""
        scopes = read_scopes(self.db)
        return MappingProxyType(
            {
                (source, path): FileState(
                    path, source, hash_, size, mtime_ns, inode if inode >= 0 else inode + 2**64, scopes[scope]
                )  # which undoes `writer.signed_64`
                for path, source, hash_, size, mtime_ns, inode, scope in self.db.execute(_FILES)
            }
        )

    def admitted(self, where: SearchFilter) -> list[Part]:
        """The segments that a filter lets through, each with the scopes by which some of it is hidden."""
        segments = self.overview.of(where.sources)
        if where.scopes == EVERY_SCOPE:
            return [(segment, None) for segment in segments]
        asked = [self.db.execute(_SCOPE, (storable(scope),)).fetchone() for scope in where.scopes]
        scopes = frozenset(row[0] for row in asked if row is not None)  # some that no file has ever had
        hidden = [(segment, self.cache.hidden(self.db, segment, scopes)) for segment in segments]
        return [(segment, scopes if own else None) for segment, own in hidden if own is not None]

    def postings(self, wanted: Sequence[tuple[Segment, str]]) -> list[Postings | None]:
        """The postings of terms in segments."""
        found = [self.db.execute(_POSTINGS, (segment.first_id, term)).fetchone() for segment, term in wanted]
        return [None if row is None else Postings(*row) for row in found]

    def lengths(self, parts: Sequence[Part]) -> list[memoryview]:
        """The lengths of the chunks of parts."""
        found = []
        for segment, scopes in parts:
            if scopes is None:
                found.append(memoryview(read_lengths(self.db, segment)).cast("H"))
            else:
                (whole,) = self.cache.lengths(self, [(segment, None)])
                found.append(lengths_without(whole, self.cache.hidden(self.db, segment, scopes) or _NOTHING))
        return found

    def ids_at(self, places: Sequence[int]) -> Sequence[int]:
        """Places are ids."""
        return places

    def locate(self, ids: Sequence[int]) -> Iterator[tuple[Segment, list[int], list[int]]]:
        """Where chunks are."""
        for segment, own in self.overview.by_segment(ids):
            first = segment.first_id
            yield segment, own, [id_ - first for id_ in own]

    def expect(self, query: bytes, parts: Sequence[Part], where: SearchFilter, limit: int) -> None:
        """Do nothing: there is one processor for both."""

    def near(
        self,
        query: bytes,
        parts: Sequence[Part],
        where: SearchFilter,  # noqa: ARG002
        limit: int,
        *,
        besides: Sequence[int],
        compare: Compare,
    ) -> Mapping[int, float]:
        """The cosines of vectors that are near: of all, where there are few."""
        with_absences = [
            (segment, self.cache.absences(self.db, segment, scopes)) for segment, scopes in parts
        ]
        count = sum(len(absences.flags) - absences.count for _, absences in with_absences)
        blocks = self.cache.vector_blocks([segment for segment, _ in parts], self.overview.dims)
        if blocks is not None:
            compared = blocks.compare(self._read_packed, query, with_absences, limit)
            self._compared = query, compared
            self.cache.take_room_for_blocks()
            return compare([*compared.nearest, *compared.unread])
        if count <= EXACT_UP_TO:
            self.cache.compared(sum(segment.used for segment, _ in parts))
            return compare([id_ for segment, own in with_absences for id_ in own.present(segment.first_id)])
        copies = self.cache.int8_copies([segment for segment, _ in parts], self.overview.dims)
        if copies is not None:
            copies.copy(self._read_kept, [segment for segment, _ in parts], self.overview.dims)
        if copies is not None and self.cache.has_read_all([segment for segment, _ in parts]):
            ids = copies.nearest(self._read_kept, query, with_absences, INT8_EFFORT * limit)
            # The others will be asked for too: together they take as long as one of the two.
            cosines = compare(list(dict.fromkeys([*ids, *besides])))
            return {id_: cosines[id_] for id_ in ids if id_ in cosines}
        return self._nearest_by_signs(query, with_absences, count, limit, compare)

    def cosines(self, query: bytes, ids: Sequence[int]) -> Mapping[int, float]:
        """The cosines of those of some ids that were compared with all others, or whose vectors are copied."""
        compared = self._compared
        if compared is not None and compared[0] == query:
            found: dict[int, float] = {}
            for segment, own in self.overview.by_segment(ids):
                found |= compared[1].of(segment, own)
            return found
        if not self.cache.has_copies:
            return {}
        here: list[int] = []
        blocks = []
        for segment, own in self.overview.by_segment(ids):
            copied, vectors = self.cache.exact_vectors(segment, own)
            here += copied
            blocks.append(vectors)
        return dict(zip(here, cosines_of(query, b"".join(blocks)), strict=True)) if here else {}

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Packed vectors by id."""
        return lengthen_all(self.db.execute(_VECTORS, (_listed(ids),)), self.overview.dims)

    def chunks(self, ids: Sequence[int], scopes: frozenset[str]) -> dict[int, tuple[Chunk, int]]:  # noqa: ARG002
        """Chunks by id; `confirm` has made sure of their scopes."""
        return {row[0]: _chunk_of(*row[1:]) for row in self.db.execute(_CHUNKS, (_listed(ids),))}

    def confirm(self, ids: Sequence[int], where: SearchFilter) -> None:
        """Ask the files of candidates again: a damaged segment must not show what its files hide."""
        for source, name in self.db.execute(_SCOPES_OF, (_listed(ids),)):
            if name is None or not where.admits(source, inflate_text(name)):
                raise IndexCorrupt(
                    "the index contradicts itself: a segment shows what its files do not",
                    hint="run `plainmind sync`: it is rebuilt from your notes",
                )

    def ids_of(self, names: Sequence[tuple[Source, str]]) -> list[int]:
        """The ids of all chunks of some files."""
        from json import dumps

        return [id_ for (id_,) in self.db.execute(_IDS_OF, (dumps(names),))]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""
        known = ("between", source, path, first_line, last_line, self.overview.contents)
        ids: list[int] | None = self.cache.kept.get(known)
        if ids is None:
            asked = {"source": source, "path": path, "first": first_line, "last": last_line}
            read = {
                row[0]: _chunk_of(path, source, *row[1:]) for row in self.db.execute(_CHUNKS_BETWEEN, asked)
            }
            self.cache.kept.put(known, list(read), OVERHEAD + len(path) + _BYTES_PER_ID * len(read))
            return self.cache.take_chunks(read)
        found = self.cache.chunks(self, ids, EVERY_SCOPE)
        return [found[id_] for id_ in ids]

    def vectors_of(self, source: Source, path: str) -> list[bytes | None]:
        """The vectors of the chunks of one file, in their order."""
        dims, found = self.overview.dims, self.db.execute(_VECTORS_OF, (source, path))
        return [None if kept is None else lengthen(kept, dims) for (kept,) in found]

    def _read_kept(self, first_id: int, end: int) -> list[tuple[int, bytes]]:
        return rows(self.db, _VECTORS_BETWEEN, (first_id, end))

    def _read_packed(self, first_id: int, end: int) -> list[tuple[int, bytes]]:
        return list(lengthen_all(self._read_kept(first_id, end), self.overview.dims).items())

    def _nearest_by_signs(
        self,
        query: bytes,
        segments: Sequence[tuple[Segment, Absences]],
        count: int,
        limit: int,
        compare: Compare,
    ) -> Mapping[int, float]:
        effort = effort_for(count, limit)
        arithmetic, dims = sign_arithmetic(count), self.overview.dims
        parts = [
            SignPart(segment.first_id, self.cache.signs(self.db, segment, dims, arithmetic), absences)
            for segment, absences in segments
        ]
        ids = arithmetic.nearest_by_signs(query_signs(query), parts, effort.most, effort.pool)
        # Nearest by their signs first, until a whole batch is no better than what there is.
        wanted = max(limit, LEAST_LIMIT)
        found: dict[int, float] = {}
        for start in range(0, len(ids), effort.batch):
            floor = sorted(found.values())[-wanted] if len(found) >= wanted else -2.0
            cosines = compare(ids[start : start + effort.batch])
            found |= cosines
            if max(cosines.values(), default=-2.0) <= floor:
                break
        self.cache.compared(len(found))
        return found


def _is_of_chunk(key: Any) -> bool:
    """Whether what is kept under a key is a chunk, or the vector of one."""
    return isinstance(key, int) or key[0] == "chunk"


def _listed(ids: Sequence[int]) -> str:
    """Ids as SQLite's `json_each` reads them."""
    return f"[{','.join(map(str, ids))}]"


def _read_overview(db: apsw.Connection, generation: int, revision: int, contents: int) -> Overview:
    fingerprint = read_fingerprint(db)
    totals = rows(db, _TOTALS)
    chunk_count = sum(chunks for _, _, chunks, _ in totals)
    segments = tuple([each for each in all_segments(db) if each.used])
    return Overview(
        generation=generation,
        revision=revision,
        contents=contents,
        fingerprint=fingerprint,
        dims=fingerprint.embedder.dims if fingerprint else 0,
        counts=IndexCounts(
            files={source: files for source, files, _, _ in totals},
            chunks={source: chunks for source, _, chunks, _ in totals},
        ),
        chunk_count=chunk_count,
        average_length=sum(terms for *_, terms in totals) / (chunk_count or 1),
        segments=segments,
        first_ids=tuple([each.first_id for each in segments]),
    )


def read_fingerprint(db: apsw.Connection) -> IndexFingerprint | None:
    """How the index is made; None when it was never built."""
    row = db.execute(_FINGERPRINT).fetchone()
    return None if row is None else IndexFingerprint.from_facts(parse_json(row[0]))


class _Scopes(dict[int, str]):
    """Scopes by their numbers."""

    def __missing__(self, number: int) -> str:
        raise IndexCorrupt(
            "a file of the index has a scope that is not known", hint="run `plainmind sync --force`"
        )


def read_scopes(db: apsw.Connection) -> Mapping[int, str]:
    """Every scope by its number."""
    return _Scopes({number: inflate_text(name) for number, name in db.execute(_SCOPES)})


def all_segments(db: apsw.Connection) -> list[Segment]:
    """Every segment, by its first id."""
    return [Segment(*row) for row in rows(db, _SEGMENTS)]


def read_lengths(db: apsw.Connection, segment: Segment) -> bytes:
    """uint16 for each position that is used."""
    return _read(db, LENGTHS, segment, 2)


def read_absences(db: apsw.Connection, segment: Segment) -> bytes:
    """A byte for each position that is used: 255 where there is no vector."""
    return _read(db, ABSENCES, segment, 1)


def read_audience(db: apsw.Connection, segment: Segment) -> bytes:
    """uint32 for each position that is used: the scope of its file."""
    return _read(db, AUDIENCES, segment, 4)


def read_signs(db: apsw.Connection, segment: Segment, *, dims: int) -> bytes:
    """The signs of each position that is used."""
    return _read(db, SIGNS, segment, signs_width(dims))


def _read(db: apsw.Connection, where: tuple[str, str], segment: Segment, width: int) -> bytes:
    with db.blob_open("main", *where, segment.first_id, False) as blob:  # noqa: FBT003 (read-only)
        found: bytes = blob.read(segment.used * width)
    if len(found) != segment.used * width:
        raise IndexCorrupt("a segment of the index is cut off", hint="run `plainmind sync --force`")
    return found


def hidden_positions(audience: bytes, admitted: frozenset[int]) -> bytes | None:
    """A byte for each position, 255 for one that is hidden; nothing when none is, None when all are.

    `audience` has the number of a scope, uint32, for each position.
    """
    scopes = array("I", audience)
    present = set(scopes)
    if present <= admitted:
        return _NOTHING
    if present.isdisjoint(admitted):
        return None
    return bytes([0 if scope in admitted else 255 for scope in scopes])


def lengths_without(lengths: memoryview, hidden: bytes) -> memoryview:
    """Lengths, uint16 by position, with 0 for what is hidden."""
    doubled = bytearray(2 * len(hidden))
    doubled[0::2] = doubled[1::2] = hidden
    mask = int.from_bytes(doubled, "little")
    kept = int.from_bytes(lengths.tobytes(), "little") & ~mask
    return memoryview(kept.to_bytes(len(doubled), "little")).cast("H")


def absent_with(flags: bytes, hidden: bytes) -> bytes:
    """Flags of absences, a byte for each position, with what is hidden among them."""
    either = int.from_bytes(flags, "little") | int.from_bytes(hidden, "little")
    return either.to_bytes(len(flags), "little")
