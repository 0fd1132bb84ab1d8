"""What is kept in memory of one version of a table: its numbers, and its vectors with a byte for each number.

LanceDB takes milliseconds to be asked at all, and an index of its own looks into a part of the rows. All vectors of
100,000 chunks are compared here in two. The vectors themselves are kept too while there is room for both.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from plainmind.base.model import FileState, IndexFingerprint, SearchFilter, Source
from plainmind.guests.lancedb.library import faults
from plainmind.guests.lancedb.place import Pointer
from plainmind.guests.lancedb.rows import (
    BUCKET,
    CHUNK,
    FILE,
    NUMBERS,
    SEGMENT,
    Audience,
    FileRow,
    among,
    state_of,
)
from plainmind.index.reader import IndexCounts
from plainmind.index.vectors import BYTES_PER_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Vectors: TypeAlias = tuple[Any, Any]


_MOST_TAKEN = 256  # rows that are sooner taken one by one than looked for


class Segment:
    """A run of chunks whose postings are together. They never change: chunks are only taken out of it."""

    __slots__ = ("buckets", "first_place", "ids", "indexes", "lengths", "number", "revision", "used")

    posted = 0

    def __init__(self, number: int, ids: Any, buckets: Sequence[int], first_place: int) -> None:
        self.number = number
        self.ids = ids  # ascending; also of chunks that are no more
        self.buckets = buckets  # the row of each
        self.first_place = first_place
        self.used = len(ids)
        self.indexes: Any = None  # of its chunks among all living ones; -1: no more
        self.lengths: Any = None  # uint16; 0: no more
        self.revision = 0  # how many of its chunks live

    @property
    def has_stale_postings(self) -> bool:
        """Whether there are postings of chunks that are no more."""
        return self.revision < self.used


class Numbers:
    """Arrays over the living chunks, by ascending id; the files; the segments."""

    def __init__(self, columns: Mapping[str, Any], bodies: Mapping[int, Any]) -> None:
        """`columns` of all rows; `bodies` by row: the files (FileRow), and the ids of the segments."""
        import numpy as np

        self.bodies = bodies
        kinds = columns["kind"]
        chunks = np.flatnonzero(kinds == CHUNK)
        chunks = chunks[np.argsort(columns["id"][chunks], kind="stable")]
        self.ids = columns["id"][chunks]
        self.owners = columns["owner"][chunks]
        self.ordinals = columns["ordinal"][chunks]
        self.firsts = columns["first"][chunks]
        self.lasts = columns["last"][chunks]
        self.lengths = columns["length"][chunks].astype(np.uint16)
        self.audiences = columns["audience"][chunks]
        self.rows = columns["_rowid"][chunks]
        self.by_owner: dict[int, FileRow] = {}
        self._owners_by_name: dict[tuple[Source, str], int] = {}
        self._audience_names: dict[int, Audience] = {}
        files: dict[tuple[Source, str], FileState] = {}
        for row in columns["_rowid"][kinds == FILE].tolist():
            file: FileRow = bodies[row]
            state = file.state
            name = (state.source, state.path)
            self.by_owner[file.owner], files[name], self._owners_by_name[name] = file, state, file.owner
            self._audience_names[file.audience] = (state.source, state.scope)
        self.files: Mapping[tuple[Source, str], FileState] = MappingProxyType(files)
        self.chunk_count = len(self.ids)
        self.average_length = int(self.lengths.sum(dtype=np.int64)) / (self.chunk_count or 1)
        self.segments = self._segments(columns, bodies, kinds)

    @property
    def counts(self) -> IndexCounts:
        """Files and chunks by source."""
        files = Counter(source for source, _ in self.files)
        chunks: Counter[Source] = Counter(dict.fromkeys(files, 0))
        for each in self.by_owner.values():
            chunks[each.state.source] += each.chunks
        return IndexCounts(files=files, chunks=chunks)

    def of_file(self, source: Source, path: str) -> Any:
        """Which of the chunks a file has: a flag for each."""
        return self.owners == self._owners_by_name.get((source, path), 0)

    def of_files(self, names: Iterable[tuple[Source, str]]) -> Any:
        """Which of the chunks some files have: a flag for each."""
        import numpy as np

        return np.isin(self.owners, [self._owners_by_name[name] for name in names])

    def admitted(self, where: SearchFilter) -> frozenset[int] | None:
        """The audiences that a filter lets through; None when it lets through all there are."""
        found = frozenset(
            number for number, audience in self._audience_names.items() if where.admits(*audience)
        )
        return None if len(found) == len(self._audience_names) else found

    def admitted_indexes(self, audiences: frozenset[int] | None) -> Any:
        """Which of the chunks some audiences have."""
        import numpy as np

        if audiences is None:
            return np.arange(self.chunk_count)
        return np.flatnonzero(np.isin(self.audiences, sorted(audiences)))

    def lengths_for(self, segment: Segment, audiences: frozenset[int] | None) -> memoryview:
        """The lengths of a segment's chunks, 0 for those that some audiences do not have."""
        import numpy as np

        if audiences is None or not self.chunk_count:
            return memoryview(segment.lengths)
        seen = np.isin(self.audiences[segment.indexes], sorted(audiences))
        lengths: Any = np.where(seen, segment.lengths, np.uint16(0)).astype(np.uint16)
        return memoryview(lengths)

    def index_of(self, ids: Sequence[int]) -> Any:
        """Where chunks are among all."""
        import numpy as np

        return np.searchsorted(self.ids, np.asarray(ids, dtype=np.int64))

    def beside(self, ids: Sequence[int]) -> list[int]:
        """The chunks that come just before or after given ones, in the same file."""
        import numpy as np

        at = self.index_of(ids)
        last = self.chunk_count - 1
        found = [
            near[self.owners[near] == self.owners[at]]
            for near in (np.maximum(at - 1, 0), np.minimum(at + 1, last))
        ]
        near_ids: list[int] = self.ids[np.concatenate(found)].tolist()
        return sorted(set(near_ids) - set(ids))

    def _segments(self, columns: Mapping[str, Any], bodies: Mapping[int, Any], kinds: Any) -> list[Segment]:
        import numpy as np

        buckets: dict[int, dict[int, int]] = {}
        for at in np.flatnonzero(kinds == BUCKET).tolist():
            of_segment = buckets.setdefault(int(columns["owner"][at]), {})
            of_segment[int(columns["ordinal"][at])] = int(columns["_rowid"][at])
        found = []
        rows = np.flatnonzero(kinds == SEGMENT)
        first_place = 0
        for at in rows[np.argsort(columns["id"][rows], kind="stable")].tolist():
            number = int(columns["owner"][at])
            own = buckets.get(number, {})
            ids = bodies[int(columns["_rowid"][at])]
            segment = Segment(number, ids, [own[each] for each in sorted(own)], first_place)
            self._fill(segment)
            found.append(segment)
            first_place += len(ids)
        return found

    def _fill(self, segment: Segment) -> None:
        import numpy as np

        if not self.chunk_count:
            segment.indexes = np.full(len(segment.ids), -1)
            segment.lengths = np.zeros(len(segment.ids), dtype=np.uint16)
            return
        at = np.minimum(np.searchsorted(self.ids, segment.ids), self.chunk_count - 1)
        lives = self.ids[at] == segment.ids
        segment.indexes = np.where(lives, at, -1)
        segment.lengths = np.where(lives, self.lengths[at], np.uint16(0)).astype(np.uint16)
        segment.revision = int(np.count_nonzero(lives))


