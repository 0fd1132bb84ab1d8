"""What a place that text comes from must promise."""

from __future__ import annotations

from typing import Protocol

from commonplace.model import Document, FileState, Source
from commonplace.sources.discovery import Discovery, FoundFile


class TextSource(Protocol):
    """Lists files cheaply and reads them one at a time."""

    @property
    def source(self) -> Source:
        """Which source its files are cited as."""

    def discover(self) -> Discovery:
        """List the files, always in the same order. Never raises for what is on disk."""

    def read(self, file: FoundFile) -> tuple[Document, FileState]:
        """Read one of them: the text, and what the file looked like. Raises a CommonplaceError."""
