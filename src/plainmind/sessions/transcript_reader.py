"""What transcripts say: read in pieces for an index, or as a person reads them, from lines and from documents alike.

Secrets are hidden in each message before it is cut: half a secret would not be found. The transcript stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from plainmind.base.errors import PathNotAllowed
from plainmind.base.model import Excerpt, FileState, sha256_bytes
from plainmind.base.value import record, replace, value
from plainmind.files.jsonl import RawLine, forwards, start_of_line
from plainmind.files.safe_open import in_words
from plainmind.files.system import SYSTEM, read_range
from plainmind.notes.source import START, Mark, Trail, Unreadable, begins_alike, ends_alike, hash_of_rest
from plainmind.sessions.entries import Entry, Message, entries_in, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo
    from typing import Protocol, TypeAlias

    from plainmind.sessions.transcripts import Transcripts

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
_BETWEEN = "\n\n"  # two messages


@value
class Lines:
    """What some lines of a transcript say. `numbers[i]` is the JSONL line of text i, `days[i]` its day."""

    texts: tuple[str, ...]
    numbers: tuple[int, ...]
    days: tuple[str | None, ...]
    end: Mark  # behind the last finished line; its `chunks` are none yet
    rest: str = ""  # hash of an unfinished last line, if it says something: it is among the texts
    is_last: bool = True
    unreadable: Unreadable = Unreadable()


@value
class Spoken:
    """The messages of one line, mostly one or none."""

    number: int
    messages: tuple[Message, ...]
    is_last: bool


@record
class _Gathering:
    texts: list[str]
    numbers: list[int]
    days: list[str | None]
    characters: int = 0
    damaged: int = 0
    too_long: int = 0


class LineReader:
    """Flattens lines: `User: …` and `Assistant: …`, one text a message; total, whatever the bytes are."""

    def __init__(self, *, redact: Callable[[str], str], zone: tzinfo | None) -> None:
        """`redact` gives a copy of a message without its secrets; `zone` is where the user's days begin."""
        self._redact = redact
        self._zone = zone

    def pieces(
        self, fd: int, *, stop: int, begin: Mark = START, characters: int | None = None
    ) -> Iterator[Lines]:
        """Read an open file from a mark up to the offset `stop`, so many characters at a time, or all at once.

        There is always a last piece, which may be empty.

        A last line without newline that says nothing yet is left for the next time.
        """
        trail = Trail(fd, begin, expected_bytes=stop - begin.offset)
        piece = _Gathering([], [], [])
        for line in forwards(fd, start=begin.offset, number=begin.lines + 1, stop=stop):
            if not line.is_complete:
                yield self._end(piece, trail, line)
                return
            self._take(piece, line)
            trail.take(line)
            if characters is not None and piece.characters >= characters:
                yield _finish(piece, trail, is_last=False)
                piece = _Gathering([], [], [])
        yield _finish(piece, trail)

    def messages(self, fd: int, *, stop: int, begin: Mark = START) -> int:
        """How many messages there are behind a mark."""
        lines = forwards(fd, start=begin.offset, stop=stop)
        return sum(message_of(entry) is not None for line in lines for entry in entries_in(line.data).entries)

    def of_entries(self, entries: Sequence[Entry], end: Mark) -> Lines:
        """What the entries of a document say, each of which counts as a line."""
        piece = _Gathering([], [], [])
        for number, entry in enumerate(entries, 1):
            self._add(piece, number, (entry,))
        return Lines(tuple(piece.texts), tuple(piece.numbers), tuple(piece.days), end)

    def spoken(
        self, fd: int, *, start: int, number: int, stop: int, redacted: bool = True
    ) -> Iterator[Spoken]:
        """What each line says from an offset on, where the line with this number begins."""
        for line in forwards(fd, start=start, number=number, stop=stop):
            messages = self.messages_of(entries_in(line.data).entries, redacted=redacted)
            yield Spoken(line.number, messages, is_last=line.end >= stop)

    def messages_of(self, entries: Iterable[Entry], *, redacted: bool = True) -> tuple[Message, ...]:
        """What was said in entries, as it was said but for secrets."""
        messages = filter(None, map(message_of, entries))
        # While a message still has its own lines: those of a private key tell what they are.
        return tuple(replace(each, text=self._redact(each.text)) if redacted else each for each in messages)

    def _take(self, piece: _Gathering, line: RawLine) -> bool:
        """Add what a line says; whether that is anything."""
        found = entries_in(line.data)
        piece.too_long += line.is_too_long
        piece.damaged += found.is_damaged and not found.entries
        return self._add(piece, line.number, found.entries)

    def _add(self, piece: _Gathering, number: int, entries: Iterable[Entry]) -> bool:
        messages = self.messages_of(entries)
        for message in messages:
            text = message.line
            piece.texts.append(text)
            piece.numbers.append(number)
            piece.days.append(self._day(message.time_ms))
            piece.characters += len(text)
        return bool(messages)

    def _end(self, piece: _Gathering, trail: Trail, line: RawLine) -> Lines:
        """End with a line that may still be being written: it has no closing brace, or no newline yet."""
        finished = _finish(piece, trail)
        rest = _Gathering([], [], [])
        if not self._take(rest, line):
            return finished
        return replace(
            finished,
            texts=(*finished.texts, *rest.texts),
            numbers=(*finished.numbers, *rest.numbers),
            days=(*finished.days, *rest.days),
            rest=hash_of_rest(line.data),
        )

    def _day(self, time_ms: int | None) -> str | None:
        moment = None if time_ms is None else local_minute(time_ms, self._zone)
        return moment and moment[:10]