class Overview:
    """One state: what its pointer says at once, and the numbers of its table once they are asked for."""

    def __init__(self, pointer: Pointer, table: Any, known: Mapping[int, Any]) -> None:
        """`known` are bodies of the rows of the table that were read before."""
        self.pointer = pointer
        self._table = table
        self._known = known
        self._numbers: Numbers | None = None
        self._guard = threading.Lock()

    @property
    def numbers(self) -> Numbers:
        """What the table holds."""
        with self._guard:
            if self._numbers is None:
                with faults():
                    self._numbers = _nothing() if self._table is None else _read(self._table, self._known)
                self._known = {}
            return self._numbers

    @property
    def known_bodies(self) -> Mapping[int, Any]:
        """Bodies by row, as far as they were read for this state or one before it."""
        with self._guard:
            return self._known if self._numbers is None else self._numbers.bodies

    @property
    def generation(self) -> int:
        """Which rebuild this is."""
        return self.pointer.generation

    @property
    def revision(self) -> int:
        """Which state of it."""
        return self.pointer.revision

    @property
    def fingerprint(self) -> IndexFingerprint | None:
        """How it was made."""
        return self.pointer.fingerprint

    @property
    def dims(self) -> int:
        """How many numbers a vector has."""
        return self.pointer.dims

    @property
    def counts(self) -> IndexCounts:
        """Files and chunks by source."""
        return self.numbers.counts

    @property
    def chunk_count(self) -> int:
        """How many chunks there are in all."""
        return self.numbers.chunk_count

    @property
    def average_length(self) -> float:
        """How many terms a chunk has on average."""
        return self.numbers.average_length

    @property
    def segments(self) -> Sequence[Segment]:
        """Every segment, by the ids of its chunks."""
        return self.numbers.segments


