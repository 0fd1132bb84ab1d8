"""The two forms of a transcript, read alike: lines that are added to, and a document that is written anew each time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from plainmind.base.errors import PathNotAllowed
from plainmind.base.model import FileState, sha256_bytes
from plainmind.files.jsonl import start_of_line
from plainmind.files.safe_open import in_words
from plainmind.files.system import SYSTEM, read_range
from plainmind.notes.source import START, Mark, begins_alike, ends_alike
from plainmind.sessions.entries import Entry, message_of
from plainmind.sessions.transcript_lines import LineReader, Lines, Spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeAlias

    class Form(Protocol):
        """An open transcript. Lines are counted from 1; an entry of a document counts as a line."""

        status: os.stat_result  # of the file, before anything of it was read

        def pieces(
            self, known: FileState | None, begin: Mark, characters: int | None
        ) -> Iterator[tuple[Mark, Lines]]:
            """Read what follows a mark that was made when the file looked as `known`, and from where that is.

            From the beginning when the file is not as it was up to the mark; so many characters at a time.
            """

        def messages(self, begin: Mark) -> int:
            """How many messages follow a mark."""

        def spoken(self, first: int, *, redacted: bool) -> Iterator[Spoken]:
            """What each line says from this one on."""


# Gives the entries of a document in their order, whatever its bytes are.
Documents: TypeAlias = "Callable[[bytes], Sequence[Entry]]"

MAX_DOCUMENT_BYTES = 64 << 20
_NEVER = 1  # what was seen of a file of which there was more to come
_DIGEST_CHARS = 32


class LinesForm:
    """A JSONL file."""

    def __init__(self, fd: int, reader: LineReader) -> None:
        self._fd = fd
        self._reader = reader
        self.status = os.fstat(fd)

    def pieces(
        self, known: FileState | None, begin: Mark, characters: int | None
    ) -> Iterator[tuple[Mark, Lines]]:
        """Read on from a mark, if what stands before it is the same."""
        if not self._is_same(known, begin):
            begin = START
        stop = self.status.st_size
        for lines in self._reader.pieces(self._fd, stop=stop, begin=begin, characters=characters):
            yield begin, lines
            begin = lines.end

    def messages(self, begin: Mark) -> int:
        """How many messages follow a mark."""
        return self._reader.messages(self._fd, stop=self.status.st_size, begin=begin)

    def spoken(self, first: int, *, redacted: bool) -> Iterator[Spoken]:
        """What each line says from this one on."""
        stop = self.status.st_size
        start = start_of_line(self._fd, first, stop=stop)
        if start is None:
            return iter(())
        return self._reader.spoken(self._fd, start=start, number=first, stop=stop, redacted=redacted)

    def _is_same(self, known: FileState | None, mark: Mark) -> bool:
        """Whether the file is as it was up to a mark: by its last bytes if it was added to, else by all of them."""
        now = self.status
        if known is None or now.st_size < mark.offset:
            return False
        # Below zero it proves nothing to find the same time again; but another one does.
        seen_ns = abs(known.mtime_ns)
        is_added_to = now.st_ino == known.inode and (
            now.st_size != known.size or seen_ns in {_NEVER, now.st_mtime_ns}
        )
        return (ends_alike if is_added_to else begins_alike)(self._fd, mark)


class DocumentForm:
    """One document. It is read whole, or left alone when it is the one that is known."""

    def __init__(self, fd: int, reader: LineReader, documents: Documents) -> None:
        """Read the file. Raises PathNotAllowed for one that is too large for that."""
        self.status = os.fstat(fd)
        size = self.status.st_size
        if size > MAX_DOCUMENT_BYTES:
            raise PathNotAllowed(
                f"a transcript of {in_words(size)} cannot be read whole",
                hint="keep long conversations in the format `jsonl`, which is read piece by piece",
            )
        self._data = read_range(SYSTEM, fd, 0, size)
        self._reader = reader
        self._documents = documents

    def pieces(
        self,
        known: FileState | None,  # noqa: ARG002 (what the file looked like proves nothing here)
        begin: Mark,
        characters: int | None,  # noqa: ARG002 (it has been read as a whole already)
    ) -> Iterator[tuple[Mark, Lines]]:
        """Give everything that a document says, or nothing if a mark was made of the same one."""
        digest = sha256_bytes(self._data)[:_DIGEST_CHARS]
        if begin.chain == digest:
            yield begin, Lines((), (), (), begin)
            return
        entries = self._documents(self._data)
        yield START, self._reader.of_entries(entries, Mark(len(self._data), len(entries), 0, digest))

    def messages(self, begin: Mark) -> int:
        """How many messages follow as many entries as a mark has."""
        return sum(message_of(entry) is not None for entry in self._documents(self._data)[begin.lines :])

    def spoken(self, first: int, *, redacted: bool) -> Iterator[Spoken]:
        """What each entry says from this one on."""
        entries = self._documents(self._data)
        for number, entry in enumerate(entries[first - 1 :], first):
            messages = self._reader.messages_of((entry,), redacted=redacted)
            yield Spoken(number, messages, is_last=number == len(entries))
