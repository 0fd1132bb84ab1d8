"""What a transcript promises, whichever of the two formats keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plainmind.base.value import record, value
from plainmind.text.transcripts import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

FORMATS = ("jsonl", "json5")


@value
class Placed:
    """One entry and where it stands; without entry it is a line that cannot be read, or not wholly."""

    entry: Entry | None
    number: int  # the line of a JSONL file or the position in a document, from 1; 0 when read backwards
    start: int  # places are offsets in a JSONL file, and counts of entries in a document
    end: int
    raw: bytes = b""  # the bytes of a line that cannot be read


@record
class Draft:
    """An entry on its way into a transcript, complete except for the entry that it follows."""

    entry: Entry  # with `id` and `timestamp`; with `parentId` only if the caller has chosen it
    is_retry: bool = False  # the id was given by the caller: an earlier try may have added it
    look_back_bytes: int | None = None  # in how many of the last bytes; None: anywhere
    already_there: bool = False


class Transcript(Protocol):
    """Keeps the entries of one session in their order; safe to share between threads and processes."""

    path: str
    format: str

    def create(self, header: Entry) -> None:
        """Make the file, which must not exist, with its header."""

    def header(self) -> Entry | None:
        """The header, or None when the first line is not one, or not readable. Raises NotFound."""

    def add(self, drafts: Sequence[Draft]) -> None:
        """Add entries behind the last one, durably, all or none. Raises NotFound when the file is gone."""

    def entries(self, after: int = 0) -> Iterator[Placed]:
        """Give what stands behind a place, the header left out, unreadable lines included."""

    def backwards(self, before: int | None = None) -> Iterator[Placed]:
        """Give what stands before a place, or everything, last one first."""

    def countable(self, after: int, before: int) -> Iterator[Entry]:
        """Give at least those entries between two places that change a counter (`usage.py`)."""

    def end(self) -> int:
        """The place behind the last entry. Raises NotFound."""

    def updated_ms(self) -> int:
        """When the file was changed last. Raises NotFound."""

    def rewrite(self, header: Entry, entries: Iterator[Entry]) -> None:
        """Put a new file in its place, all or nothing; for a fork and for a change of format."""
