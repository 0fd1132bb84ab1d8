"""The digest of a generation, from what its tables really hold."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from plainmind.base.model import Chunk, FileState, Source
from plainmind.base.value import value
from plainmind.index.digest import SegmentTerms, TermSum, contradiction, file_digest, index_digest
from plainmind.index.drivers.sqlite.connection import rows
from plainmind.index.drivers.sqlite.postings import all_postings
from plainmind.index.drivers.sqlite.texts import unsqueezed
from plainmind.index.drivers.sqlite.view import (
    Segment,
    all_segments,
    read_absences,
    read_audience,
    read_fingerprint,
    read_lengths,
    read_scopes,
    read_signs,
)
from plainmind.index.signs import signs_of, signs_width

_FILES = "SELECT id, path, source, hash, scope, chunks, tallest FROM files"
_CHUNKS = """SELECT c.id, c.ordinal, c.start_line, c.end_line, c.length, c.text, c.context, c.day, v.vector
               FROM chunks c LEFT JOIN vectors v ON v.id = c.id
              WHERE c.file_id = ? ORDER BY c.ordinal, c.id"""
_TOTALS = "SELECT source, files, chunks, terms FROM totals WHERE files <> 0 OR chunks <> 0 OR terms <> 0"
_COUNTED = """SELECT f.source, count(DISTINCT f.id), count(c.id), coalesce(sum(c.length), 0)
                FROM files f LEFT JOIN chunks c ON c.file_id = f.id
               GROUP BY f.source"""
_STRAYS = """SELECT (SELECT count(*) FROM vectors WHERE id NOT IN (SELECT id FROM chunks)),
                    (SELECT count(*) FROM postings WHERE segment NOT IN (SELECT first_id FROM segments)),
                    (SELECT count(*) FROM chunks WHERE file_id NOT IN (SELECT id FROM files))"""


@value
class _File:
    """One row of `files`."""

    id: int
    path: str
    source: Source
    hash: str
    scope: int
    chunks: int
    tallest: int


def check_parts(db: apsw.Connection) -> None:
    """Make sure that SQLite finds its file in order."""
    answers = [row[0] for row in db.execute("PRAGMA quick_check(3)")]
    if answers != ["ok"]:
        raise contradiction("; ".join(answers))


def digest_generation(db: apsw.Connection) -> str:
    """Hash everything that a rebuild would write again, inside a transaction that the caller has begun.

    Takes about thirty bytes of memory for each chunk, however long the texts are.
    """
    check_parts(db)
    fingerprint = read_fingerprint(db)
    dims = fingerprint.embedder.dims if fingerprint else 0
    segments = _Segments(db, dims)
    digests = []
    scopes = read_scopes(db)
    for row in rows(db, _FILES):
        file = _File(*row)
        state = FileState(file.path, file.source, file.hash, 0, 0, 0, scopes[file.scope])
        digests.append(file_digest(state, _chunks(db, file, segments)))
    segments.check_holes()
    if any(db.execute(_STRAYS).fetchone() or (1,)):
        raise contradiction("vectors, postings or chunks belong to nothing")
    if sorted(db.execute(_TOTALS)) != sorted(db.execute(_COUNTED)):
        raise contradiction("the totals are not the sums of the rows")
    return index_digest(fingerprint, digests)


def _chunks(
    db: apsw.Connection, file: _File, segments: _Segments
) -> Iterator[tuple[Chunk, TermSum, bytes | None]]:
    """The chunks of one file, each compared with what its segment holds of it."""
    count = 0
    for id_, ordinal, first, last, length, text, context, day, vector in db.execute(_CHUNKS, (file.id,)):
        if last - first > file.tallest:
            raise contradiction("a chunk has more lines than the tallest of its file")
        terms = segments.terms_of(id_, file, length, vector)
        count += 1
        yield (
            Chunk(file.path, file.source, ordinal, first, last, unsqueezed(text), unsqueezed(context), day),
            terms,
            vector,
        )
    if count != file.chunks:
        raise contradiction("a file has other chunks than it says")


class _Segments:
    """All segments, with the terms of each of their chunks added up."""

    def __init__(self, db: apsw.Connection, dims: int) -> None:
        self._contents = [_Contents(db, segment, dims) for segment in all_segments(db)]
        self._firsts = [each.segment.first_id for each in self._contents]

    def terms_of(self, id_: int, file: _File, length: int, vector: bytes | None) -> TermSum:
        """The sum of the terms of one chunk, found in order."""
        from bisect import bisect_right

        at = bisect_right(self._firsts, id_) - 1
        if at < 0:
            raise contradiction("a chunk belongs to no segment")
        found = self._contents[at]
        if found.segment.source != file.source:
            raise contradiction("a chunk is in a segment of another source")
        return found.terms_of(id_, file.scope, length, vector)

    def check_holes(self) -> None:
        """Make sure that every position which is no chunk is a hole."""
        for each in self._contents:
            each.check_holes()


class _Contents:
    """One segment: what its blobs and its postings say about each position."""

    def __init__(self, db: apsw.Connection, segment: Segment, dims: int) -> None:
        import numpy as np

        self.segment = segment
        self._lengths = np.frombuffer(read_lengths(db, segment), dtype=np.uint16)
        self._absent = read_absences(db, segment)
        self._scopes = np.frombuffer(read_audience(db, segment), dtype=np.uint32)
        self._signs = read_signs(db, segment, dims=dims)
        self._width = signs_width(dims)
        self._seen = bytearray(segment.used)
        self._terms = SegmentTerms(segment.used, all_postings(db, segment.first_id))

    def terms_of(self, id_: int, scope: int, length: int, vector: bytes | None) -> TermSum:
        position = id_ - self.segment.first_id
        if position >= self.segment.used:
            raise contradiction("a chunk has a position that its segment has not given out")
        if self._scopes[position] != scope:
            raise contradiction("a chunk would be found by others than may see its file")
        if self._lengths[position] != length:
            raise contradiction("a segment has another length of a chunk than the chunk")
        own = self._signs[position * self._width : (position + 1) * self._width]
        if (vector is None) != bool(self._absent[position]) or (
            vector is not None and signs_of(vector) != own
        ):
            raise contradiction("the signs of a chunk are not those of its vector")
        self._seen[position] = 1
        return self._terms.at(position, length)

    def check_holes(self) -> None:
        import numpy as np

        holes = np.frombuffer(self._seen, dtype=np.uint8) == 0
        segment = self.segment
        if np.count_nonzero(holes) != segment.dead or segment.stale > segment.dead:
            raise contradiction("a segment has other holes than it says")
        if self._lengths[holes].any() or not np.frombuffer(self._absent, dtype=np.uint8)[holes].all():
            raise contradiction("a hole of a segment would be found")
        if not segment.stale and self._terms.counted[holes].any():
            raise contradiction("there are postings of no chunk")
