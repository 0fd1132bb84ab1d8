"""What a generation holds, in numbers: what every search needs before it begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from plainmind.base.model import IndexFingerprint, Source
from plainmind.base.value import replace, value
from plainmind.guests.postgres.segments import ALL, Segment, segment_of_row
from plainmind.guests.postgres.session import Published, Tables
from plainmind.index.protocol import IndexCounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.postgres.connections import Connection

_FILES = "SELECT source, count(*) FROM {files} GROUP BY source"


@value
class Overview:
    """Numbers of one state of a generation."""

    generation: int
    fingerprint: IndexFingerprint
    dims: int
    graph: bool
    revision: int
    contents: int
    counts: IndexCounts
    chunk_count: int
    average_length: float
    segments: tuple[Segment, ...]
    neighbours: Mapping[
        tuple[Source, str], tuple[Sequence[int], Sequence[int]]
    ]  # first ids, places in `segments`

    def at(self, now: Published) -> Overview:
        """The same after changes that no chunk came or went by."""
        return replace(self, revision=now.revision, graph=now.graph)


def read_overview(db: Connection, tables: Tables, now: Published) -> Overview:
    """Read the numbers of the state that this view sees."""
    with db.pipeline():
        rows = db.execute(tables(ALL))
        counted = db.execute(tables(_FILES))
    segments = tuple(map(segment_of_row, rows))
    files: dict[Source, int] = dict(counted.fetchall())
    chunks: Counter[Source] = Counter(dict.fromkeys(files, 0))
    neighbours: dict[tuple[Source, str], tuple[list[int], list[int]]] = {}
    for at, each in enumerate(segments):
        chunks[each.source] += each.living
        firsts, places = neighbours.setdefault((each.source, each.scope), ([], []))
        firsts.append(each.first_id)
        places.append(at)
    chunk_count = sum(chunks.values())
    return Overview(
        generation=now.generation,
        fingerprint=now.fingerprint,
        dims=now.dims,
        graph=now.graph,
        revision=now.revision,
        contents=now.contents,
        counts=IndexCounts(files=files, chunks=chunks),
        chunk_count=chunk_count,
        average_length=sum(each.terms for each in segments) / (chunk_count or 1),
        segments=segments,
        neighbours=neighbours,
    )
