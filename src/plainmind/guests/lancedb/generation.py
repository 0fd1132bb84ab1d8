"""Writing to the table of one generation: what waits in a draft, merged segments, a copy without what is gone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice

from plainmind.base.errors import ConflictError
from plainmind.base.value import replace
from plainmind.guests.lancedb import vector_index
from plainmind.guests.lancedb.draft import Draft
from plainmind.guests.lancedb.library import telling_faults
from plainmind.guests.lancedb.overview import Overview, Segment
from plainmind.guests.lancedb.pointer import Pointer, generation_of
from plainmind.guests.lancedb.rows import BUCKET, CHUNK, FILE, SEGMENT, Row, among, schema, table_of
from plainmind.guests.lancedb.vector_block import fits
from plainmind.guests.lancedb.view import View
from plainmind.guests.lancedb.words import Bucket, merge_from, runs_of
from plainmind.index.cache import RecentlyUsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Commits after which small fragments become one; they are read by every search. What is older than so long goes.
_TIDY_AFTER = 96
_KEPT = timedelta(minutes=10)
_FOR_EVER = timedelta(days=36_500)
_FIRST_VERSION = 1
_COPIED_AT_A_TIME = 16_384


class GenerationTable:
    """The newest version of a table, for the only one who may change it now."""

    def __init__(self, database: Any, pointer: Pointer, table: Any) -> None:
        self._database = database
        self.pointer = pointer
        self._table = table
        self.deleted = 0  # rows with text that were taken out of it, and that older versions still hold

    @classmethod
    @telling_faults
    def create(cls, database: Any, pointer: Pointer) -> GenerationTable:
        """Make the table of a new generation."""
        table = database.create_table(pointer.table, schema=schema(pointer.dims))
        return cls(database, replace(pointer, version=table.version, tidied=table.version), table)

    @classmethod
    @telling_faults
    def open(cls, database: Any, pointer: Pointer) -> GenerationTable:
        """Open the table of a generation, and undo what a dead writer did and never published."""
        table = database.open_table(pointer.table)
        if table.version != pointer.version:
            table.checkout(pointer.version)
            table.restore()
            table.checkout_latest()
        return cls(database, replace(pointer, version=table.version), table)

    def draft(self, overview: Overview) -> Draft:
        """An empty draft on what the table holds."""
        sizes = {segment.number: len(segment.ids) for segment in overview.segments}
        return Draft(
            overview.by_owner.values(),
            sizes,
            self.pointer.fingerprint,
            next_id=self.pointer.next_id,
            next_owner=self.pointer.next_owner,
        )

    @telling_faults
    def view(self, cache: RecentlyUsed | None = None) -> View:
        """Look at the table as it is now, published or not."""
        return View(self.pointer, opened(self._database, self.pointer), cache or RecentlyUsed(0))

    def write(self, draft: Draft, *, closing: bool = True) -> None:
        """Commit what waits in a draft; without `closing` the newest words may wait for more."""
        if draft.is_changed:
            self.deleted += self._commit(draft.conditions(), draft.rows(closing=closing))
            first = merge_from(list(draft.segments.values()))
            draft.committed()
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

    @telling_faults
    def compact(self) -> None:
        """Put small fragments together; the version that others still look at stays, whatever its age."""
        self._table.optimize(cleanup_older_than=_FOR_EVER)
        self._table.checkout_latest()
        self.pointer = replace(self.pointer, version=self._table.version, tidied=self._table.version)

    @telling_faults
    def clean(self) -> None:
        """Drop old versions, and what dead writers left in none, once nobody is pointed to them any more."""
        self._table.optimize(cleanup_older_than=_KEPT, delete_unverified=True)

    def check_whole(self) -> None:
        """Raise a fault when the table was dropped since it was created, even if it was written to again."""
        opened(self._database, replace(self.pointer, version=_FIRST_VERSION))

    @telling_faults
    def index_vectors(self, chunk_count: int) -> None:
        """Give vectors that are too many to be kept in memory an index, so that a search looks into a part of them."""
        dims = self.pointer.dims
        if not dims or chunk_count < vector_index.INDEX_FROM or fits(chunk_count, dims):
            return
        from lancedb.index import IvfSq

        partitions = vector_index.partitions_for(chunk_count)
        self._table.create_index("vector", config=IvfSq(distance_type="dot", num_partitions=partitions))
        self._table.checkout_latest()
        self.pointer = replace(self.pointer, version=self._table.version)

    @telling_faults
    def copy_to(self, generation: int) -> GenerationTable:
        """A new table with what lives in this one, and with no byte of anything else."""
        view = self.view()
        new = GenerationTable.create(self._database, replace(self.pointer, generation=generation))
        rows = view.table.search().where(among("kind", (FILE, CHUNK)))
        for batch in rows.to_batches(batch_size=_COPIED_AT_A_TIME):
            new.add(batch)
        draft = new.draft(view.overview)
        for run in _runs(view.overview.segments):
            written = segment_rows(view, run, draft)
            if written:
                new.add(table_of(written, self.pointer.dims))
        new.note(draft)
        new.index_vectors(view.overview.chunk_count)
        return new

    @telling_faults
    def add(self, rows: Any) -> None:
        """Add rows as they are."""
        if rows.num_rows:
            self._step(self._table.add(rows).version)

    @telling_faults
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
        """Note a commit; when there was one in between that is not ours, somebody else believes it is their turn."""
        if version != self.pointer.version + 1:
            raise ConflictError(
                "somebody else has written to the index meanwhile; nothing was changed", hint="try again"
            )
        self.pointer = replace(self.pointer, version=version)

    def note(self, draft: Draft) -> None:
        """Keep the numbers that were given out from being given out again."""
        self.pointer = replace(self.pointer, next_id=draft.next_id, next_owner=draft.next_owner)


def segment_rows(view: View, segments: Sequence[Segment], draft: Draft) -> list[Row]:
    """The rows of one segment with the living chunks of several; none when nothing lives."""
    import numpy as np

    ids: list[int] = []
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for segment in segments:
        living = segment.indexes >= 0
        places = np.where(living, np.cumsum(living) - 1 + len(ids), -1)
        ids += segment.ids[living].tolist()
        for body in view.taken(segment.buckets, "body").values():
            for term, positions, counts in Bucket(body).moved(places):
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


@telling_faults
def opened(database: Any, pointer: Pointer) -> Any:
    """The table of a state, at its version."""
    table = database.open_table(pointer.table)
    table.checkout(pointer.version)
    return table


@telling_faults
def next_generation(database: Any, pointer: Pointer) -> int:
    """A number that no table has had."""
    names = database.list_tables().tables
    return max([pointer.generation, *(generation_of(name) or 0 for name in names)]) + 1
