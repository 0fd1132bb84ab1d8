"""Changes that wait to be committed: decided here, on what the table is known to hold, and written at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from plainmind.base.model import EmbeddedChunk, FileState, IndexFingerprint, Source
from plainmind.base.value import replace, value
from plainmind.guests.lancedb.rows import (
    BUCKET,
    CHUNK,
    FILE,
    SEGMENT,
    Audience,
    KnownFile,
    Row,
    among,
    chunk_body,
    file_row,
)
from plainmind.guests.lancedb.words import MOST_POSITIONS, in_buckets
from plainmind.index import bm25
from plainmind.index.agreement import check_agreement, check_following, check_same_scope
from plainmind.index.kernels import packed
from plainmind.index.postings import Collected
from plainmind.index.protocol import ANY_CONTENT

_BYTES_OF_A_ROW = 300


@value
class Fresh:
    """A chunk that waits, with the terms that postings are made of."""

    row: Row
    counted: Mapping[str, int]


class Draft:
    """The files of a table, and what is to change. Not for threads at once."""

    def __init__(
        self,
        files: Iterable[KnownFile],
        segments: Mapping[int, int],
        fingerprint: IndexFingerprint | None,
        *,
        next_id: int,
        next_owner: int,
    ) -> None:
        """`segments`: by number, how many positions each has, in the order of their ids."""
        self.files = {(each.state.source, each.state.path): each for each in files}
        self.segments = dict(segments)
        self.fingerprint = fingerprint
        self.next_id = next_id
        self.next_owner = next_owner
        self.changes = 0
        self.waiting_bytes = 0
        self._audiences: dict[Audience, int] = {
            (each.state.source, each.state.scope): each.audience for each in self.files.values()
        }
        self._next_audience = max(self._audiences.values(), default=0) + 1
        self._fresh: dict[int, list[Fresh]] = {}  # by file
        self._doomed: dict[int, int] = {}  # by file: from which ordinal on its chunks in the table go
        self._told: set[int] = set()  # files whose row is written, in the place of the one they may have
        self._in_table = {each.owner for each in self.files.values()}
        self._open_ids: list[int] = []  # chunks in the table whose segment is still to be written
        self._open = Collected()

    def replace_file(
        self,
        file: FileState,
        chunks: Sequence[EmbeddedChunk],
        *,
        expecting: IndexFingerprint | None = None,
        replacing: str | None = ANY_CONTENT,
        keeping: int = 0,
    ) -> bool:
        """Swap in the chunks of `file`."""
        check_following(chunks, keeping)
        made = check_agreement(self.fingerprint, expecting)
        key = (file.source, file.path)
        known = self.files.get(key)
        if replacing not in {ANY_CONTENT, known.state.hash if known else None}:
            return False
        if keeping > (known.chunks if known else 0):
            return False
        if keeping and known:
            check_same_scope(file, known.state.scope)
        owner = known.owner if known else self.next_owner
        audience = self._audience(file)
        fresh = self._fresh_chunks(chunks, owner, audience, made.embedder.dims, keeping)
        if known:
            self._forget_chunks(owner, keeping)
        self.next_id += len(fresh)
        self.next_owner = max(self.next_owner, owner + 1)
        self._fresh.setdefault(owner, []).extend(fresh)
        self.waiting_bytes += sum(
            len(each.row.body) + len(each.row.vector or b"") + _BYTES_OF_A_ROW for each in fresh
        )
        self._put(KnownFile(owner, file, keeping + len(fresh), audience))
        return True

    def touch_file(self, file: FileState) -> None:
        """Record a new size, mtime or inode of a file whose text and scope did not change."""
        known = self.files.get((file.source, file.path))
        if known and (known.state.hash, known.state.scope) == (file.hash, file.scope):
            self._put(replace(known, state=file))
        else:
            self.changes += 1  # whoever looked for it has still had a turn

    def remove_file(self, source: Source, path: str) -> None:
        """Drop a file and all its chunks."""
        self.changes += 1
        known = self.files.pop((source, path), None)
        if known:
            self._forget_chunks(known.owner, 0)
            self._fresh.pop(known.owner, None)
            self._told.add(known.owner)

    def conditions(self) -> str:
        """Which rows of the table go; empty when none do."""
        doomed = {owner: first for owner, first in self._doomed.items() if owner in self._in_table}
        whole = [owner for owner, first in doomed.items() if not first]
        parts = [f"(kind = {CHUNK} AND {among('owner', whole)})"] if whole else []
        parts += [
            f"(kind = {CHUNK} AND owner = {int(owner)} AND ordinal >= {int(first)})"
            for owner, first in doomed.items()
            if first
        ]
        rewritten = sorted(self._told & self._in_table)
        if rewritten:
            parts.append(f"(kind = {FILE} AND {among('owner', rewritten)})")
        return " OR ".join(parts)

    def rows(self, *, closing: bool) -> list[Row]:
        """Which rows come to the table, with the segments of the chunks among them.

        Without `closing`, a segment that could hold more chunks waits for them.
        """
        living = {each.owner: each for each in self.files.values()}
        rows = [file_row(living[owner]) for owner in sorted(self._told) if owner in living]
        fresh = sorted(
            (each for waiting in self._fresh.values() for each in waiting), key=lambda each: each.row.id
        )
        rows += [each.row for each in fresh]
        for each in fresh:
            self._open.add(len(self._open_ids), each.counted)
            self._open_ids.append(each.row.id)
            if len(self._open_ids) == MOST_POSITIONS:
                rows += self._closed()
        if closing and self._open_ids:
            rows += self._closed()
        return rows

    def segment(self, ids: Sequence[int], by_term: Mapping[str, tuple[bytes, bytes]]) -> Iterator[Row]:
        """The rows of a new segment, which comes behind all others; of each term the positions and counts."""
        from array import array

        number, self.next_owner = self.next_owner, self.next_owner + 1
        buckets = in_buckets(by_term)
        self.segments[number] = len(ids)
        yield Row(SEGMENT, number, len(buckets), array("q", ids).tobytes(), id=ids[0])
        for at, body in enumerate(buckets):
            yield Row(BUCKET, number, at, body)

    def committed(self) -> None:
        """Forget what waited: it is in the table now."""
        self._in_table = {each.owner for each in self.files.values()}
        self._fresh.clear()
        self._doomed.clear()
        self._told.clear()
        self.waiting_bytes = 0

    @property
    def is_changed(self) -> bool:
        """Whether anything waits to be written."""
        return bool(self._told or self._doomed or self._fresh or self._open_ids)

    def _closed(self) -> list[Row]:
        rows = list(self.segment(self._open_ids, self._open.by_term()))
        self._open_ids, self._open = [], Collected()
        return rows

    def _put(self, file: KnownFile) -> None:
        self.files[file.state.source, file.state.path] = file
        self._told.add(file.owner)
        self.changes += 1

    def _forget_chunks(self, owner: int, keeping: int) -> None:
        waiting = self._fresh.get(owner)
        if waiting:
            self._fresh[owner] = [each for each in waiting if each.row.ordinal < keeping]
        self._doomed[owner] = min(keeping, self._doomed.get(owner, keeping))

    def _audience(self, file: FileState) -> int:
        key = (file.source, file.scope)
        if key not in self._audiences:
            self._audiences[key] = self._next_audience
            self._next_audience += 1
        return self._audiences[key]

    def _fresh_chunks(
        self, chunks: Sequence[EmbeddedChunk], owner: int, audience: int, dims: int, keeping: int
    ) -> list[Fresh]:
        made = []
        for at, each in enumerate(chunks):
            counted = bm25.occurrences(each.terms)
            chunk = each.chunk
            row = Row(
                CHUNK,
                owner,
                keeping + at,
                chunk_body(chunk),
                id=self.next_id + at,
                first=chunk.start_line,
                last=chunk.end_line,
                length=bm25.length_of(counted),
                audience=audience,
                vector=None if each.vector is None else packed(each.vector, dims),
            )
            made.append(Fresh(row, counted))
        return made
