"""What a place that text comes from must promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from plainmind.base.model import Document, FileState, Source
from plainmind.notes.discovery import Discovery, FoundFile
from plainmind.notes.extent import Mark
from plainmind.notes.noticing import Since
from plainmind.sessions.transcripts import Piece


class TextSource(Protocol):
    """Lists files cheaply and reads them one at a time."""

    @property
    def source(self) -> Source:
        """Which source its files are cited as."""

    def discover(self) -> Discovery:
        """List the files, always in the same order. Never raises for what is on disk."""

    def changed_since(self, moment: int | None) -> Since | None:
        """What may have changed since the `moment` of a discovery, or of an earlier answer.

        None when only another discovery can tell. Sees every write that was finished before the call.
        """

    def look_at(self, path: str) -> FoundFile | None:
        """Look again at a file that `discover` has listed; None when it would not list it now as it is."""

    def read(self, file: FoundFile) -> tuple[Document, FileState]:
        """Read one of them: the text, and what the file looked like. Raises a PlainmindError."""


class GrowingSource(TextSource, Protocol):
    """Has files that are added to at their end, and reads only what is new of them."""

    def read_on(self, file: FoundFile, known: FileState | None, begin: Mark) -> Iterator[Piece]:
        """Read what follows a mark that was made when the file looked as `known`; else, or if it is another file, all.

        In pieces, each of which can be indexed by itself once those before it are. There is at least one, the last.
        Raises a PlainmindError.
        """

    def messages_after(self, file: FoundFile, begin: Mark) -> int:
        """How many messages follow a mark. Raises a PlainmindError."""
