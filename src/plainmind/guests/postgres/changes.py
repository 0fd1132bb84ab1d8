"""The changes that every PostgreSQL store offers, whichever generation it writes to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from plainmind.base.model import EmbeddedChunk, FileState, IndexFingerprint, Source
from plainmind.guests.postgres import writer
from plainmind.guests.postgres.session import Published, Tables
from plainmind.index.protocol import ANY_CONTENT
from plainmind.index.writer import check_following

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from plainmind.guests.postgres.connections import Connection
Change: TypeAlias = "tuple[Connection, Tables, Published | None]"


class Changes:
    """Each method is one transaction."""

    def _placing(self) -> writer.Placing:
        return writer.AT_ONCE

    def _changing(self, operation: str) -> AbstractContextManager[Change]:
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
        check_following(chunks, keeping)
        with self._changing("index a file") as (db, tables, now):
            return writer.replace_file(
                db,
                tables,
                file,
                chunks,
                made=now.fingerprint if now else None,
                expecting=expecting,
                replacing=replacing,
                keeping=keeping,
                placing=self._placing(),
            )

    def touch_file(self, file: FileState) -> None:
        """Record a new size, mtime or inode of a file whose text did not change."""
        with self._changing("touch a file") as (db, tables, now):
            if now is not None:
                writer.touch_file(db, tables, file)

    def remove_file(self, source: Source, path: str) -> None:
        """Drop a file and all its chunks."""
        with self._changing("remove a file") as (db, tables, now):
            if now is not None:
                writer.remove_file(db, tables, source, path, self._placing())
