"""An index in dicts: every call of a driver, as short as it can be, for tests and for reading first."""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType

from plainmind.base.errors import IndexUnavailable
from plainmind.base.model import Chunk, FileState, IndexFingerprint, SearchFilter, Source
from plainmind.base.value import field, replace, value
from plainmind.index.bm25 import Collected, Postings
from plainmind.index.driver import ChunkContents, KnownFile, PreparedChunk, SegmentContents
from plainmind.index.reader import Cache, IndexCounts, Reader
from plainmind.index.store import Store
from plainmind.index.vectors import round_vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeAlias

    Part: TypeAlias = "tuple[_Segment, None]"

_MOST = 65_536  # chunks of a segment: positions are uint16
_MOST_BYTES = 40_000_000


@value
class _Row:
    """A chunk and all that is known of it."""

    id: int
    chunk: Chunk
    counted: Mapping[str, int]  # how often each term stands in it
    length: int
    vector: bytes | None


@value
class _File:
    state: FileState
    rows: tuple[_Row, ...]


@value
class _Index:
    """Never changed, only replaced as a whole: a view of one sees nothing of later changes."""

    fingerprint: IndexFingerprint | None = None
    files: Mapping[tuple[Source, str], _File] = field(default_factory=dict)
    next_id: int = 1
    generation: int = 1
    revision: int = 0


@value
class _Segment:
    """The rows of one file; of a very long one, some of them."""

    number: int
    first_place: int
    file: FileState
    rows: Sequence[_Row]
    has_stale_postings: bool = False
    revision: int = 0
    posted: int = 0

    @property
    def used(self) -> int:
        """There are no holes."""
        return len(self.rows)


@value
class _Overview:
    generation: int
    revision: int
    fingerprint: IndexFingerprint | None
    dims: int
    counts: IndexCounts
    chunk_count: int
    average_length: float
    segments: Sequence[_Segment]


def _segments_of(index: _Index) -> list[_Segment]:
    found: list[_Segment] = []
    place = 0
    for file in index.files.values():
        for start in range(0, len(file.rows), _MOST):
            rows = file.rows[start : start + _MOST]
            found.append(_Segment(len(found), place, file.state, rows))
            place += len(rows)
    return found


