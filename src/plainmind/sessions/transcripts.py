"""What transcripts say: as documents for an index, one line of text a message, or as a person reads them.

A transcript is added to, and sometimes replaced or cut off. An index that knows how far it has read goes on from there,
if the last bytes before that place are the same; all bytes are compared when the file is another one, or has the same
length and another time.

Secrets are hidden in each message before it is cut: half a secret would not be found. The transcript stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from plainmind.base.errors import NotFound, PathNotAllowed
from plainmind.base.lazy import pattern
from plainmind.base.model import (
    PRIVATE,
    Document,
    Excerpt,
    FileFailure,
    FileState,
    Source,
    sha256_bytes,
    time_to_keep,
)
from plainmind.base.value import record, replace, value
from plainmind.files.jsonl import RawLine, forwards, start_of_line
from plainmind.files.safe_open import Root, check_relative, file_refusal, in_words, name_refusal, printable
from plainmind.files.system import SYSTEM, explain_errors, read_range
from plainmind.notes.discovery import AS_IT_IS, Discovery, FoundFile, Reading, system_reason
from plainmind.notes.source import START, Mark, Trail, Unreadable, begins_alike, ends_alike, hash_of_rest
from plainmind.notes.watcher import ChangeQueue, Since
from plainmind.sessions.entries import MAX_DOCUMENT_BYTES, Entry, Message, entries_in, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo
    from typing import Any, Protocol, TypeAlias

    from plainmind.notes.source import Piece

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

_NEVER = -1  # the time of a file of which there was more to come when it was seen
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
            now.st_size != known.size or seen_ns in {abs(_NEVER), now.st_mtime_ns}
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


FOLDER = "sessions/"
# An archive stays searchable: who resets a conversation, or lets a program tidy up, wants to begin anew, not to forget.
_NAME = pattern(r"[^.].*\.(?P<format>jsonl|json5)(?:\.(?:reset|deleted|archived)\..+)?")
_PACKED = ".zst"
_PLACES = {"": "jsonl", "chats/": "json5", "groups/": "json5"}  # and what is looked for there
_REGISTRIES = frozenset({f"{FOLDER}sessions.json", f"{FOLDER}registry.json5"})
# Some hundred messages: their chunks, terms and vectors take many times the room.
PIECE_CHARACTERS = 250_000


def as_it_is(text: str) -> str:
    """Hide nothing: for transcripts that are public."""
    return text


class Transcripts:
    """The transcripts of one folder, and the archives beside them, cited as `sessions/<file>`.

    They are `*.jsonl`; in the folders `chats` and `groups` also documents `*.json5`, if there is who reads them.
    """

    def __init__(
        self,
        folder: str,
        *,
        redact: Callable[[str], str] = as_it_is,
        reading: Reading = AS_IT_IS,
        scopes: Callable[[], Mapping[str, str]] = dict,
        zone: tzinfo | None = None,
        documents: Documents | None = None,
        piece_characters: int = PIECE_CHARACTERS,
    ) -> None:
        """`redact` gives a copy of a message without its secrets, and `reading` tells how.

        `scopes` tells who may see each file now, by its cited path; one that it does not name is its owner's alone.
        The days of messages begin where the user is: in `zone`, None for the system's. `documents` gives the entries
        of a transcript that is one document.
        """
        self.root = Root(folder)
        self._redact = redact
        self.reading = reading
        self._scopes_now = scopes
        self.zone = zone
        self._documents = documents
        self._piece_characters = piece_characters
        self._scopes: Mapping[str, str] = {}  # as of the latest look
        self._changes = ChangeQueue(lambda: (self.root.real,), matters=_matters)

    @property
    def source(self) -> Source:
        """Which source its files are cited as."""
        return "sessions"

    @property
    def growing(self) -> Transcripts:
        """Itself: a transcript is added to at its end."""
        return self

    def discover(self) -> Discovery:
        """List the transcripts by name. Never raises for what is on disk."""
        look = self._changes.begin()
        moment, complete = None, False
        try:
            found = self._list(look.enter if look else None)
            complete = not found.root_missing
        finally:
            moment = self._changes.end(look, complete=complete)
        self._scopes = {file.path: file.scope for file in found.files}
        return replace(found, moment=moment)

    def changed_since(self, moment: int | None) -> Since | None:
        """What may have changed since a look; None when only another look can tell.

        The registry says who may see a transcript: when it has changed, and with it the scope of one of them, all
        must be looked at.
        """
        since = self._changes.changed_since(moment)
        if since is None or not since.files & _REGISTRIES:
            return since
        now = self._scopes_now()
        if any(now.get(path, PRIVATE) != scope for path, scope in self._scopes.items()):
            return None
        return replace(since, files=since.files - _REGISTRIES)

    def look_at(self, path: str) -> FoundFile | None:
        """Look again at a transcript that was listed; None when it would not be listed now as it is."""
        name = path.removeprefix(FOLDER)
        try:
            status = os.stat(os.path.join(self.root.real, name), follow_symlinks=False)
        except OSError:
            return None
        found = self._found(name, status, self._scopes_now())
        return found if isinstance(found, FoundFile) else None

    def is_surely_gone(self, path: str) -> bool:  # noqa: ARG002
        """Never: conversations are removed by us, who say so."""
        return False

    def locate(self, path: str) -> FoundFile:
        """Find the transcript that a cited path names. Raises PathNotAllowed or NotFound."""
        name = path.removeprefix("./").removeprefix(FOLDER)
        check_relative(name)
        place, slash, last = name.rpartition("/")
        if not _is_transcript(place + slash, last):
            raise PathNotAllowed(
                f"`{printable(path[:200])}` is not a transcript", hint="name one as a search cites it"
            )
        found = self.look_at(FOLDER + name)
        if found is None:
            raise NotFound(
                f"there is no transcript `{printable(path[:200])}`",
                hint="`plainmind sessions list` names them",
            )
        return found

    def read(self, file: FoundFile) -> tuple[Document, FileState]:
        """Read one transcript in one go. Raises PathNotAllowed, NotFound or WorkspaceError, never for what it says."""
        from plainmind.notes.source import START, Extent

        (piece,) = self._pieces(file, None, START, None)
        return piece.document, replace(
            piece.state, hash=str(Extent(piece.end, piece.end, piece.rest, piece.reading))
        )

    def read_on(self, file: FoundFile, known: FileState | None, begin: Mark) -> Iterator[Piece]:
        """Read what follows a mark that was made when the file looked as `known`; else, or if it is another file, all.

        In pieces, each of which can be indexed by itself once those before it are. There is at least one, the last.
        """
        return self._pieces(file, known, begin, self._piece_characters)

    def read_excerpt(
        self, path: str, first_line: int, line_count: int | None, max_chars: int | None
    ) -> Excerpt:
        """Read the messages on lines of a transcript, without secrets."""
        return read_messages(self, path, first_line, line_count, max_chars)

    def messages_after(self, file: FoundFile, begin: Mark) -> int:
        """How many messages follow a mark."""
        with self.open(file) as transcript:
            return transcript.messages(begin)

    @contextmanager
    def open(self, file: FoundFile) -> Iterator[Form]:
        """Open a transcript. Raises PathNotAllowed, NotFound or WorkspaceError."""
        reader = LineReader(redact=self._redact, zone=self.zone)
        fd = file.root.open(file.relative)
        try:
            with explain_errors("read", file.path):
                if "/" in file.relative and self._documents is not None:
                    yield DocumentForm(fd, reader, self._documents)
                else:
                    yield LinesForm(fd, reader)
        finally:
            os.close(fd)

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`: how changes are noticed."""
        return self._changes.describe()

    def close(self) -> None:
        """Let go of what is watched; the source can still be used."""
        self._changes.close()

    def _list(self, enter: Callable[[int, str], None] | None) -> Discovery:
        files: list[FoundFile] = []
        skipped: list[FileFailure] = []
        unseen: list[str] = []
        scopes = (
            self._scopes_now()
        )  # once: to ask whether the registry has changed takes longer than a look at a file
        for place in _PLACES if self._documents else ("",):
            try:
                seen = self._look_in(place, enter, scopes)
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    skipped.append(FileFailure(FOLDER + place if place else ".", system_reason(error)))
                    unseen.append(FOLDER + place.removesuffix("/"))
                if not place:
                    return Discovery((), tuple(skipped), root_missing=True)
                continue
            files += (found for found in seen if isinstance(found, FoundFile))
            skipped += (found for found in seen if isinstance(found, FileFailure))
        return Discovery(tuple(files), tuple(skipped), tuple(unseen))

    def _look_in(
        self, place: str, enter: Callable[[int, str], None] | None, scopes: Mapping[str, str]
    ) -> list[FoundFile | FileFailure]:
        folder = self.root.open_folder(place.removesuffix("/"))
        try:
            if enter is not None:
                enter(folder, FOLDER + place)
            names = (name for name in os.listdir(folder) if _is_transcript(place, name))
            return [self._look(folder, place, name, scopes) for name in sorted(names)]
        finally:
            os.close(folder)

    def _look(self, folder: int, place: str, name: str, scopes: Mapping[str, str]) -> FoundFile | FileFailure:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            return FileFailure(printable(FOLDER + place + name), system_reason(error))
        return self._found(place + name, status, scopes)

    def _found(self, name: str, status: os.stat_result, scopes: Mapping[str, str]) -> FoundFile | FileFailure:
        cited = FOLDER + name
        reason = name_refusal(name) or file_refusal(status)
        if reason is None and name.endswith(_PACKED):
            reason = "packed; `plainmind import` reads it"
        if reason is not None:
            return FileFailure(printable(cited), reason)
        return FoundFile(
            cited,
            status.st_size,
            status.st_mtime_ns,
            status.st_ino,
            status.st_ctime_ns,
            self.root,
            name,
            scopes.get(cited, PRIVATE),
            self.reading,
        )

    def _pieces(
        self, file: FoundFile, known: FileState | None, begin: Mark, characters: int | None
    ) -> Iterator[Piece]:
        with self.open(file) as transcript:
            for begun, lines in transcript.pieces(known, begin, characters):
                yield self._piece(file, transcript.status, begun, lines)

    def _piece(self, file: FoundFile, status: os.stat_result, begin: Mark, lines: Lines) -> Piece:
        from plainmind.notes.source import Piece

        return Piece(
            Document(
                file.path,
                self.source,
                "\n".join(lines.texts),
                line_map=lines.numbers,
                days=lines.days,
            ),
            FileState(
                file.path,
                self.source,
                "",
                # As long as there is more to come it looks like a file that has grown since.
                status.st_size if lines.is_last else lines.end.offset,
                time_to_keep(status.st_mtime_ns) if lines.is_last else _NEVER,
                status.st_ino,
                file.scope,
            ),
            begin,
            lines.end,
            lines.rest,
            lines.is_last,
            lines.unreadable,
            self.reading,
        )


def _is_transcript(place: str, name: str) -> bool:
    found = _NAME.fullmatch(name)
    return found is not None and found["format"] == _PLACES.get(place)


def _matters(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) or FOLDER + name in _REGISTRIES