def local_minute(time_ms: int, zone: tzinfo | None) -> str | None:
    """When something was said, where the user is, such as `2026-02-10 09:31`; None for times that no calendar has."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, zone).isoformat(" ", "minutes")[:16]
    except (OverflowError, ValueError, OSError):
        return None  # the last hours of the year 9999, east of Greenwich


def _finish(piece: _Gathering, trail: Trail, *, is_last: bool = True) -> Lines:
    unreadable = Unreadable(piece.damaged, piece.too_long)
    return Lines(
        tuple(piece.texts),
        tuple(piece.numbers),
        tuple(piece.days),
        trail.mark(chunks=0),
        is_last=is_last,
        unreadable=unreadable,
    )


# --- the two forms: lines that are added to, and a document that is written anew each time ---


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
        if is_added_to:
            return ends_alike(self._fd, mark)
        return begins_alike(self._fd, mark)


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


# --- part of a transcript as a person reads it: who spoke, when, and what was said ---


def read_messages(
    transcripts: Transcripts,
    path: str,
    first_line: int,
    line_count: int | None,
    max_chars: int | None,
    *,
    redacted: bool = True,
) -> Excerpt:
    """Read the messages on lines of a transcript, counted as they stand in the file.

    Lines without a message are passed over. Secrets are hidden as they are in the index, unless asked otherwise.
    `max_chars` drops whole lines at the end; only what a first line says alone is cut. Raises PathNotAllowed, NotFound
    or WorkspaceError.
    """
    file = transcripts.locate(path)
    shown: list[str] = []
    left = max_chars
    next_line = first_line
    goes_on = False
    with transcripts.open(file) as transcript:
        for line in transcript.spoken(first_line, redacted=redacted):
            text = _BETWEEN.join(_show(message, transcripts.zone) for message in line.messages)
            is_too_much = left is not None and len(text) > left and bool(shown and text)
            is_past = line_count is not None and line.number >= first_line + line_count
            goes_on = is_too_much or is_past or not line.is_last
            if is_too_much or is_past:
                break
            next_line = line.number + 1
            if text:
                shown.append(text[:left])
                left = None if left is None else left - len(text) - len(_BETWEEN)
    is_cut = left is not None and len(shown) == 1 and left < -len(_BETWEEN)
    return Excerpt(
        file.path,
        _BETWEEN.join(shown),
        first_line,
        next_line - first_line,
        truncated=goes_on or is_cut,
        next_line=next_line if goes_on else None,
    )


def _show(message: Message, zone: tzinfo | None) -> str:
    moment = None if message.time_ms is None else local_minute(message.time_ms, zone)
    return f"{message.speaker}{f' ({moment})' if moment else ''}: {message.text.strip()}"
