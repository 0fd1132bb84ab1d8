"""One version of a table, open: what it answers to the reader, and all that it holds, row by row."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from plainmind.base.model import Chunk, FileState, IndexFingerprint, SearchFilter, Source
from plainmind.guests.lancedb.library import faults, load, with_faults
from plainmind.guests.lancedb.overview import Overview, Segment, VectorBlock, fits, probes_for, read_block
from plainmind.guests.lancedb.place import Pointer
from plainmind.guests.lancedb.rows import (
    CHUNK,
    Bucket,
    FileRow,
    among,
    bucket_of,
    chunk_of,
    matrix_of,
    vectors_of,
)
from plainmind.index.bm25 import Postings
from plainmind.index.digest import contradiction
from plainmind.index.driver import ChunkContents, SegmentContents
from plainmind.index.reader import Cache
from plainmind.index.vectors import choose_dots, cosines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from plainmind.guests.lancedb.overview import Vectors

    Audiences: TypeAlias = frozenset[int]  # by their numbers
    Part: TypeAlias = tuple[Segment, Audiences | None]


CACHE_BYTES = 32_000_000
EXACT_UP_TO = 1_024  # so few are all compared here, also in a large index
_CHUNK_OVERHEAD = 500
# LanceDB compares in its own precision, and all others roughly: so many more are compared again here, exactly.
_MARGIN = 16
_ROUGHLY_KEPT = 12  # times the wanted number, compared again by LanceDB with the vectors themselves
_MOST_TAKEN = 4_096  # vectors that are sooner taken one by one than all read
_READ_AT_A_TIME = 2_048  # more at once, and a process takes tens of megabytes more


def new_cache(most_bytes: int = CACHE_BYTES) -> Cache:
    """What is read of one generation: ids of chunks, and numbers of segments, are never used again in one."""
    return Cache(most_bytes, keeps_postings=False)  # they are kept a bucket at a time


class LanceView:
    """Shared by all readers of one state; what it has read lives on in the next state's."""

    def __init__(self, pointer: Pointer, table: Any, cache: Cache, before: LanceView | None = None) -> None:
        """`before` is an earlier state of the same table."""
        self.pointer = pointer
        self.table = table  # None: nothing was ever built
        self.cache = cache
        # A row keeps its number until fragments are put together.
        known: Mapping[int, Any] = {}
        if before is not None and before.pointer.tidied == pointer.tidied:
            known = before.overview.known_bodies
        self.overview: Overview = Overview(pointer, table, known)
        self._guard = threading.Lock()
        self._block: VectorBlock | None = None
        self._block_before = before.latest_block if before else None

    @property
    def latest_block(self) -> VectorBlock | None:
        """The vectors that are kept side by side, of this state or of one before it."""
        with self._guard:
            return self._block or self._block_before

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""
        return self.overview.numbers.files

    def admitted(self, where: SearchFilter) -> list[Part]:
        """All segments, with the audiences that a filter lets through."""
        now = self.overview.numbers
        audiences = now.admitted(where)
        return [] if audiences == frozenset() else [(segment, audiences) for segment in now.segments]

    def postings(self, wanted: Sequence[tuple[Segment, str]]) -> list[Postings | None]:
        """The postings of terms in segments."""
        places = [
            (segment, term, bucket_of(term, len(segment.buckets)) if segment.buckets else -1)
            for segment, term in wanted
        ]
        buckets = self._buckets({(segment.number, at): segment for segment, _, at in places if at >= 0})
        return [buckets[segment.number, at].get(term) if at >= 0 else None for segment, term, at in places]

    def lengths(self, parts: Sequence[Part]) -> list[memoryview]:
        """The lengths of the chunks of parts."""
        now = self.overview.numbers
        return [now.lengths_for(segment, audiences) for segment, audiences in parts]

    def ids_at(self, places: Sequence[int]) -> list[int]:
        """The ids of the chunks at some places."""
        segments = self.overview.segments
        firsts = [each.first_place for each in segments]
        found = []
        for place in places:
            segment = segments[bisect_right(firsts, place) - 1]
            found.append(int(segment.ids[place - segment.first_place]))
        return found

    def locate(self, ids: Sequence[int]) -> Iterator[tuple[Segment, list[int], list[int]]]:
        """Where chunks are: the ids of segments do not overlap."""
        segments = self.overview.segments
        firsts = [int(each.ids[0]) for each in segments]
        found: dict[int, list[int]] = {}
        for id_ in ids:
            found.setdefault(bisect_right(firsts, id_) - 1, []).append(id_)
        for at, own in found.items():
            yield segments[at], own, segments[at].ids.searchsorted(own).tolist()

    def expect(self, query: bytes, parts: Sequence[Part], where: SearchFilter, limit: int) -> None:
        """Do nothing: all of it is computed here."""

    def near(
        self,
        query: bytes,
        parts: Sequence[Part],  # noqa: ARG002
        where: SearchFilter,
        limit: int,
        *,
        besides: Sequence[int],  # noqa: ARG002
        compare: Callable[[Sequence[int]], Mapping[int, float]],
    ) -> Mapping[int, float]:
        """What is near: among vectors that are kept side by side, or by LanceDB where they are too many."""
        now = self.overview.numbers
        audiences = now.admitted(where)
        admitted = now.admitted_indexes(audiences)
        block = self._all_vectors()
        if block is not None and len(admitted) > EXACT_UP_TO:
            admitted = block.near(query, admitted, 2 * limit + _MARGIN)
        if block is not None or len(admitted) <= EXACT_UP_TO:
            return compare(now.ids[admitted].tolist())
        return compare(self._nearest(query, audiences, min(limit + _MARGIN, len(admitted))))

    def cosines(self, query: bytes, ids: Sequence[int]) -> Mapping[int, float]:
        """The cosines of those of some ids whose vectors are kept as they are."""
        found = self._block.vectors(ids) if self._block is not None else None
        return dict(zip(found, cosines_of(query, b"".join(found.values())), strict=True)) if found else {}

    def vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Packed vectors by id, of those that have one."""
        found = self._take_by_id(ids, "vector")
        return {id_: vector for id_, (_, vector) in found.items() if vector is not None}

    def chunks(self, ids: Sequence[int], scopes: frozenset[str]) -> dict[int, tuple[Chunk, int]]:  # noqa: ARG002
        """Chunks by id; those beside them come along, for what is shown may reach into them."""
        _, unread = self.cache.kept.get_all([("chunk", id_) for id_ in self.overview.numbers.beside(ids)])
        return self.read_chunks([*ids, *(id_ for _, id_ in unread)])

    def confirm(self, ids: Sequence[int], where: SearchFilter) -> None:
        """Do nothing: each chunk has its audience in its own row."""

    def ids_of(self, names: Sequence[tuple[Source, str]]) -> list[int]:
        """The ids of all chunks of some files."""
        now = self.overview.numbers
        ids: list[int] = now.ids[now.of_files(names)].tolist()
        return ids

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""
        now = self.overview.numbers
        found = now.of_file(source, path) & (now.firsts <= last_line) & (now.lasts >= first_line)
        ids = now.ids[found].tolist()
        known, missing = self.cache.kept.get_all([("chunk", id_) for id_ in ids])
        fresh = self.read_chunks([id_ for _, id_ in missing])
        self.cache.kept.put_all({("chunk", id_): entry for id_, entry in fresh.items()})
        return sorted(
            [*known.values(), *(chunk for chunk, _ in fresh.values())], key=lambda each: each.ordinal
        )

    def vectors_of(self, source: Source, path: str) -> list[bytes | None]:
        """The packed vectors of the chunks of one file, in their order."""
        now = self.overview.numbers
        found = now.of_file(source, path)
        ordinals = dict(zip(now.ids[found].tolist(), now.ordinals[found].tolist(), strict=True))
        vectors = self.vectors(list(ordinals))
        return [vectors.get(id_) for id_ in sorted(ordinals, key=lambda id_: ordinals[id_])]

    @with_faults
    def take(self, rows: Sequence[int], column: str) -> dict[int, Any]:
        """One column of some rows."""
        if not rows:
            return {}
        answer = self.table.take_row_ids(list(rows)).select([column]).with_row_id().to_arrow()
        values = vectors_of(answer[column]) if column == "vector" else answer[column].to_pylist()
        return dict(zip(answer["_rowid"].to_pylist(), values, strict=True))

    def _buckets(self, wanted: Mapping[tuple[int, int], Segment]) -> Mapping[tuple[int, int], Bucket]:
        found, missing = self.cache.kept.get_all([("bucket", *key) for key in wanted])
        if missing:
            rows = {wanted[number, at].buckets[at]: (number, at) for _, number, at in missing}
            bodies = self.take(list(rows), "body")
            new = {("bucket", *rows[row]): Bucket(body) for row, body in bodies.items()}
            self.cache.kept.put_all({key: (bucket, bucket.size) for key, bucket in new.items()})
            found.update(new)
        return {(number, at): bucket for (_, number, at), bucket in found.items()}

    def _take_by_id(self, ids: Sequence[int], column: str) -> dict[int, tuple[int, Any]]:
        """One column of some chunks, by id, with where each is among all chunks."""
        now = self.overview.numbers
        at_ids = now.index_of(ids).tolist()
        rows = [int(now.rows[at]) for at in at_ids]
        values = self.take(rows, column)
        return {id_: (at, values[row]) for id_, at, row in zip(ids, at_ids, rows, strict=True)}

    def read_chunks(self, ids: Sequence[int]) -> dict[int, tuple[Chunk, int]]:
        """Chunks by id, each with about how many bytes it takes in memory."""
        now = self.overview.numbers
        found = {}
        for id_, (at, body) in self._take_by_id(ids, "body").items():
            file = now.by_owner[int(now.owners[at])].state
            ordinal, first, last = int(now.ordinals[at]), int(now.firsts[at]), int(now.lasts[at])
            chunk = chunk_of(file, ordinal, first, last, body)
            found[id_] = chunk, _CHUNK_OVERHEAD + 2 * len(chunk.text)
        return found

    def _all_vectors(self) -> VectorBlock | None:
        """All vectors side by side; None where they are too many."""
        now, dims = self.overview.numbers, self.pointer.dims
        if not fits(now.chunk_count, dims):
            return None
        with self._guard:
            if self._block is None:
                self._block = read_block(now.ids, dims, self._vectors_at, self._block_before)
                self._block_before = None
            return self._block

    def _vectors_at(self, indexes: Any) -> Iterator[Vectors]:
        """The vectors of some chunks, and perhaps of others."""
        now = self.overview.numbers
        if not len(indexes):
            return
        columns = ["id", "vector"]
        with faults():
            if len(indexes) <= _MOST_TAKEN:
                taken = self.table.take_row_ids(now.rows[indexes].tolist())
                batches: Iterable[Any] = taken.select(columns).to_arrow().to_batches()
            else:
                asked = self.table.search().where(f"kind = {CHUNK}").select(columns)
                batches = asked.to_batches(batch_size=_READ_AT_A_TIME)
            for batch in batches:
                vectors, are_there = matrix_of(batch["vector"])
                yield now.index_of(batch["id"])[are_there], vectors[are_there]

    def _nearest(self, query: bytes, audiences: Audiences | None, limit: int) -> list[int]:
        """What LanceDB finds nearest; the vectors are kept."""
        near = self._search(query, audiences, limit, exactly=False)
        if len(near) < limit:
            # An index looks into a part of the rows, where a narrow filter may leave too few.
            near = self._search(query, audiences, limit, exactly=True)
        self.cache.keep_vectors(near)
        return list(near)

    @with_faults
    def _search(
        self, query: bytes, audiences: Audiences | None, limit: int, *, exactly: bool
    ) -> dict[int, bytes]:
        import numpy as np

        numbers = np.frombuffer(query, dtype=np.float16).astype(np.float32)
        conditions = [f"kind = {CHUNK}"]
        if audiences is not None:
            conditions.append(among("audience", sorted(audiences)))
        asked = self.table.search(numbers, vector_column_name="vector").distance_type("dot")
        asked = asked.where(" AND ".join(conditions), prefilter=True).limit(limit)
        if exactly:
            asked = asked.bypass_vector_index()
        else:
            asked = asked.nprobes(probes_for(self.overview.chunk_count)).refine_factor(_ROUGHLY_KEPT)
        answer = asked.select(["id", "vector", "_distance"]).to_arrow()
        found = zip(answer["id"].to_pylist(), vectors_of(answer["vector"]), strict=True)
        return {id_: vector for id_, vector in found if vector is not None}


# --- all that a table holds ---


_AT_ONCE = 4_096  # chunks


class LanceContents:
    """One version of a table."""

    def __init__(self, view: LanceView) -> None:
        self._view = view
        self._now = view.overview.numbers
        self._firsts = [int(each.ids[0]) for each in self._now.segments]

    def fingerprint(self) -> IndexFingerprint | None:
        """How it was made."""
        return self._view.pointer.fingerprint

    def segments(self) -> Iterator[SegmentContents]:
        """Every segment."""
        for segment in self._now.segments:
            yield SegmentContents(
                lengths=segment.lengths.tobytes(),
                living=segment.revision,
                postings=self._postings(segment),
                has_stale_postings=segment.has_stale_postings,
            )

    def files(self) -> Iterator[tuple[FileState, Sequence[ChunkContents]]]:
        """Every file with its chunks."""
        now = self._now
        ids: dict[int, list[int]] = {owner: [] for owner in now.by_owner}
        for id_, owner in zip(now.ids.tolist(), now.owners.tolist(), strict=True):
            if owner not in ids:
                raise contradiction("a chunk has no file")
            ids[owner].append(id_)
        waiting: list[int] = []
        count = 0
        for owner, own in ids.items():
            waiting.append(owner)
            count += len(own)
            if count >= _AT_ONCE:
                yield from self._read_files({each: ids[each] for each in waiting})
                waiting, count = [], 0
        yield from self._read_files({each: ids[each] for each in waiting})

    def check(self) -> None:
        """Do nothing: nothing is kept twice but what was compared."""

    def _postings(self, segment: Segment) -> Iterator[tuple[str, Postings]]:
        for body in self._view.take(segment.buckets, "body").values():
            yield from Bucket(body).items()

    def _read_files(
        self, ids: Mapping[int, Sequence[int]]
    ) -> Iterator[tuple[FileState, Sequence[ChunkContents]]]:
        """Some files, by number, with the ids of their chunks."""
        every = [id_ for own in ids.values() for id_ in own]
        chunks, vectors = self._view.read_chunks(every), self._view.vectors(every)
        lengths = dict(zip(every, self._now.lengths[self._now.index_of(every)].tolist(), strict=True))
        for owner, own in ids.items():
            file: FileRow = self._now.by_owner[owner]
            found = [
                ChunkContents(chunks[id_][0], lengths[id_], vectors.get(id_), *self._locate(id_))
                for id_ in own
            ]
            found.sort(key=lambda each: each.chunk.ordinal)
            if [each.chunk.ordinal for each in found] != list(range(file.chunks)):
                raise contradiction("a file has not the chunks that it should have")
            yield file.state, found

    def _locate(self, id_: int) -> tuple[int, int]:
        at = bisect_right(self._firsts, id_) - 1
        if at >= 0:
            ids = self._now.segments[at].ids
            position = int(ids.searchsorted(id_))
            if position < len(ids) and ids[position] == id_:
                return at, position
        raise contradiction("words and chunks do not belong together")


def sizes_of(view: LanceView) -> Mapping[str, int]:
    """Counts and bytes by part."""
    now = view.overview.numbers
    ids = now.ids.tolist()
    texts = vectors = 0
    for start in range(0, len(ids), _AT_ONCE):
        own = ids[start : start + _AT_ONCE]
        texts += sum(
            len(chunk.text.encode("utf-8", "surrogatepass")) for chunk, _ in view.read_chunks(own).values()
        )
        vectors += sum(len(each) for each in view.vectors(own).values())
    buckets = [row for segment in now.segments for row in segment.buckets]
    return {
        "files": len(now.files),
        "chunks": now.chunk_count,
        "texts": texts,
        "vectors": vectors,
        "postings": sum(len(body) for body in view.take(buckets, "body").values()),
        "segments": len(now.segments),
        "positions": sum(segment.used for segment in now.segments),
        "holes": sum(segment.used - segment.revision for segment in now.segments),
        "table": int(view.table.stats()["total_bytes"]) if view.table is not None else 0,
    }


def facts_of(view: LanceView, uri: str) -> Mapping[str, Any]:
    """What is cheaply known."""
    pointer, table = view.pointer, view.table
    kernel, _ = choose_dots()
    nothing: dict[str, Any] = {"total_bytes": 0, "fragment_stats": {"num_fragments": 0}}
    stats = nothing if table is None else table.stats()
    indices = [each.index_type for each in table.list_indices()] if table is not None else []
    return {
        "driver": "lancedb",
        "path": uri,
        "generation": pointer.generation,
        "version": pointer.version,
        "versions": len(table.list_versions()) if table is not None else 0,
        "fragments": stats["fragment_stats"]["num_fragments"],
        "bytes": stats["total_bytes"],
        "lancedb": _version(),
        "vector": {
            "dims": pointer.dims, "stored": "float16", "kernel": kernel,
            "index": indices[0] if indices else None,
        },
        "recoveries": 1 if pointer.recovered else 0,
        "recovered": pointer.recovered if pointer.fingerprint is None else None,
    }  # fmt: skip


def _version() -> str:
    """Which LanceDB there is. Raises ConfigError when there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lancedb")
    except PackageNotFoundError:
        load()
        return "unknown"