def _read(table: Any, known: Mapping[int, Any]) -> Numbers:
    """Read the numbers of the version that a table is at."""
    import numpy as np

    answer = table.search().select([*NUMBERS]).with_row_id(with_row_id=True).to_arrow()
    columns = {name: answer[name].to_numpy() for name in (*NUMBERS, "_rowid")}
    named = np.flatnonzero(np.isin(columns["kind"], (FILE, SEGMENT)))
    at = dict(zip(columns["_rowid"][named].tolist(), named.tolist(), strict=True))
    bodies = {row: known[row] for row in at if row in known}
    for row, body in _read_bodies(table, [row for row in at if row not in known]):
        bodies[row] = _meaning(columns, at[row], body)
    return Numbers(columns, bodies)


def _read_bodies(table: Any, rows: Sequence[int]) -> Iterable[tuple[int, bytes]]:
    """The bodies of some rows, and perhaps of other files and segments."""
    if not rows:
        return ()
    if len(rows) > _MOST_TAKEN:
        asked = table.search().where(among("kind", (FILE, SEGMENT))).select(["body"])
        answer = asked.with_row_id(with_row_id=True).to_arrow()
    else:
        answer = table.take_row_ids(list(rows)).select(["body"]).with_row_id().to_arrow()
    return zip(answer["_rowid"].to_pylist(), answer["body"].to_pylist(), strict=True)


def _meaning(columns: Mapping[str, Any], at: int, body: bytes) -> Any:
    """What a row is about: a file, or the ids of a segment."""
    import numpy as np

    if columns["kind"][at] == SEGMENT:
        return np.frombuffer(body, dtype="<i8")
    owner, chunks, audience = (int(columns[name][at]) for name in ("owner", "ordinal", "audience"))
    return FileRow(owner, state_of(body), chunks, audience)


def _nothing() -> Numbers:
    import numpy as np

    nothing = np.zeros(0, dtype=np.int64)
    return Numbers(dict.fromkeys((*NUMBERS, "_rowid"), nothing), {})


# --- vectors ---


MOST_BYTES = 40_000_000  # 150,000 vectors of 256 numbers
_SCALE = 4  # bytes beside the numbers of a vector
_ONE_IN = 4  # so few of all are sooner put together than all compared


