"""What a place that text comes from promises, and how far an index has read a file that grows at its end."""

from __future__ import annotations

from collections.abc import Iterator

from plainmind.base.model import Document, FileState, Source, sha256_bytes
from plainmind.base.value import value
from plainmind.files.jsonl import RawLine, forwards
from plainmind.files.system import SYSTEM, read_range
from plainmind.notes.discovery import AS_IT_IS, Discovery, FoundFile, Reading, reading_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from plainmind.notes.watcher import Since
else:
    Protocol = object

NO_TEXT = "it holds no text"  # why nothing is found of a file that is listed
TAIL_BYTES = 4_096
_MOST_RECENT_BYTES = 1 << 16
_DIGEST_CHARS = 32
_LARGE_BYTES = 1 << 20
_FIELDS = 5


@value
class Mark:
    """A place in a transcript behind a finished line."""

    offset: int = 0
    lines: int = 0  # up to there
    chunks: int = 0  # made of them
    chain: str = ""  # of every line: its hash, made with the hash of those before it
    tail: str = ""  # hash of the last bytes before the offset

    def __str__(self) -> str:
        return f"{self.offset}/{self.lines}/{self.chunks}/{self.chain}/{self.tail}"


START = Mark()


@value
class Extent:
    """What an index holds of a transcript: up to `whole` all that it should, up to `words` what words can find.

    It stands in the index in place of the file's hash, as one line of text. It depends on the file and how that is cut,
    not on the pieces in which it was read: an index that grew is equal to one that was made at once.
    """

    whole: Mark = START
    words: Mark = START
    rest: str = ""  # hash of an unfinished last line that says something already
    reading: Reading = AS_IT_IS  # of the whole text

    def __str__(self) -> str:
        words = "" if self.words == self.whole else f"+{self.words}"
        return f"{self.whole}{words}{'~' if self.rest else ''}{self.rest}{self.reading}"


@value
class Unreadable:
    """How many lines say nothing because they could not be read."""

    damaged: int = 0  # no JSON
    too_long: int = 0


@value
class Piece:
    """Some lines of a transcript, and how far an index is that has them all."""

    document: Document
    state: FileState  # without a hash: what becomes of it depends on the number of chunks
    begin: Mark
    end: Mark  # without the number of chunks
    rest: str  # hash of what stands behind the end and is part of the document all the same
    is_last: bool
    unreadable: Unreadable
    reading: Reading


