"""The changes that every LanceDB store offers, whichever generation it writes to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from plainmind.base.model import EmbeddedChunk, FileState, IndexFingerprint, Source
from plainmind.guests.lancedb.table import Draft
from plainmind.index.store import ANY_CONTENT


class Changes:
    """Each method is all or nothing."""

    def _changing(self, operation: str) -> AbstractContextManager[Draft]:
        raise NotImplementedError

    def replace_file(
        self,
        file: FileState,
        chunks: Sequence[EmbeddedChunk],
        *,
        expecting: IndexFingerprint | None = None,
        replacing: str | None = ANY_CONTENT,
        keeping: int = 0,
    ) -> bool:
        """Swap in the chunks of `file`, all or nothing."""
        with self._changing("index a file") as draft:
            return draft.replace_file(file, chunks, expecting=expecting, replacing=replacing, keeping=keeping)

    def touch_file(self, file: FileState) -> None:
        """Record a new size, mtime or inode of a file whose text did not change."""
        with self._changing("touch a file") as draft:
            draft.touch_file(file)

    def remove_file(self, source: Source, path: str) -> None:
        """Drop a file and all its chunks."""
        with self._changing("remove a file") as draft:
            draft.remove_file(source, path)