class VectorBlock:
    """A row for each chunk of one state, by ascending id."""

    def __init__(self, ids: Any, dims: int) -> None:
        import numpy as np

        self.ids = ids
        self.numbers = np.zeros((len(ids), dims), dtype=np.int8)
        self.scales = np.zeros(len(ids), dtype=np.float32)  # what a unit of `numbers` is worth; 0: no vector
        self.exact = (
            np.zeros((len(ids), dims), dtype=np.float16) if _has_room_for_both(len(ids), dims) else None
        )

    def put(self, indexes: Any, vectors: Any) -> None:
        """Take in vectors."""
        import numpy as np

        numbers = vectors.astype(np.float32)
        units = np.abs(numbers).max(axis=1, initial=0) / 127
        self.numbers[indexes] = np.rint(numbers / units[:, None])
        self.scales[indexes] = units
        if self.exact is not None:
            self.exact[indexes] = vectors

    def near(self, query: bytes, indexes: Any, wanted: int) -> Any:
        """Which of some chunks are the `wanted` nearest, as far as bytes can tell; those without a vector are none."""
        import numpy as np

        from plainmind.index.arithmetic_numpy import products

        if not len(indexes):
            return indexes
        numbers = np.frombuffer(query, dtype=np.float16).astype(np.float32)
        asked = np.rint(numbers / (np.abs(numbers).max() / 127)).astype(np.int8)
        if len(indexes) * _ONE_IN < len(self.ids):
            cosines = products(asked, self.numbers[indexes]) * self.scales[indexes]
        else:
            cosines = (products(asked, self.numbers) * self.scales)[indexes]
        there = self.scales[indexes] != 0
        cosines[~there] = -np.inf
        found = min(wanted, int(np.count_nonzero(there)))
        if found == len(indexes):
            return indexes
        return indexes[np.argpartition(-cosines, found)[:found]]

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes] | None:
        """Packed vectors by id, of those that have one; None where they are not kept as they are."""
        if self.exact is None:
            return None
        indexes = self.ids.searchsorted(ids).tolist() if len(ids) else []
        return {
            id_: self.exact[index].tobytes()
            for id_, index in zip(ids, indexes, strict=True)
            if self.scales[index]
        }


def fits(count: int, dims: int) -> bool:
    """Whether so many vectors are kept."""
    return count * (dims + _SCALE) <= MOST_BYTES


def read_block(
    ids: Any, dims: int, read: Callable[[Any], Iterable[Vectors]], before: VectorBlock | None
) -> VectorBlock:
    """Make the block of a state; `read` gives the vectors of those that the block before it did not have."""
    import numpy as np

    block = VectorBlock(ids, dims)
    missing = np.ones(len(ids), dtype=bool)
    if (
        before is not None
        and len(before.ids)
        and len(ids)
        and (before.exact is not None) >= (block.exact is not None)
    ):
        at = np.minimum(np.searchsorted(before.ids, ids), len(before.ids) - 1)
        kept = before.ids[at] == ids
        block.numbers[kept], block.scales[kept] = before.numbers[at[kept]], before.scales[at[kept]]
        if block.exact is not None and before.exact is not None:
            block.exact[kept] = before.exact[at[kept]]
        missing = ~kept
    for indexes, vectors in read(np.flatnonzero(missing)):
        block.put(indexes, vectors)
    return block


def _has_room_for_both(count: int, dims: int) -> bool:
    return count * (dims + _SCALE + BYTES_PER_NUMBER * dims) <= MOST_BYTES


# A table with fewer vectors is sooner compared as a whole than by an index, which also takes long to make.
INDEX_FROM = 100_000
# Of the partitions, one in so many is looked into: on clustered vectors .998 of the nearest 48 are found.
_PROBED_ONE_IN = 4
_LEAST_PROBES = 24


def partitions_for(chunk_count: int) -> int:
    """Into how many partitions so many vectors are divided."""
    return max(2, int(chunk_count**0.5 / 2))


def probes_for(chunk_count: int) -> int:
    """Into how many of them a search looks."""
    return max(_LEAST_PROBES, partitions_for(chunk_count) // _PROBED_ONE_IN)