class MemoryView:
    """One version of the index; what is read of it is kept as long as it is looked at."""

    def __init__(self, index: _Index) -> None:
        self.cache = Cache(_MOST_BYTES)
        self._index = index
        segments = _segments_of(index)
        files = Counter(source for source, _ in index.files)
        chunks = Counter(dict.fromkeys(files, 0))
        for (source, _), file in index.files.items():
            chunks[source] += len(file.rows)
        count = sum(chunks.values())
        lengths = sum(row.length for segment in segments for row in segment.rows)
        self.overview = _Overview(
            generation=index.generation,
            revision=index.revision,
            fingerprint=index.fingerprint,
            dims=index.fingerprint.embedder.dims if index.fingerprint else 0,
            counts=IndexCounts(files=files, chunks=chunks),
            chunk_count=count,
            average_length=lengths / (count or 1),
            segments=segments,
        )
        self._places = {
            row.id: (segment, position) for segment in segments for position, row in enumerate(segment.rows)
        }

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file."""
        return MappingProxyType({key: file.state for key, file in self._index.files.items()})

    def admitted(self, where: SearchFilter) -> list[Part]:
        """The segments of the files that a filter lets through."""
        segments = self.overview.segments
        return [(each, None) for each in segments if where.admits(each.file.source, each.file.scope)]

    def postings(self, wanted: Sequence[tuple[_Segment, str]]) -> list[Postings | None]:
        """The postings of terms in segments."""
        found: list[Postings | None] = []
        for segment, term in wanted:
            own = {at: row.counted[term] for at, row in enumerate(segment.rows) if term in row.counted}
            found.append(Postings(array("H", own).tobytes(), bytes(own.values())) if own else None)
        return found

    def lengths(self, parts: Sequence[Part]) -> list[memoryview]:
        """The lengths of the chunks of parts."""
        return [memoryview(array("H", [row.length for row in segment.rows])) for segment, _ in parts]

    def ids_at(self, places: Sequence[int]) -> list[int]:
        """The ids of the chunks at some places."""
        segments = self.overview.segments
        firsts = [each.first_place for each in segments]
        found = []
        for place in places:
            segment = segments[bisect_right(firsts, place) - 1]
            found.append(segment.rows[place - segment.first_place].id)
        return found

    def locate(self, ids: Sequence[int]) -> Iterator[tuple[_Segment, list[int], list[int]]]:
        """Where chunks are."""
        found: dict[int, tuple[_Segment, list[int], list[int]]] = {}
        for id_ in ids:
            segment, position = self._places[id_]
            _, own, positions = found.setdefault(segment.number, (segment, [], []))
            own.append(id_)
            positions.append(position)
        yield from found.values()

    def expect(self, query: bytes, parts: Sequence[Part], where: SearchFilter, limit: int) -> None:
        """Do nothing: there is nothing to begin with."""

    def near(
        self,
        query: bytes,  # noqa: ARG002
        parts: Sequence[Part],
        where: SearchFilter,  # noqa: ARG002
        limit: int,  # noqa: ARG002
        *,
        besides: Sequence[int],  # noqa: ARG002
        compare: Callable[[Sequence[int]], Mapping[int, float]],
    ) -> Mapping[int, float]:
        """The cosines of all."""
        return compare([row.id for segment, _ in parts for row in segment.rows if row.vector is not None])

    def cosines(self, query: bytes, ids: Sequence[int]) -> Mapping[int, float]:  # noqa: ARG002
        """None: they are not side by side."""
        return {}

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Packed vectors by id."""
        found = {id_: self._row(id_).vector for id_ in ids}
        return {id_: vector for id_, vector in found.items() if vector is not None}

    def chunks(self, ids: Sequence[int], scopes: frozenset[str]) -> dict[int, tuple[Chunk, int]]:  # noqa: ARG002
        """Chunks by id; they take no more memory than they do already."""
        return {id_: (self._row(id_).chunk, 0) for id_ in ids}

    def confirm(self, ids: Sequence[int], where: SearchFilter) -> None:
        """Do nothing: a segment has the scope of its file."""

    def ids_of(self, names: Sequence[tuple[Source, str]]) -> list[int]:
        """The ids of all chunks of some files."""
        return [row.id for name in names for row in self._rows(*name)]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range."""
        chunks = [row.chunk for row in self._rows(source, path)]
        return [each for each in chunks if each.start_line <= last_line and each.end_line >= first_line]

    def vectors_of(self, source: Source, path: str) -> list[bytes | None]:
        """The vectors of the chunks of one file."""
        return [row.vector for row in self._rows(source, path)]

    def _row(self, id_: int) -> _Row:
        segment, position = self._places[id_]
        return segment.rows[position]

    def _rows(self, source: Source, path: str) -> tuple[_Row, ...]:
        file = self._index.files.get((source, path))
        return file.rows if file else ()


class MemoryChange:
    """Changes to a version of the index, which becomes the newest at the end."""

    def __init__(self, index: _Index) -> None:
        self.index = index

    def fingerprint(self) -> IndexFingerprint | None:
        """How the index is made."""
        return self.index.fingerprint

    def known(self, source: Source, path: str) -> KnownFile | None:
        """What it holds of a file."""
        file = self.index.files.get((source, path))
        return None if file is None else KnownFile(0, file.state.hash, file.state.scope, len(file.rows))

    def put(
        self,
        file: FileState,
        known: KnownFile | None,
        portions: Iterable[Sequence[PreparedChunk]],
        *,
        keeping: int,
        dims: int,
    ) -> None:
        """Put chunks behind the first ones of a file."""
        key = (file.source, file.path)
        rows = list(self.index.files[key].rows[:keeping]) if known else []
        next_id = self.index.next_id
        for portion in portions:
            for each in portion:
                vector = None if each.vector is None else round_vector(each.vector, dims)
                rows.append(_Row(next_id, each.chunk, each.counted, each.length, vector))
                next_id += 1
        self._replace({**self.index.files, key: _File(file, tuple(rows))}, next_id)

    def touch(self, file: FileState) -> None:
        """Note what a file looks like now."""
        files, key = self.index.files, (file.source, file.path)
        known = files.get(key)
        if known and (known.state.hash, known.state.scope) == (file.hash, file.scope):
            files = {**files, key: _File(file, known.rows)}
        self._replace(files)

    def remove(self, source: Source, path: str) -> None:
        """Take out a file and its chunks."""
        if self.index.fingerprint is not None:
            self._replace({key: file for key, file in self.index.files.items() if key != (source, path)})

    def _replace(self, files: Mapping[tuple[Source, str], _File], next_id: int | None = None) -> None:
        next_id = next_id or self.index.next_id
        self.index = replace(self.index, files=files, next_id=next_id, revision=self.index.revision + 1)


class MemoryContents:
    """All that a version of the index holds."""

    def __init__(self, index: _Index) -> None:
        self._index = index

    def fingerprint(self) -> IndexFingerprint | None:
        """How it was made."""
        return self._index.fingerprint

    def segments(self) -> Iterator[SegmentContents]:
        """Every segment."""
        for segment in _segments_of(self._index):
            collected = Collected()
            for position, row in enumerate(segment.rows):
                collected.add(position, row.counted)
            postings = [(term, Postings(*own)) for term, own in collected.by_term().items()]
            lengths = array("H", [row.length for row in segment.rows]).tobytes()
            yield SegmentContents(lengths, segment.used, postings, has_stale_postings=False)

    def files(self) -> Iterator[tuple[FileState, Iterator[ChunkContents]]]:
        """Every file with its chunks."""
        segment = 0
        for file in self._index.files.values():
            yield file.state, self._chunks(file, segment)
            segment += -(-len(file.rows) // _MOST)

    def check(self) -> None:
        """Do nothing: nothing is kept twice."""

    def _chunks(self, file: _File, segment: int) -> Iterator[ChunkContents]:
        for at, row in enumerate(file.rows):
            yield ChunkContents(row.chunk, row.length, row.vector, segment + at // _MOST, at % _MOST)


class MemoryDriver:
    """Keeps the newest version of the index."""

    is_being_built = False

    def __init__(self, index: _Index) -> None:
        self._index = index
        self._one_at_a_time = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Look at the index as it is now."""
        yield Reader(MemoryView(self._index))

    @contextmanager
    def changing(self, operation: str) -> Iterator[MemoryChange]:  # noqa: ARG002
        """Make a new version, unless the block fails."""
        with self._one_at_a_time:
            change = MemoryChange(self._index)
            yield change
            self._index = change.index

    def joined(self) -> AbstractContextManager[None]:
        """Make each change at once: there is nothing to gain."""
        return nullcontext()

    def body_of(self, chunk: Chunk) -> None:
        """Nothing: chunks are kept as they are."""

    @contextmanager
    def build(self, fingerprint: IndexFingerprint, reason: str) -> Iterator[MemoryBuild]:  # noqa: ARG002
        """Fill a second index."""
        yield MemoryBuild(self, fingerprint)

    def erase(self, source: Source, paths: Sequence[str]) -> None:
        """Drop files; there are no bytes on a disk to scrub."""
        with self.changing("erase files") as change:
            for path in paths:
                change.remove(source, path)

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        return {"driver": "memory", "path": None}

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part."""
        rows = [row for file in self._index.files.values() for row in file.rows]
        return {
            "chunks": len(rows),
            "texts": sum(len(row.chunk.text.encode("utf-8", "surrogatepass")) for row in rows),
            "vectors": sum(len(row.vector or b"") for row in rows),
        }

    @contextmanager
    def contents(self) -> Iterator[MemoryContents]:
        """All that the index holds now."""
        yield MemoryContents(self._index)

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    @contextmanager
    def replacing(self, new: MemoryDriver) -> Iterator[None]:
        """Take over another index at the end of a block in which this one does not change."""
        with self._one_at_a_time:
            yield
            self._index = replace(new._index, generation=self._index.generation + 1)


class MemoryBuild(MemoryDriver):
    """An index that is being built."""

    is_being_built = True

    def __init__(self, old: MemoryDriver, fingerprint: IndexFingerprint) -> None:
        super().__init__(_Index(fingerprint))
        self._old = old

    def build(self, fingerprint: IndexFingerprint, reason: str) -> NoReturn:  # noqa: ARG002
        """Refuse: this is a rebuild already."""
        raise IndexUnavailable("an index that is being built cannot be rebuilt", hint="leave the block first")

    def finish(self) -> None:
        """Do nothing: it is ready as it is."""

    def publishing(self) -> AbstractContextManager[None]:
        """Let this index answer at the end of a block."""
        return self._old.replacing(self)


class MemoryStore(Store):
    """Keeps the index in this process; gone when it ends."""

    def __init__(self, fingerprint: IndexFingerprint | None = None) -> None:
        super().__init__(MemoryDriver(_Index(fingerprint)))


def open_memory_store(folder: str | None = None) -> MemoryStore:  # noqa: ARG001
    """Make an empty store; the folder, which other stores need, stays untouched."""
    return MemoryStore()
