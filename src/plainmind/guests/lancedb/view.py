"""One version of a table, open: what it holds in numbers, and what of it was read already."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence

from plainmind.base.model import Chunk
from plainmind.guests.lancedb.library import faults, telling_faults
from plainmind.guests.lancedb.overview import Overview, Segment, read_overview
from plainmind.guests.lancedb.pointer import Pointer
from plainmind.guests.lancedb.rows import CHUNK, NUMBERS, chunk_of, matrix_of, vectors_of
from plainmind.guests.lancedb.vector_block import VectorBlock, fits, read_block
from plainmind.guests.lancedb.words import Bucket, bucket_of
from plainmind.index.cache import RecentlyUsed
from plainmind.index.postings import Postings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.lancedb.vector_block import Vectors

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
