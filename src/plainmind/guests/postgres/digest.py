"""The digest of a generation, from what its tables really hold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from plainmind.base.model import Chunk, FileState, Source
from plainmind.base.value import value
from plainmind.guests.postgres.segments import (
    Segment,
    all_postings,
    all_segments,
    position_of,
    read_positions,
)
from plainmind.guests.postgres.session import Published, Tables
from plainmind.guests.postgres.wire import from_stored
from plainmind.index.digest import SegmentTerms, TermSum, contradiction, file_digest, index_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.postgres.connections import Connection

_FILES = "SELECT id, path, source, hash, scope, chunks, tallest FROM {files}"
_CHUNKS = """SELECT c.file, c.id, c.scope, c.ordinal, c.start_line, c.end_line, c.length, c.text, c.context, c.day,
                    v.vector, v.source, v.scope
               FROM {chunks} c LEFT JOIN {vectors} v ON v.id = c.id
              ORDER BY c.file, c.ordinal, c.id"""
_STRAYS = """SELECT (SELECT count(*) FROM {vectors} v WHERE NOT EXISTS (SELECT FROM {chunks} c WHERE c.id = v.id)),
                    (SELECT count(*) FROM {postings} p
                      WHERE NOT EXISTS (SELECT FROM {segments} s WHERE s.number = p.segment)),
                    (SELECT count(*) FROM {positions} p
                      WHERE NOT EXISTS (SELECT FROM {segments} s WHERE s.number = p.segment)),
                    (SELECT count(*) FROM {chunks} c WHERE NOT EXISTS (SELECT FROM {files} f WHERE f.id = c.file))"""
_AT_ONCE = 1_000


@value
class _File:
    """One row of `files`."""

    id: int
    path: str
    source: Source
    hash: str
    scope: str
    chunks: int
    tallest: int


def digest_generation(db: Connection, tables: Tables, now: Published) -> str:
    """Hash everything that a rebuild would write again, inside a view that the caller has begun."""
    found: dict[tuple[Source, str], list[_Contents]] = {}
    for segment in all_segments(db, tables):
        found.setdefault((segment.source, segment.scope), []).append(_Contents(db, tables, segment))
    files = {}
    for id_, path, source, hash_, scope, chunks, tallest in db.execute(tables(_FILES)):
        files[id_] = _File(id_, from_stored(path), source, hash_, from_stored(scope), chunks, tallest)
    digests = []
    with db.cursor(name="digest", binary=True) as cursor:
        cursor.itersize = _AT_ONCE
        for id_, rows in groupby(cursor.execute(tables(_CHUNKS)), key=itemgetter(0)):
            file = files.pop(id_, None)
            if file is None:
                raise contradiction("a chunk belongs to no file")
            own = found.get((file.source, file.scope), [])
            digests.append(file_digest(_state(file), _chunks(file, rows, own)))
    without_chunks = files.values()
    digests += [file_digest(_state(file), _chunks(file, iter(()), [])) for file in without_chunks]
    for contents in found.values():
        for each in contents:
            each.check_holes()
    if any(db.execute(tables(_STRAYS)).fetchone() or (1,)):
        raise contradiction("vectors, postings or chunks belong to nothing")
    return index_digest(now.fingerprint, digests)


def _state(file: _File) -> FileState:
    return FileState(file.path, file.source, file.hash, 0, 0, 0, file.scope)


def _chunks(
    file: _File, rows: Iterator[tuple[Any, ...]], segments: list[_Contents]
) -> Iterator[tuple[Chunk, TermSum, bytes | None]]:
    """The chunks of one file, each compared with what its segment holds of it."""
    count = 0
    for _, id_, scope, ordinal, first, last, length, text, context, day, vector, *seen in rows:
        if last - first > file.tallest:
            raise contradiction("a chunk has more lines than the tallest of its file")
        others = [from_stored(scope)] if vector is None else [from_stored(scope), from_stored(seen[1])]
        if any(each != file.scope for each in others) or (vector is not None and seen[0] != file.source):
            raise contradiction("a chunk would be found by others than may see its file")
        count += 1
        chunk = Chunk(
            file.path, file.source, ordinal, first, last, from_stored(text), from_stored(context), day
        )
        yield chunk, _terms(id_, length, segments), vector
    if count != file.chunks:
        raise contradiction("a file has other chunks than it says")


def _terms(id_: int, length: int, segments: list[_Contents]) -> TermSum:
    for each in segments:
        position = position_of(each.ids, id_)
        if position is not None:
            return each.terms_of(position, length)
    raise contradiction("a chunk belongs to no segment")


class _Contents:
    """One segment: what its positions and its postings say about each chunk."""

    def __init__(self, db: Connection, tables: Tables, segment: Segment) -> None:
        import numpy as np

        self.segment = segment
        self.ids, lengths = read_positions(db, tables, segment)
        self._lengths = np.frombuffer(lengths, dtype=np.uint16)
        self._seen = np.zeros(segment.used, dtype=bool)
        if sorted(self.ids) != list(self.ids) or self.ids[0] < segment.first_id:
            raise contradiction("the ids of a segment are not in order")
        self._terms = SegmentTerms(segment.used, all_postings(db, tables, segment.number))

    def terms_of(self, position: int, length: int) -> TermSum:
        """The sum of the terms of one chunk, found in order."""
        if self._lengths[position] != length:
            raise contradiction("a segment has another length of a chunk than the chunk")
        self._seen[position] = True
        return self._terms.at(position, length)

    def check_holes(self) -> None:
        """Make sure that every position which is no chunk is a hole."""
        segment = self.segment
        if int(self._seen.sum()) != segment.living or int(self._lengths.sum()) != segment.terms:
            raise contradiction("a segment has other chunks than it says")
        if self._lengths[~self._seen].any():
            raise contradiction("a hole of a segment would be found")
