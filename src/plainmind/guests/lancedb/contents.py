"""All that a table holds: row by row for its digest, and added up for `status` and for a closer look."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from plainmind.base.model import FileState, IndexFingerprint
from plainmind.guests.lancedb.library import load
from plainmind.guests.lancedb.overview import Segment
from plainmind.guests.lancedb.rows import Bucket, FileRow
from plainmind.guests.lancedb.view import LanceView
from plainmind.index.bm25 import Postings
from plainmind.index.digest import contradiction
from plainmind.index.driver import ChunkContents, SegmentContents
from plainmind.index.vectors import choose_dots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
