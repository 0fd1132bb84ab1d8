"""Facts about an index in LanceDB: for `status`, for a closer look, and to tell whether two are equal."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.errors import IndexCorrupt
from plainmind.guests.lancedb.library import load
from plainmind.guests.lancedb.pointer import Pointer
from plainmind.guests.lancedb.rows import Bucket
from plainmind.guests.lancedb.view import View
from plainmind.index.bm25 import LONGEST
from plainmind.index.digest import TermSum, file_digest, index_digest, term_hash
from plainmind.index.vectors import choose_dots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_64_BITS = 2**64 - 1


def facts_of(pointer: Pointer, uri: str, table: Any) -> Mapping[str, Any]:
    """What is cheaply known."""
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
        return str(load().__version__)


def sizes_of(view: View) -> Mapping[str, int]:
    """Counts and bytes by part."""
    overview = view.overview
    ids = overview.ids.tolist()
    chunks = view.chunks(ids)
    buckets = [row for segment in overview.segments for row in segment.buckets]
    return {
        "files": len(overview.files),
        "chunks": overview.chunk_count,
        "texts": sum(len(each.text.encode("utf-8", "surrogatepass")) for each in chunks.values()),
        "vectors": sum(len(each) for each in view.vectors(ids).values()),
        "postings": sum(len(body) for body in view.taken(buckets, "body").values()),
        "segments": len(overview.segments),
        "positions": sum(len(segment.ids) for segment in overview.segments),
        "holes": sum(int((segment.indexes < 0).sum()) for segment in overview.segments),
        "table": int(view.table.stats()["total_bytes"]) if view.table is not None else 0,
    }


def digest_of(view: View) -> str:
    """Hash everything that a rebuild would write again."""
    overview = view.overview
    ids = overview.ids.tolist()
    chunks, vectors, terms = view.chunks(ids), view.vectors(ids), _term_sums(view)
    by_owner: dict[int, list[int]] = {owner: [] for owner in overview.by_owner}
    for id_, owner in zip(ids, overview.owners.tolist(), strict=True):
        if owner not in by_owner:
            raise _contradiction("a chunk has no file")
        by_owner[owner].append(id_)
    digests = []
    for owner, own in by_owner.items():
        file = overview.by_owner[owner]
        own.sort(key=lambda id_: chunks[id_].ordinal)
        if [chunks[id_].ordinal for id_ in own] != list(range(file.chunks)):
            raise _contradiction("a file has not the chunks that it should have")
        digests.append(file_digest(file.state, ((chunks[id_], terms[id_], vectors.get(id_)) for id_ in own)))
    return index_digest(view.pointer.fingerprint, digests)


def _term_sums(view: View) -> dict[int, TermSum]:
    """What the terms of each chunk add up to, from the postings."""
    overview = view.overview
    sums: dict[int, TermSum] = dict.fromkeys(overview.ids.tolist(), (0, 0))
    lengths = dict.fromkeys(sums, 0)
    placed: set[int] = set()
    for segment in overview.segments:
        ids = [id_ if id_ in sums else 0 for id_ in segment.ids.tolist()]
        living = {id_ for id_ in ids if id_}
        if placed & living:
            raise _contradiction("a chunk is in two segments")
        placed |= living
        for body in view.taken(segment.buckets, "body").values():
            for term, postings in Bucket(body).items():
                for position, count in zip(postings.positions, postings.counts, strict=True):
                    id_ = ids[position]
                    if id_:
                        low, high = term_hash(term, count)
                        first, second = sums[id_]
                        sums[id_] = (first + low) & _64_BITS, (second + high) & _64_BITS
                        lengths[id_] += count
    expected = dict(zip(overview.ids.tolist(), overview.lengths.tolist(), strict=True))
    if placed != set(sums) or any(min(LONGEST, lengths[id_]) != expected[id_] for id_ in sums):
        raise _contradiction("words and chunks do not belong together")
    return sums


def _contradiction(what: str) -> IndexCorrupt:
    return IndexCorrupt(f"the index contradicts itself: {what}", hint="run `plainmind sync --force`")
