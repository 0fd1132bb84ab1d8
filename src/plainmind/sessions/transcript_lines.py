"""A transcript read line by line, in pieces that are each worth indexing, from the beginning or from where it was left.

Secrets are hidden in each message before it is cut: half a secret would not be found. The transcript stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from plainmind.base.value import record, replace, value
from plainmind.files.jsonl import RawLine, forwards
from plainmind.notes.source import START, Mark, Trail, Unreadable, hash_of_rest
from plainmind.sessions.entries import Entry, Message, entries_in, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo


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
                yield self._ended(piece, trail, line)
                return
            self._take(piece, line)
            trail.take(line)
            if characters is not None and piece.characters >= characters:
                yield _finished(piece, trail, is_last=False)
                piece = _Gathering([], [], [])
        yield _finished(piece, trail)

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

    def _ended(self, piece: _Gathering, trail: Trail, line: RawLine) -> Lines:
        """End with a line that may still be being written: it has no closing brace, or no newline yet."""
        finished = _finished(piece, trail)
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


def _finished(piece: _Gathering, trail: Trail, *, is_last: bool = True) -> Lines:
    unreadable = Unreadable(piece.damaged, piece.too_long)
    return Lines(
        tuple(piece.texts),
        tuple(piece.numbers),
        tuple(piece.days),
        trail.mark(chunks=0),
        is_last=is_last,
        unreadable=unreadable,
    )
