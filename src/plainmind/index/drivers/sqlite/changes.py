"""The changes that every SQLite store offers, whichever generation it writes to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

import apsw

from plainmind.base.model import EmbeddedChunk, FileState, IndexFingerprint, Source
from plainmind.index.protocol import ANY_CONTENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.index.drivers.sqlite.writer import Placing, Prepared


class Changes:
    """Each method is one transaction. What writes is imported by the first: a search changes nothing."""

    def _placing(self) -> Placing:
        from plainmind.index.drivers.sqlite.writer import AT_ONCE

        return AT_ONCE

    def _portions(self, chunks: Sequence[EmbeddedChunk]) -> Iterable[Sequence[Prepared]]:
        """Prepare chunks: all of them now, for others wait while the index is being changed."""
        from plainmind.index.drivers.sqlite.writer import prepared

        return [prepared(chunks)]

    def _changing(self, operation: str) -> AbstractContextManager[apsw.Connection]:
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
        from plainmind.index.agreement import check_following
        from plainmind.index.drivers.sqlite import writer

        check_following(chunks, keeping)
        portions = self._portions(chunks)
        with self._changing("index a file") as db:
            return writer.replace_file(
                db,
                file,
                portions,
                expecting=expecting,
                replacing=replacing,
                keeping=keeping,
                placing=self._placing(),
            )

    def touch_file(self, file: FileState) -> None:
        """Record a new size, mtime or inode of a file whose text did not change."""
        from plainmind.index.drivers.sqlite import writer

        with self._changing("touch a file") as db:
            writer.touch_file(db, file)

    def remove_file(self, source: Source, path: str) -> None:
        """Drop a file and all its chunks."""
        from plainmind.index.drivers.sqlite import writer

        with self._changing("remove a file") as db:
            writer.remove_file(db, source, path, self._placing())