class TextSource(Protocol):
    """Lists files cheaply and reads them one at a time."""

    @property
    def source(self) -> Source:
        """Which source its files are cited as."""

    @property
    def growing(self) -> GrowingSource | None:
        """The same source, if its files are added to at their end; None when each is read whole."""

    def discover(self) -> Discovery:
        """List the files, always in the same order. Never raises for what is on disk."""

    def changed_since(self, moment: int | None) -> Since | None:
        """What may have changed since the `moment` of a discovery, or of an earlier answer.

        None when only another discovery can tell. Sees every write that was finished before the call.
        """

    def look_at(self, path: str) -> FoundFile | None:
        """Look again at a file that `discover` has listed; None when it would not list it now as it is."""

    def is_surely_gone(self, path: str) -> bool:
        """Whether a file that `discover` no longer lists was removed; False when it may only be unmounted."""

    def read(self, file: FoundFile) -> tuple[Document, FileState]:
        """Read one of them: the text, and what the file looked like. Raises a PlainmindError."""

    def locate(self, path: str) -> FoundFile:
        """Find the file that a cited path names, only if `discover` lists it. Raises a PlainmindError."""

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`: how changes are noticed."""

    def close(self) -> None:
        """Let go of what is watched; the source can still be used."""


class GrowingSource(TextSource, Protocol):
    """Has files that are added to at their end, and reads only what is new of them."""

    def read_on(self, file: FoundFile, known: FileState | None, begin: Mark) -> Iterator[Piece]:
        """Read what follows a mark that was made when the file looked as `known`; else, or if it is another file, all.

        In pieces, each of which can be indexed by itself once those before it are. There is at least one, the last.
        Raises a PlainmindError.
        """

    def messages_after(self, file: FoundFile, begin: Mark) -> int:
        """How many messages follow a mark. Raises a PlainmindError."""


# --- how far a file is indexed ---


def extent_of(written: str) -> Extent | None:
    """Read what `str` of an extent wrote; None for anything else, such as the hash of a file read in one go."""
    marks, _, rest = written.partition("@")[0].partition("~")
    whole, _, words = marks.partition("+")
    first = _mark_of(whole)
    second = _mark_of(words) if words else first
    return None if first is None or second is None else Extent(first, second, rest, reading_in(written))


def _mark_of(written: str) -> Mark | None:
    fields = written.split("/")
    if len(fields) != _FIELDS or not all(map(str.isdecimal, fields[:3])):
        return None
    return Mark(int(fields[0]), int(fields[1]), int(fields[2]), fields[3], fields[4])


class Trail:
    """Makes marks of the lines of an open file that it is shown, one after the other."""

    def __init__(self, fd: int, begin: Mark = START, *, expected_bytes: int = 0) -> None:
        self._fd = fd
        self._begin = begin
        self._offset = begin.offset
        self._lines = begin.lines
        self._chain = begin.chain
        self._recent = [_bytes_before(fd, begin.offset)]
        self._recent_bytes = 0
        self._hash = _hash_for(expected_bytes)

    def take(self, line: RawLine) -> None:
        """Go over one finished line. One that is too long to be read counts by its length: nothing of it is indexed."""
        data = str(line.end - line.start).encode() if line.is_too_long else line.data
        self._chain = self._hash(self._chain.encode() + data)[:_DIGEST_CHARS]
        self._lines += 1
        self._offset = line.end
        self._remember(_bytes_before(self._fd, line.end) if line.is_too_long else data + b"\n")

    def mark(self, chunks: int) -> Mark:
        """Where it is, and how many chunks there are up to here."""
        tail = b"".join(self._recent)[-TAIL_BYTES:]
        return Mark(self._offset, self._lines, chunks, self._chain, _hash_of(tail)) if self._lines else START

    def _remember(self, data: bytes) -> None:
        self._recent.append(data)
        self._recent_bytes += len(data)
        if self._recent_bytes > _MOST_RECENT_BYTES:
            self._recent = [b"".join(self._recent)[-TAIL_BYTES:]]
            self._recent_bytes = 0


def ends_alike(fd: int, mark: Mark) -> bool:
    """Whether a file has the same bytes before a mark as when the mark was made."""
    before = _bytes_before(fd, mark.offset)
    return len(before) == min(mark.offset, TAIL_BYTES) and _hash_of(before) == mark.tail


def begins_alike(fd: int, mark: Mark) -> bool:
    """Whether a file begins with exactly the lines of a mark; every byte of them is read."""
    trail = Trail(fd, expected_bytes=mark.offset)
    for line in forwards(fd, stop=mark.offset):
        if line.is_complete:
            trail.take(line)
    return trail.mark(mark.chunks) == mark


def hash_of_rest(data: bytes) -> str:
    """The hash of an unfinished line."""
    return _hash_of(data)


def _bytes_before(fd: int, offset: int) -> bytes:
    return read_range(SYSTEM, fd, max(0, offset - TAIL_BYTES), offset)


def _hash_of(data: bytes) -> str:
    return sha256_bytes(data)[:_DIGEST_CHARS]


def _hash_for(expected_bytes: int) -> Callable[[bytes], str]:
    """Choose the function that hashes lines: OpenSSL is five times as fast and takes 2 ms to load."""
    if expected_bytes <= _LARGE_BYTES:
        return sha256_bytes
    import hashlib

    return lambda data: hashlib.sha256(data).hexdigest()
