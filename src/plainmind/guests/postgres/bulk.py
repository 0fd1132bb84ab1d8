"""Large segments for an index that is being built: packed in memory, and written when they are full."""

from __future__ import annotations

import time
from collections.abc import Sequence

from plainmind.base.model import FileState, Source
from plainmind.guests.postgres import segments
from plainmind.guests.postgres.session import Tables
from plainmind.guests.postgres.writer import AT_ONCE, Prepared, next_contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.postgres.connections import Connection

_MOST_BYTES = 56_000_000  # that all collected postings may take
_SET_NEXT_ID = "UPDATE generations SET next_id = %s WHERE id = %s"


class InBulk:
    """Chunks are found by words only after `write()`. Not for threads at once: a build has one writer at a time."""

    def __init__(self) -> None:
        # Nobody else adds to a generation that is being built; a failed change wastes its ids.
        self._next_id = time.time_ns() // 1_000
        self._filling: dict[tuple[Source, str], segments.Packed] = {}
        self._full: list[tuple[Source, str, segments.Packed]] = []

    def ids(self, _db: Connection, _tables: Tables, count: int) -> range:
        """New ids for so many chunks."""
        first = self._next_id
        self._next_id += count
        return range(first, self._next_id)

    def put(
        self,
        _db: Connection,
        _tables: Tables,
        file: FileState,
        ids: Sequence[int],
        chunks: Sequence[Prepared],
        *,
        revision: int,  # noqa: ARG002
    ) -> None:
        """Pack the chunks."""
        key = (file.source, file.scope)
        for id_, each in zip(ids, chunks, strict=True):
            waiting = self._filling.setdefault(key, segments.Packed())
            waiting.add(id_, each.length, each.counted)
            if len(waiting.ids) == segments.MOST:
                self._full.append((*key, self._filling.pop(key)))
        if sum(waiting.postings.bytes_used for waiting in self._filling.values()) > _MOST_BYTES:
            self.complete()

    def take(
        self, db: Connection, tables: Tables, source: Source, scope: str, ids: Sequence[int], *, revision: int
    ) -> None:
        """Leave holes in what is written; what waits is looked through when it is written."""
        AT_ONCE.take(db, tables, source, scope, ids, revision=revision)

    def complete(self) -> None:
        """Let nothing more come to what waits: all of it is to be written."""
        self._full += [(*key, waiting) for key, waiting in self._filling.items()]
        self._filling.clear()

    def write(self, db: Connection, tables: Tables) -> None:
        """Write the segments that are full, without what was removed, or rolled back, since it was packed."""
        for source, scope, waiting in self._full:
            living = segments.living_ids(db, tables, waiting.ids)
            dead = frozenset(at for at, id_ in enumerate(waiting.ids) if id_ not in living)
            own = waiting.without(dead) if dead else waiting
            if own.ids:
                capacity, revision = len(own.ids), next_contents(db, tables)
                segments.insert(db, tables, source, scope, own, capacity=capacity, revision=revision)
        db.execute(_SET_NEXT_ID, (self._next_id, tables.generation))

    def written(self) -> None:
        """Let go of what `write()` has written, when its transaction has ended well."""
        self._full.clear()

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        return bool(self._full)
