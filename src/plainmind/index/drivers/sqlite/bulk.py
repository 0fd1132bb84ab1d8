"""Large segments for an index that is being built: packed in memory, and written when they are full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from plainmind.base.model import Source
from plainmind.index.drivers.sqlite.connection import rows
from plainmind.index.drivers.sqlite.segments import Packed, fill, reserve
from plainmind.index.drivers.sqlite.view import MOST
from plainmind.index.drivers.sqlite.writer import AT_ONCE, Ready, next_contents

# What collected postings may take; beside them a chunk needs only its length, its signs and a byte.
_MOST_BYTES = 56_000_000

_IDS_BETWEEN = "SELECT id FROM chunks WHERE id >= ? AND id < ?"


class _Waiting:
    """A segment whose chunks have rows already, and no postings yet."""

    def __init__(self, first_id: int, dims: int) -> None:
        self.first_id = first_id
        self.packed = Packed(dims)

    @property
    def is_full(self) -> bool:
        return len(self.packed.absent) == MOST or self.packed.postings.bytes_used > _MOST_BYTES


class InBulk:
    """Chunks are found only after `write()`. Not for threads at once: the generation has one writer at a time."""

    def __init__(self) -> None:
        self._filling: dict[Source, _Waiting] = {}
        self._full: list[_Waiting] = []
        self._uncertain: list[_Waiting] = []  # begun in a transaction that has not ended

    def put(
        self, db: apsw.Connection, source: Source, chunks: Sequence[Ready], *, dims: int, revision: int
    ) -> list[int]:
        """Pack the chunks."""
        ids = []
        for each in chunks:
            waiting = self._filling.get(source) or self._begin(db, source, dims, revision)
            position = len(waiting.packed.absent)
            waiting.packed.add(each.prepared.length, each.signs, each.scope)
            waiting.packed.postings.add(position, each.prepared.counted)
            ids.append(waiting.first_id + position)
            if waiting.is_full:
                self._full.append(self._filling.pop(source))
        return ids

    def take(self, db: apsw.Connection, ids: Iterable[int], *, dims: int, revision: int) -> None:
        """Leave holes in what is written; what waits is looked through when it is written."""
        AT_ONCE.take(db, ids, dims=dims, revision=revision)

    def complete(self) -> None:
        """Let nothing more come to the segments that wait: all of them are to be written."""
        self._full += self._filling.values()
        self._filling.clear()

    def write(self, db: apsw.Connection) -> None:
        """Write the segments that are full, without what was removed, or rolled back, since it was packed."""
        for waiting in self._full:
            first_id, count = waiting.first_id, len(waiting.packed.absent)
            living = {id_ - first_id for (id_,) in rows(db, _IDS_BETWEEN, (first_id, first_id + count))}
            dead = frozenset(range(count)).difference(living)
            if dead:
                waiting.packed.leave_out(dead)
            fill(db, first_id, waiting.packed, dead=len(dead), revision=next_contents(db))

    def written(self) -> None:
        """Let go of what `write()` has written, when its transaction has ended well."""
        self._full.clear()

    def ended(self, *, well: bool) -> None:
        """Hear how a transaction ended: the ids of a segment that was begun in a failed one are not ours."""
        if not well:
            self._full = [each for each in self._full if each not in self._uncertain]
            self._filling = {
                source: each for source, each in self._filling.items() if each not in self._uncertain
            }
        self._uncertain.clear()

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        return bool(self._full)

    def _begin(self, db: apsw.Connection, source: Source, dims: int, revision: int) -> _Waiting:
        begun = _Waiting(reserve(db, source, revision=revision), dims)
        self._filling[source] = begun
        self._uncertain.append(begun)
        return begun
