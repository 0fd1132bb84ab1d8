"""What a generation holds, in numbers: read once for each revision, not once for each search."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import apsw

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import EmbedderIdentity, FileState, IndexFingerprint, Source
from plainmind.base.value import replace, value
from plainmind.index.drivers.sqlite.connection import rows
from plainmind.index.drivers.sqlite.segments import Segment, all_segments
from plainmind.index.drivers.sqlite.texts import unsqueezed
from plainmind.index.protocol import IndexCounts

_FINGERPRINT = "SELECT value FROM meta WHERE key = 'fingerprint'"
_TOTALS = "SELECT source, files, chunks, terms FROM totals WHERE files > 0"
_FILES = "SELECT path, source, hash, size, mtime_ns, inode, scope FROM files"
_SCOPES = "SELECT id, name FROM scopes"


@value
class Overview:
    """One revision of a generation."""

    revision: int
    contents: int
    fingerprint: IndexFingerprint | None
    dims: int
    counts: IndexCounts
    chunk_count: int
    average_length: float
    segments: tuple[Segment, ...]  # by first id
    first_ids: tuple[int, ...]

    def at(self, revision: int) -> Overview:
        """The same, at a revision that has changed no chunk."""
        return replace(self, revision=revision)

    def of(self, sources: Iterable[Source]) -> list[Segment]:
        """The segments of some sources, those that hold anything."""
        wanted = frozenset(sources)
        return [each for each in self.segments if each.source in wanted and each.used > each.dead]

    def by_segment(self, ids: Iterable[int]) -> Iterator[tuple[Segment, list[int]]]:
        """Ids, each once and ascending, grouped by their segments."""
        ordered = sorted(set(ids))
        start = 0
        while start < len(ordered):
            following = bisect_right(self.first_ids, ordered[start])
            end = len(ordered)
            if following < len(self.first_ids):
                end = bisect_left(ordered, self.first_ids[following], start)
            yield self.segments[following - 1], ordered[start:end]
            start = end


def read_overview(db: apsw.Connection, revision: int, contents: int) -> Overview:
    """Read all of it."""
    fingerprint = read_fingerprint(db)
    totals = rows(db, _TOTALS)
    chunk_count = sum(chunks for _, _, chunks, _ in totals)
    segments = all_segments(db)
    return Overview(
        revision=revision,
        contents=contents,
        fingerprint=fingerprint,
        dims=fingerprint.embedder.dims if fingerprint else 0,
        counts=IndexCounts(
            files={source: files for source, files, _, _ in totals},
            chunks={source: chunks for source, _, chunks, _ in totals},
        ),
        chunk_count=chunk_count,
        average_length=sum(terms for *_, terms in totals) / (chunk_count or 1),
        segments=tuple(segments),
        first_ids=tuple(each.first_id for each in segments),
    )


def read_fingerprint(db: apsw.Connection) -> IndexFingerprint | None:
    """How the index is made; None when it was never built."""
    row = db.execute(_FINGERPRINT).fetchone()
    if row is None:
        return None
    facts = json.loads(row[0])
    return IndexFingerprint(**{**facts, "embedder": EmbedderIdentity(**facts["embedder"])})


def read_files(db: apsw.Connection) -> Mapping[tuple[Source, str], FileState]:
    """Every indexed file, by (source, path)."""
    found, scopes = {}, read_scopes(db)
    for path, source, hash_, size, mtime_ns, inode, scope in db.execute(_FILES):
        found[source, path] = FileState(
            path, source, hash_, size, mtime_ns, unsigned_64(inode), scopes[scope]
        )
    return MappingProxyType(found)


class _Scopes(dict[int, str]):
    """Scopes by their numbers."""

    def __missing__(self, number: int) -> str:
        raise IndexCorrupt(
            "a file of the index has a scope that is not known", hint="run `plainmind sync --force`"
        )


def read_scopes(db: apsw.Connection) -> Mapping[int, str]:
    """Every scope by its number."""
    return _Scopes({number: unsqueezed(name) for number, name in db.execute(_SCOPES)})


def unsigned_64(number: int) -> int:
    """Undo `writer.signed_64`."""
    return number + 2**64 if number < 0 else number
