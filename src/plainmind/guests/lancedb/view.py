"""What one version of a table holds, in numbers: read once, kept for as long as that version answers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from plainmind.base.model import Chunk, FileState, SearchFilter, Source
from plainmind.guests.lancedb.library import faults, telling_faults
from plainmind.guests.lancedb.pointer import Pointer
from plainmind.guests.lancedb.rows import (
    BUCKET,
    CHUNK,
    FILE,
    NUMBERS,
    SEGMENT,
    Audience,
    Bucket,
    KnownFile,
    among,
    bucket_of,
    chunk_of,
    matrix_of,
    state_of,
    vectors_of,
)
from plainmind.guests.lancedb.vectors import VectorBlock, fits, read_block
from plainmind.index.bm25 import Postings
from plainmind.index.reader import IndexCounts, RecentlyUsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.lancedb.vectors import Vectors


_MOST_NAMED = 256  # rows that are sooner taken one by one than looked for
_MOST_MASKED = 256  # lengths as some audiences see them


class Segment:
    """A run of chunks whose postings are together."""

    __slots__ = ("buckets", "first_place", "ids", "indexes", "lengths", "number")

    def __init__(self, number: int, ids: Any, buckets: Sequence[int], first_place: int) -> None:
        self.number = number
        self.ids = ids  # ascending; also of chunks that are no more
        self.buckets = buckets  # the row of each
        self.first_place = first_place  # a count through all segments: arithmetic names chunks by it
        self.indexes: Any = None  # of its chunks among all living ones; -1: no more
        self.lengths: Any = None  # uint16; 0: no more


class Overview:
    """Arrays over the living chunks, by ascending id; the files; the segments."""

    def __init__(self, columns: Mapping[str, Any], bodies: Mapping[int, Any]) -> None:
        """`columns` of all rows; `bodies` by row: the files (KnownFile), and the ids of the segments."""
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
        self.by_owner: dict[int, KnownFile] = {}
        self._owners_by_name: dict[tuple[Source, str], int] = {}
        self._audience_names: dict[int, Audience] = {}
        files: dict[tuple[Source, str], FileState] = {}
        for row in columns["_rowid"][kinds == FILE].tolist():
            file: KnownFile = bodies[row]
            state = file.state
            name = (state.source, state.path)
            self.by_owner[file.owner], files[name], self._owners_by_name[name] = file, state, file.owner
            self._audience_names[file.audience] = (state.source, state.scope)
        self.files: Mapping[tuple[Source, str], FileState] = MappingProxyType(files)
        self.chunk_count = len(self.ids)
        self.average_length = int(self.lengths.sum(dtype=np.int64)) / (self.chunk_count or 1)
        self.segments = self._segments(columns, bodies, kinds)
        self._masked: dict[tuple[int, frozenset[int]], memoryview] = {}

    def counts(self) -> IndexCounts:
        """Files and chunks by source."""
        files = Counter(source for source, _ in self.files)
        chunks: Counter[Source] = Counter(dict.fromkeys(files, 0))
        for each in self.by_owner.values():
            chunks[each.state.source] += each.chunks
        return IndexCounts(files=files, chunks=chunks)

    def owner_of(self, source: Source, path: str) -> int:
        """The number of a file; 0 for one that is not there."""
        return self._owners_by_name.get((source, path), 0)

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
        key = (segment.number, audiences)
        found = self._masked.get(key)
        if found is None:
            seen = np.isin(self.audiences[segment.indexes], sorted(audiences))
            lengths: Any = np.where(seen, segment.lengths, np.uint16(0)).astype(np.uint16)
            if len(self._masked) > _MOST_MASKED:
                self._masked.clear()
            found = self._masked[key] = memoryview(lengths)
        return found

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


def read_overview(table: Any, known: Mapping[int, Any]) -> Overview:
    """Read the numbers of the version that a table is at. `known` are bodies of its rows that were read before."""
    import numpy as np

    columns = columns_of(table.search().select([*NUMBERS]).with_row_id(with_row_id=True).to_arrow())
    named = np.flatnonzero(np.isin(columns["kind"], (FILE, SEGMENT)))
    at = dict(zip(columns["_rowid"][named].tolist(), named.tolist(), strict=True))
    missing = [row for row in at if row not in known]
    found = {row: known[row] for row in at if row in known}
    if len(missing) > _MOST_NAMED:
        answer = (
            table.search()
            .where(among("kind", (FILE, SEGMENT)))
            .select(["body"])
            .with_row_id(with_row_id=True)
        )
    elif missing:
        answer = table.take_row_ids(missing).select(["body"]).with_row_id()
    if missing:
        read = answer.to_arrow()
        for row, body in zip(read["_rowid"].to_pylist(), read["body"].to_pylist(), strict=True):
            found[row] = _body(columns, at[row], body)
    return Overview(columns, found)


def columns_of(found: Any) -> Mapping[str, Any]:
    """The number columns of an answer, as arrays."""
    return {name: found[name].to_numpy() for name in (*NUMBERS, "_rowid")}


def _body(columns: Mapping[str, Any], at: int, body: bytes) -> Any:
    """What a row is about: a file, or the ids of a segment."""
    import numpy as np

    if columns["kind"][at] == SEGMENT:
        return np.frombuffer(body, dtype="<i8")
    owner, chunks, audience = (int(columns[name][at]) for name in ("owner", "ordinal", "audience"))
    return KnownFile(owner, state_of(body), chunks, audience)


CACHE_BYTES = 32_000_000
_MOST_TAKEN = 4_096  # vectors that are sooner taken one by one than all read
_READ_AT_A_TIME = 2_048  # more at once, and a process takes tens of megabytes more


class View:
    """Shared by all readers of one state; what it has read lives on in the next state's."""

    def __init__(self, pointer: Pointer, table: Any, cache: RecentlyUsed, before: View | None = None) -> None:
        """`before` is an earlier state of the same table."""
        self.pointer = pointer
        self.table = table  # None: nothing was ever built
        self.cache = (
            cache  # by generation: ids of chunks, and numbers of segments, are never used again in one
        )
        self._guard = threading.Lock()
        self._overview: Overview | None = None
        self._block: VectorBlock | None = None
        self._block_before = before.latest_block if before else None
        # A row keeps its number until fragments are put together.
        self._known = before.known_bodies if before and before.pointer.tidied == pointer.tidied else {}

    @property
    def known_bodies(self) -> Mapping[int, Any]:
        """Bodies by row, as far as they were read for this state or one before it."""
        with self._guard:
            return self._known if self._overview is None else self._overview.bodies

    @property
    def overview(self) -> Overview:
        """What it holds."""
        with self._guard:
            if self._overview is None:
                with faults():
                    self._overview = (
                        _nothing() if self.table is None else read_overview(self.table, self._known)
                    )
                self._known = {}
            return self._overview

    @property
    def latest_block(self) -> VectorBlock | None:
        """The vectors that are kept side by side, of this state or of one before it."""
        with self._guard:
            return self._block or self._block_before

    def block(self) -> VectorBlock | None:
        """All vectors side by side; None where they are too many."""
        overview, dims = self.overview, self.pointer.dims
        if not fits(overview.chunk_count, dims):
            return None
        with self._guard:
            if self._block is None:
                self._block = read_block(overview.ids, dims, self._vectors_at, self._block_before)
                self._block_before = None
            return self._block

    def chunks(self, ids: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by id."""
        return self._by_id("chunk", ids, "body", self._chunk)

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Packed vectors by id, of those that have one."""
        block = self._block
        kept = block.vectors(ids) if block is not None else None
        if kept is not None:
            return kept
        found = self._by_id("vector", ids, "vector", lambda _at, vector: vector)
        return {id_: vector for id_, vector in found.items() if vector is not None}

    def postings(self, terms: Iterable[str]) -> dict[tuple[int, str], Postings]:
        """Postings by segment and term, where a term stands in a segment at all."""
        asked = [
            (segment, term, bucket_of(term, len(segment.buckets)))
            for segment in self.overview.segments
            for term in terms
            if segment.buckets
        ]
        buckets = self._buckets({(segment.number, at): segment for segment, _, at in asked})
        found = {}
        for segment, term, at in asked:
            postings = buckets[segment.number, at].get(term)
            if postings is not None:
                found[segment.number, term] = postings
        return found

    def _buckets(self, wanted: Mapping[tuple[int, int], Segment]) -> Mapping[tuple[int, int], Bucket]:
        found, missing = self.cache.get_all([("bucket", *key) for key in wanted])
        if missing:
            rows = {wanted[key].buckets[key[1]]: key for _, *rest in missing if (key := (rest[0], rest[1]))}
            bodies = self.taken(list(rows), "body")
            new = {("bucket", *rows[row]): Bucket(body) for row, body in bodies.items()}
            self.cache.put_all({key: (bucket, bucket.size) for key, bucket in new.items()})
            found.update(new)
        return {(number, at): bucket for (_, number, at), bucket in found.items()}

    @telling_faults
    def taken(self, rows: Sequence[int], column: str) -> dict[int, Any]:
        """One column of some rows."""
        if not rows:
            return {}
        answer = self.table.take_row_ids(list(rows)).select([column]).with_row_id().to_arrow()
        values = vectors_of(answer[column]) if column == "vector" else answer[column].to_pylist()
        return dict(zip(answer["_rowid"].to_pylist(), values, strict=True))

    def _vectors_at(self, indexes: Any) -> Iterator[Vectors]:
        """The vectors of some chunks, and perhaps of others."""
        overview = self._overview
        assert overview is not None  # whoever asks for a block has read it
        with faults():
            if not len(indexes):
                return
            columns = ["id", "vector"]
            if len(indexes) <= _MOST_TAKEN:
                taken = self.table.take_row_ids(overview.rows[indexes].tolist())
                batches = taken.select(columns).to_arrow().to_batches()
            else:
                asked = self.table.search().where(f"kind = {CHUNK}").select(columns)
                batches = asked.to_batches(batch_size=_READ_AT_A_TIME)
            for batch in batches:
                vectors, are_there = matrix_of(batch["vector"])
                yield overview.index_of(batch["id"])[are_there], vectors[are_there]

    def _by_id(self, name: str, ids: Sequence[int], column: str, made: Any) -> dict[int, Any]:
        found, missing = self.cache.get_all([(name, id_) for id_ in ids])
        known = {id_: value for (_, id_), value in found.items()}
        if missing:
            wanted = [id_ for _, id_ in missing]
            overview = self.overview
            at_ids = overview.index_of(wanted).tolist()
            values = self.taken([int(overview.rows[at]) for at in at_ids], column)
            for id_, at in zip(wanted, at_ids, strict=True):
                known[id_] = made(at, values[int(overview.rows[at])])
            sizes = {(name, id_): (known[id_], _size(known[id_])) for id_ in wanted}
            self.cache.put_all(sizes)
        return known

    def _chunk(self, at: int, body: bytes) -> Chunk:
        overview = self.overview
        file = overview.by_owner[int(overview.owners[at])].state
        ordinal, first, last = (
            int(column[at]) for column in (overview.ordinals, overview.firsts, overview.lasts)
        )
        return chunk_of(file, ordinal, first, last, body)


def _size(kept: Chunk | bytes | None) -> int:
    if kept is None:
        return 100
    return 100 + len(kept) if isinstance(kept, bytes) else 500 + 2 * len(kept.text)


def _nothing() -> Overview:
    import numpy as np

    nothing = np.zeros(0, dtype=np.int64)
    return Overview(dict.fromkeys((*NUMBERS, "_rowid"), nothing), {})
