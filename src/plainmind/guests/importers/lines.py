"""Originals that are JSONL: read on from where the last reading ended, in bounded memory, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plainmind.base.model import sha256_bytes
from plainmind.base.value import value
from plainmind.files.jsonl import RawLine, forwards, open_plain_file
from plainmind.files.system import SYSTEM, read_range
from plainmind.guests.importers.compressed import decompressed
from plainmind.guests.importers.protocol import About, Piece, Place
from plainmind.sessions.entries import Entry, entries_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# What is found in a line, its bytes and its number -> our entries.
Translate: TypeAlias = Callable[[Entry, bytes, int], "tuple[Entry, ...]"]

UNREADABLE = "not a JSON object"
PARTLY_READABLE = "damaged; what could be read of it was taken"
TOO_LONG = "longer than 16 MB"
_TAIL_BYTES = 1024
_FIRST_LINES = 64


@value
class JsonlConversation:
    """A file that is one conversation."""

    path: str
    about: About
    translation: Callable[[], Translate]  # a new one for each reading: some remember what they have read

    def still_has(self, place: Place) -> bool:
        """Whether the last line before a place is the same."""
        if place.at == 0:
            return True
        with _readable(self.path) as fd:
            return SYSTEM.fstat(fd).st_size >= place.at and _tail_before(fd, place.at) == place.tail

    def pieces(self, after: Place) -> Iterator[Piece]:
        """Read the lines behind a place."""
        with _readable(self.path) as fd:
            translate = self.translation()
            for line in forwards(fd, start=after.at, number=after.number + 1):
                piece = _piece(fd, line, translate)
                if piece is not None:
                    yield piece


def first_entries(path: str, most: int = _FIRST_LINES) -> list[Entry]:
    """Read what stands in the first lines. Raises PlainmindError when the file cannot be read."""
    found: list[Entry] = []
    with _readable(path) as fd:
        for line in forwards(fd):
            found += entries_in(line.data).entries
            if line.number >= most:
                break
    return found


def _piece(fd: int, line: RawLine, translate: Translate) -> Piece | None:
    read = entries_in(line.data)
    if not line.is_complete and not read.entries:
        return None  # it is still being written
    # A last line without newline is read again next time, with its newline.
    place = _place(fd, line) if line.is_complete else _place_before(fd, line)
    entries = tuple(
        entry
        for position, found in enumerate(read.entries)
        for entry in _translated(translate, found, line, position)
    )
    damage = TOO_LONG if line.is_too_long else None
    if read.is_damaged:
        damage = PARTLY_READABLE if read.entries else UNREADABLE
    return Piece(line.number, place, entries, damage)


def _translated(translate: Translate, found: Entry, line: RawLine, position: int) -> tuple[Entry, ...]:
    """Translate; the second of two entries in a line whose newline was lost must not get the id of the first."""
    raw = line.data if position == 0 else b"%d:%s" % (position, line.data)
    return translate(found, raw, line.number)


def _place(fd: int, line: RawLine) -> Place:
    tail = _tail_before(fd, line.end) if line.is_too_long else _tail_of(line.data)
    return Place(line.end, line.number, tail)


def _place_before(fd: int, line: RawLine) -> Place:
    return Place(line.start, line.number - 1, _tail_before(fd, line.start)) if line.start else Place()


def _tail_of(line: bytes) -> str:
    """Name the last bytes of a line."""
    return sha256_bytes(line[-_TAIL_BYTES:])[:16]


def _tail_before(fd: int, at: int) -> str:
    """Name the last bytes of the line that ends at a place; empty when none ends there."""
    before = read_range(SYSTEM, fd, max(0, at - 1 - _TAIL_BYTES), at)
    return _tail_of(before[:-1].rpartition(b"\n")[2]) if before.endswith(b"\n") else ""


@contextmanager
def _readable(path: str) -> Iterator[int]:
    """Open a transcript; a compressed one is unpacked into a file without a name."""
    with open_plain_file(path) as fd:
        if not path.endswith(".zst"):
            yield fd
            return
        with decompressed(fd) as plain:
            yield plain
