"""The table of one generation: changes that wait for it in a draft, and how they are written, merged and copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice

from plainmind.base.errors import ConflictError
from plainmind.base.model import FileState, IndexFingerprint, Source
from plainmind.base.value import replace, value
from plainmind.guests.lancedb import overview
from plainmind.guests.lancedb.library import with_faults
from plainmind.guests.lancedb.overview import Segment, fits
from plainmind.guests.lancedb.place import Pointer, generation_of
from plainmind.guests.lancedb.rows import (
    BUCKET,
    CHUNK,
    FILE,
    MOST_POSITIONS,
    SEGMENT,
    Audience,
    Bucket,
    FileRow,
    Row,
    among,
    file_row,
    in_buckets,
    merge_from,
    runs_of,
    schema,
    table_of,
)
from plainmind.guests.lancedb.view import LanceView, new_cache
from plainmind.index.bm25 import Collected
from plainmind.index.driver import KnownFile, PreparedChunk
from plainmind.index.vectors import round_vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_BYTES_OF_A_ROW = 300
# Commits after which small fragments become one; they are read by every search. What is older than so long goes.
_TIDY_AFTER = 96
_KEPT = timedelta(minutes=10)
_FOR_EVER = timedelta(days=36_500)
_FIRST_VERSION = 1
_COPIED_AT_A_TIME = 16_384


@value
class Fresh:
    """A chunk that waits, with the terms that postings are made of."""

    row: Row
    counted: Mapping[str, int]


class Draft:
    """The files of a table, and what is to change: the change of the engine. Not for threads at once."""

    def __init__(
        self,
        files: Iterable[FileRow],
        segments: Mapping[int, int],
        fingerprint: IndexFingerprint | None,
        *,
        next_id: int,
        next_owner: int,
    ) -> None:
        """`segments`: by number, how many positions each has, in the order of their ids."""
        self.files = {(each.state.source, each.state.path): each for each in files}
        self.segments = dict(segments)
        self.next_id = next_id
        self.next_owner = next_owner
        self.changes = 0
        self.waiting_bytes = 0
        self._fingerprint = fingerprint
        self._audiences: dict[Audience, int] = {
            (each.state.source, each.state.scope): each.audience for each in self.files.values()
        }
        self._next_audience = max(self._audiences.values(), default=0) + 1
        self._fresh: dict[int, list[Fresh]] = {}  # by file
        self._doomed: dict[int, int] = {}  # by file: from which ordinal on its chunks in the table go
        self._rewritten: set[int] = set()  # files whose row is written, in the place of the one they may have
        self._in_table = {each.owner for each in self.files.values()}
        self._open_ids: list[int] = []  # chunks in the table whose segment is still to be written
        self._open = Collected()

    def fingerprint(self) -> IndexFingerprint | None:
        """How the index is made that is being changed."""
        return self._fingerprint

    def known(self, source: Source, path: str) -> KnownFile | None:
        """What the index holds of a file."""
        file = self.files.get((source, path))
        return KnownFile(file.owner, file.state.hash, file.state.scope, file.chunks) if file else None

    def put(
        self,
        file: FileState,
        known: KnownFile | None,
        portions: Iterable[Sequence[PreparedChunk]],
        *,
        keeping: int,
        dims: int,
    ) -> None:
        """Swap in the chunks of a file behind the first `keeping`; all are made before anything is changed."""
        owner = known.number if known else self.next_owner
        audience = self._audience(file)
        fresh: list[Fresh] = []
        for portion in portions:
            for each in portion:
                row = Row(
                    CHUNK,
                    owner,
                    keeping + len(fresh),
                    each.body,
                    id=self.next_id + len(fresh),
                    first=each.chunk.start_line,
                    last=each.chunk.end_line,
                    length=each.length,
                    audience=audience,
                    vector=None if each.vector is None else round_vector(each.vector, dims),
                )
                fresh.append(Fresh(row, each.counted))
        if known:
            self._forget_chunks(owner, keeping)
        self.next_id += len(fresh)
        self.next_owner = max(self.next_owner, owner + 1)
        self._fresh.setdefault(owner, []).extend(fresh)
        self.waiting_bytes += sum(
            len(each.row.body) + len(each.row.vector or b"") + _BYTES_OF_A_ROW for each in fresh
        )
        self._put_file(FileRow(owner, file, keeping + len(fresh), audience))

    def touch(self, file: FileState) -> None:
        """Record a new size, mtime or inode of a file whose text and scope did not change."""
        known = self.files.get((file.source, file.path))
        if known and (known.state.hash, known.state.scope) == (file.hash, file.scope):
            self._put_file(replace(known, state=file))
        else:
            self.changes += 1

    def remove(self, source: Source, path: str) -> None:
        """Drop a file and all its chunks."""
        self.changes += 1
        known = self.files.pop((source, path), None)
        if known:
            self._forget_chunks(known.owner, 0)
            self._fresh.pop(known.owner, None)
            self._rewritten.add(known.owner)

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
        rewritten = sorted(self._rewritten & self._in_table)
        if rewritten:
            parts.append(f"(kind = {FILE} AND {among('owner', rewritten)})")
        return " OR ".join(parts)

    def rows(self, *, closing: bool) -> list[Row]:
        """Which rows come to the table, with the segments of the chunks among them.

        Without `closing`, a segment that could hold more chunks waits for them.
        """
        living = {each.owner: each for each in self.files.values()}
        rows = [file_row(living[owner]) for owner in sorted(self._rewritten) if owner in living]
        fresh = sorted(
            (each for waiting in self._fresh.values() for each in waiting), key=lambda each: each.row.id
        )
        rows += [each.row for each in fresh]
        for each in fresh:
            self._open.add(len(self._open_ids), each.counted)
            self._open_ids.append(each.row.id)
            if len(self._open_ids) == MOST_POSITIONS:
                rows += self._close_segment()
        if closing and self._open_ids:
            rows += self._close_segment()
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

    def forget_written(self) -> None:
        """Forget what waited: it is in the table now."""
        self._in_table = {each.owner for each in self.files.values()}
        self._fresh.clear()
        self._doomed.clear()
        self._rewritten.clear()
        self.waiting_bytes = 0

    @property
    def is_changed(self) -> bool:
        """Whether anything waits to be written."""
        return bool(self._rewritten or self._doomed or self._fresh or self._open_ids)

    def _close_segment(self) -> list[Row]:
        rows = list(self.segment(self._open_ids, self._open.by_term()))
        self._open_ids, self._open = [], Collected()
        return rows

    def _put_file(self, file: FileRow) -> None:
        self.files[file.state.source, file.state.path] = file
        self._rewritten.add(file.owner)
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


class GenerationTable:
    """The newest version of a table, for the only one who may change it now."""

    def __init__(self, database: Any, pointer: Pointer, table: Any) -> None:
        self._database = database
        self.pointer = pointer
        self._table = table
        self.deleted = 0  # rows with text that were taken out of it, and that older versions still hold

    @classmethod
    @with_faults
    def create(cls, database: Any, pointer: Pointer) -> GenerationTable:
        """Make the table of a new generation."""
        table = database.create_table(pointer.table, schema=schema(pointer.dims))
        return cls(database, replace(pointer, version=table.version, tidied=table.version), table)

    @classmethod
    @with_faults
    def open(cls, database: Any, pointer: Pointer) -> GenerationTable:
        """Open the table of a generation, and undo what a dead writer did and never published."""
        table = database.open_table(pointer.table)
        if table.version != pointer.version:
            table.checkout(pointer.version)
            table.restore()
            table.checkout_latest()
        return cls(database, replace(pointer, version=table.version), table)

    def draft(self, view: LanceView) -> Draft:
        """An empty draft on what the table holds."""
        now = view.overview.numbers
        sizes = {segment.number: segment.used for segment in now.segments}
        return Draft(
            now.by_owner.values(),
            sizes,
            self.pointer.fingerprint,
            next_id=self.pointer.next_id,
            next_owner=self.pointer.next_owner,
        )

    @with_faults
    def view(self) -> LanceView:
        """Look at the table as it is now, published or not."""
        return LanceView(self.pointer, open_table(self._database, self.pointer), new_cache(0))

    def write(self, draft: Draft, *, closing: bool = True) -> None:
        """Commit what waits in a draft; without `closing` the newest words may wait for more."""
        if draft.is_changed:
            self.deleted += self._commit(draft.conditions(), draft.rows(closing=closing))
            first = merge_from(list(draft.segments.values()))
            draft.forget_written()
            if first is not None:
                self.merge(draft, list(draft.segments)[first:])
        self.note(draft)

    def merge(self, draft: Draft, numbers: Sequence[int]) -> None:
        """Make one segment of several that follow on one another, without what is gone."""
        view = self.view()
        merged = [segment for segment in view.overview.segments if segment.number in set(numbers)]
        for number in numbers:
            draft.segments.pop(number, None)
        rows = segment_rows(view, merged, draft)
        self._commit(f"{among('kind', (SEGMENT, BUCKET))} AND {among('owner', numbers)}", rows)
        self.note(draft)

    def pack(self, draft: Draft) -> None:
        """Merge all segments into as few as possible."""
        numbers = iter(list(draft.segments))
        for run in runs_of(list(draft.segments.values())):
            merged = list(islice(numbers, run))
            if len(merged) > 1:
                self.merge(draft, merged)
            else:  # keeps the order of the segments that of their ids
                draft.segments.update({number: draft.segments.pop(number) for number in merged})

    @property
    def is_untidy(self) -> bool:
        """Whether there are many small fragments, and old versions."""
        return self.pointer.version - self.pointer.tidied >= _TIDY_AFTER

    @with_faults
    def compact(self) -> None:
        """Put small fragments together; the version that others still look at stays, whatever its age."""
        self._table.optimize(cleanup_older_than=_FOR_EVER)
        self._table.checkout_latest()
        self.pointer = replace(self.pointer, version=self._table.version, tidied=self._table.version)

    @with_faults
    def clean(self) -> None:
        """Drop old versions, and what dead writers left in none, once no pointer names them any more."""
        self._table.optimize(cleanup_older_than=_KEPT, delete_unverified=True)

    def check_whole(self) -> None:
        """Raise a fault when the table was dropped since it was created, even if it was written to again."""
        open_table(self._database, replace(self.pointer, version=_FIRST_VERSION))

    @with_faults
    def index_vectors(self, chunk_count: int) -> None:
        """Give vectors that are too many to be kept in memory an index, so that a search looks into a part of them."""
        dims = self.pointer.dims
        if not dims or chunk_count < overview.INDEX_FROM or fits(chunk_count, dims):
            return
        from lancedb.index import IvfSq

        partitions = overview.partitions_for(chunk_count)
        self._table.create_index("vector", config=IvfSq(distance_type="dot", num_partitions=partitions))
        self._table.checkout_latest()
        self.pointer = replace(self.pointer, version=self._table.version)

    @with_faults
    def copy_to(self, generation: int) -> GenerationTable:
        """A new table with what lives in this one, and with no byte of anything else."""
        view = self.view()
        new = GenerationTable.create(self._database, replace(self.pointer, generation=generation))
        rows = view.table.search().where(among("kind", (FILE, CHUNK)))
        for batch in rows.to_batches(batch_size=_COPIED_AT_A_TIME):
            new.add(batch)
        draft = new.draft(view)
        for run in _runs(view.overview.segments):
            written = segment_rows(view, run, draft)
            if written:
                new.add(table_of(written, self.pointer.dims))
        new.note(draft)
        new.index_vectors(view.overview.chunk_count)
        return new

    @with_faults
    def add(self, rows: Any) -> None:
        """Add rows as they are."""
        if rows.num_rows:
            self._step(self._table.add(rows).version)

    @with_faults
    def _commit(self, conditions: str, rows: Sequence[Row]) -> int:
        """Delete and add; how many rows are gone."""
        gone = 0
        if conditions:
            done = self._table.delete(conditions)
            gone = int(done.num_deleted_rows)
            self._step(done.version)
        if rows:
            self.add(table_of(rows, self.pointer.dims))
        return gone

    def _step(self, version: int) -> None:
        """Note a commit; when one that is not ours came in between, another writer believes it has the turn."""
        if version != self.pointer.version + 1:
            raise ConflictError(
                "somebody else has written to the index meanwhile; nothing was changed", hint="try again"
            )
        self.pointer = replace(self.pointer, version=version)

    def note(self, draft: Draft) -> None:
        """Keep the numbers that were given out from being given out again."""
        self.pointer = replace(self.pointer, next_id=draft.next_id, next_owner=draft.next_owner)


def segment_rows(view: LanceView, segments: Sequence[Segment], draft: Draft) -> list[Row]:
    """The rows of one segment with the living chunks of several; none when nothing lives."""
    import numpy as np

    ids: list[int] = []
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for segment in segments:
        living = segment.indexes >= 0
        places = np.where(living, np.cumsum(living) - 1 + len(ids), -1)
        ids += segment.ids[living].tolist()
        for body in view.take(segment.buckets, "body").values():
            for term, positions, counts in Bucket(body).move(places):
                found.setdefault(term, []).append((positions, counts))
    if not ids:
        return []
    joined = {
        term: (b"".join(positions for positions, _ in parts), b"".join(counts for _, counts in parts))
        for term, parts in found.items()
    }
    return list(draft.segment(ids, joined))


def _runs(segments: Sequence[Segment]) -> list[Sequence[Segment]]:
    remaining = iter(segments)
    return [list(islice(remaining, run)) for run in runs_of([len(each.ids) for each in segments])]


@with_faults
def open_table(database: Any, pointer: Pointer) -> Any:
    """The table of a state, at its version."""
    table = database.open_table(pointer.table)
    table.checkout(pointer.version)
    return table


@with_faults
def next_generation(database: Any, pointer: Pointer) -> int:
    """A number that no table has had."""
    names = database.list_tables().tables
    return max([pointer.generation, *(generation_of(name) or 0 for name in names)]) + 1
