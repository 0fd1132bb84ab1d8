"""A new generation while it is built: files wait in memory, and are written in large batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from plainmind.base.errors import IndexUnavailable
from plainmind.base.model import IndexFingerprint, Source
from plainmind.base.value import replace
from plainmind.guests.lancedb.changes import Changes
from plainmind.guests.lancedb.describing import digest_of, sizes_of
from plainmind.guests.lancedb.library import TableFault, plainly
from plainmind.guests.lancedb.pointer import Pointer
from plainmind.guests.lancedb.reader import LanceReader
from plainmind.guests.lancedb.table import Draft, GenerationTable
from plainmind.guests.lancedb.view import View
from plainmind.index.protocol import IndexStore
from plainmind.index.store import leave_as_is

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_BYTES = 24_000_000  # that wait


class BuildingStore(Changes):
    """Nobody else knows of it before it is published."""

    neighbours = None

    def __init__(self, table: GenerationTable) -> None:
        self._one_at_a_time = threading.RLock()
        self._table = table
        self._failure: Exception | None = None
        with _plainly():
            self._draft = table.draft(table.view().overview)

    @property
    def pointer(self) -> Pointer:
        """What is to be published."""
        return replace(self._table.pointer, revision=self._draft.changes)

    @contextmanager
    def reading(self) -> Iterator[LanceReader]:
        """Look at what has been put in so far."""
        with _plainly():
            yield LanceReader(self._view())

    def joined(self) -> AbstractContextManager[None]:
        """Do nothing: changes wait for one another as it is."""
        return nullcontext()

    def erase(self, source: Source, *paths: str) -> None:
        """Drop files; `settle()` sees to it that nothing of them is published."""
        for path in paths:
            self.remove_file(source, path)

    def rebuild(
        self,
        fingerprint: IndexFingerprint,
        *,
        reason: str,
        catch_up: Callable[[IndexStore], None] = leave_as_is,
    ) -> AbstractContextManager[IndexStore]:
        """Refuse: this is one."""
        raise NotImplementedError

    def finish(self) -> None:
        """Write all that waits, pack it, and index it: the long part, in which others may change the old index."""
        with self._one_at_a_time, _plainly():
            self._write()
            self._table.pack(self._draft)
            self._table.index_vectors(sum(file.chunks for file in self._draft.files.values()))

    def settle(self, spare: int) -> None:
        """Write what was caught up on; what was taken out again is in no version of the table that is published."""
        with self._one_at_a_time, _plainly():
            self._write()
            self._table.check_whole()
            if self._table.deleted:
                self._table = self._table.copy_to(spare)

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        return {"driver": "lancedb", "path": None}

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part."""
        with _plainly():
            return sizes_of(self._view())

    def digest(self) -> str:
        """Hash everything that a rebuild would write again."""
        with _plainly():
            return digest_of(self._view())

    def close(self) -> None:
        """Do nothing: whoever began the rebuild ends it."""

    def _view(self) -> View:
        with self._one_at_a_time:
            self._write()
            return self._table.view()

    def _write(self, *, closing: bool = True) -> None:
        """Write what waits, unless somebody has erased text meanwhile and dropped the table: it may be in that too."""
        if self._failure is not None:
            raise self._failure  # nobody knows how much of the draft is in the table
        try:
            self._table.check_whole()
            self._table.write(self._draft, closing=closing)
        except Exception as error:
            self._failure = error
            raise

    @contextmanager
    def _changing(self, operation: str) -> Iterator[Draft]:  # noqa: ARG002
        with self._one_at_a_time, _plainly():
            yield self._draft
            if self._draft.waiting_bytes > _MOST_BYTES:
                self._write(closing=False)


@contextmanager
def _plainly() -> Iterator[None]:
    """Say in words what LanceDB refused; a table that is gone was dropped, mostly by whoever has erased text."""
    try:
        yield
    except TableFault as fault:
        if fault.is_missing:
            raise IndexUnavailable(
                "text was erased while the index was rebuilt, or another host has rebuilt it: this one was dropped",
                hint="run `plainmind sync`: it begins again",
            ) from fault
        with plainly():
            raise
