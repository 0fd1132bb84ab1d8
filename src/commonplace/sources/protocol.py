"""What a place that text comes from must promise."""

from __future__ import annotations

from typing import Protocol

from commonplace.model import Document, FileState, Source
from commonplace.sources.discovery import Discovery, FoundFile
from commonplace.sources.noticing import Since


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
        """Read one of them: the text, and what the file looked like. Raises a CommonplaceError."""
