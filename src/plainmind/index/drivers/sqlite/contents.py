"""All that a generation holds: row by row for its digest, and added up by what takes how much space."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping

import apsw

from plainmind.base.model import Chunk, FileState, IndexFingerprint, Source
from plainmind.base.value import value
from plainmind.index.digest import contradiction
from plainmind.index.driver import ChunkContents, SegmentContents
from plainmind.index.drivers.sqlite.files import rows, setting
from plainmind.index.drivers.sqlite.view import (
    Segment,
    all_segments,
    inflate_text,
    read_absences,
    read_audience,
    read_fingerprint,
    read_lengths,
    read_scopes,
    read_signs,
)
from plainmind.index.drivers.sqlite.writer import all_postings
from plainmind.index.vectors import lengthen, signs_of, signs_width

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


# `length` of a blob or of a long text is in the header of its row: their pages stay unread.
_SUMS: Mapping[str, str] = {
    "files": "SELECT count(*) FROM files",
    "chunks": "SELECT count(*) FROM chunks",
    "texts": "SELECT coalesce(sum(octet_length(text) + octet_length(context)), 0) FROM chunks",
    "vectors": "SELECT coalesce(sum(octet_length(vector)), 0) FROM vectors",
    "signs": "SELECT coalesce(sum(octet_length(signs)), 0) FROM signs",
    "terms": "SELECT count(*) FROM postings",
    "postings": """SELECT coalesce(sum(octet_length(term) + octet_length(positions) + octet_length(counts)), 0)
                     FROM postings""",
    "segments": "SELECT count(*) FROM segments",
    "positions": "SELECT coalesce(sum(used), 0) FROM segments",
    "holes": "SELECT coalesce(sum(dead), 0) FROM segments",
}


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


class _Blobs:
    """What the blobs of one segment say about each position."""

    def __init__(self, db: apsw.Connection, segment: Segment, dims: int) -> None:
        self.segment = segment
        self._absent = read_absences(db, segment)
        self._scopes = memoryview(read_audience(db, segment)).cast("I")
        self._signs = read_signs(db, segment, dims=dims)
        self._width = signs_width(dims)
        self._with_vector = 0

    def check(self, position: int, scope: int, vector: bytes | None) -> None:
        """Compare them with a chunk."""
        if position >= self.segment.used:
            raise contradiction("a chunk has a position that its segment has not given out")
        if self._scopes[position] != scope:
            raise contradiction("a chunk would be found by others than may see its file")
        own = self._signs[position * self._width : (position + 1) * self._width]
        if (vector is None) != bool(self._absent[position]) or (
            vector is not None and signs_of(vector) != own
        ):
            raise contradiction("the signs of a chunk are not those of its vector")
        self._with_vector += vector is not None

    def check_holes(self) -> None:
        """Make sure that no position but those of chunks has a vector."""
        if self._absent.count(0) != self._with_vector:
            raise contradiction("a hole of a segment would be found")


class SqliteContents:
    """Read inside one transaction, which the generation has begun and will end."""

    def __init__(self, db: apsw.Connection) -> None:
        check_parts(db)
        self._db = db
        self._fingerprint = read_fingerprint(db)
        self._dims = self._fingerprint.embedder.dims if self._fingerprint else 0
        self._blobs = [_Blobs(db, segment, self._dims) for segment in all_segments(db)]
        self._first_ids = [each.segment.first_id for each in self._blobs]

    def fingerprint(self) -> IndexFingerprint | None:
        """How it was made."""
        return self._fingerprint

    def segments(self) -> Iterator[SegmentContents]:
        """Every segment."""
        for each in self._blobs:
            segment = each.segment
            if segment.stale > segment.dead:
                raise contradiction("a segment has other holes than it says")
            yield SegmentContents(
                lengths=read_lengths(self._db, segment),
                living=segment.used - segment.dead,
                postings=all_postings(self._db, segment.first_id),
                has_stale_postings=segment.stale > 0,
            )

    def files(self) -> Iterator[tuple[FileState, Iterator[ChunkContents]]]:
        """Every file with its chunks."""
        scopes = read_scopes(self._db)
        for row in rows(self._db, _FILES):
            file = _File(*row)
            state = FileState(file.path, file.source, file.hash, 0, 0, 0, scopes[file.scope])
            yield state, self._chunks(file)

    def check(self) -> None:
        """Look for what belongs to nothing, and for sums that are wrong."""
        for each in self._blobs:
            each.check_holes()
        if any(self._db.execute(_STRAYS).fetchone() or (1,)):
            raise contradiction("vectors, postings or chunks belong to nothing")
        if sorted(self._db.execute(_TOTALS)) != sorted(self._db.execute(_COUNTED)):
            raise contradiction("the totals are not the sums of the rows")

    def _chunks(self, file: _File) -> Iterator[ChunkContents]:
        """The chunks of one file, each compared with what the blobs of its segment hold of it."""
        count = 0
        for id_, ordinal, first, last, length, text, context, day, kept in self._db.execute(
            _CHUNKS, (file.id,)
        ):
            if last - first > file.tallest:
                raise contradiction("a chunk has more lines than the tallest of its file")
            at = bisect_right(self._first_ids, id_) - 1
            if at < 0:
                raise contradiction("a chunk belongs to no segment")
            segment = self._blobs[at].segment
            if segment.source != file.source:
                raise contradiction("a chunk is in a segment of another source")
            position = id_ - segment.first_id
            vector = None if kept is None else lengthen(kept, self._dims)
            self._blobs[at].check(position, file.scope, vector)
            count += 1
            chunk = Chunk(
                file.path, file.source, ordinal, first, last, inflate_text(text), inflate_text(context), day
            )
            yield ChunkContents(chunk, length, vector, at, position)
        if count != file.chunks:
            raise contradiction("a file has other chunks than it says")


def check_parts(db: apsw.Connection) -> None:
    """Make sure that SQLite finds its file in order."""
    answers = [row[0] for row in db.execute("PRAGMA quick_check(3)")]
    if answers != ["ok"]:
        raise contradiction("; ".join(answers))


def sizes_of(db: apsw.Connection) -> Mapping[str, int]:
    """Counts and bytes by part, inside a transaction that the caller has begun."""
    found = {name: int(db.execute(statement).get) for name, statement in _SUMS.items()}
    page = int(setting(db, "page_size"))
    found["free"] = page * int(setting(db, "freelist_count"))
    found["file"] = page * int(setting(db, "page_count"))
    return found
