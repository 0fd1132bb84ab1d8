"""What one version of a table holds, in numbers: read once, kept for as long as that version answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from plainmind.base.model import FileState, SearchFilter, Source
from plainmind.guests.lancedb.rows import (
    BUCKET,
    CHUNK,
    FILE,
    NUMBERS,
    SEGMENT,
    Audience,
    KnownFile,
    among,
    state_of,
)
from plainmind.index.protocol import IndexCounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_TAKEN = 256  # rows that are sooner taken one by one than looked for
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
    if len(missing) > _MOST_TAKEN:
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
