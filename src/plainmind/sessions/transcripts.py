"""Transcripts of conversations as documents: one line of text a message, each leading back to its JSONL line.

A transcript is added to, and sometimes replaced or cut off. An index that knows how far it has read goes on from there,
if the last bytes before that place are the same; all bytes are compared when the file is another one, or has the same
length and another time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plainmind.base.errors import NotFound, PathNotAllowed
from plainmind.base.lazy import pattern
from plainmind.base.model import PRIVATE, Document, Excerpt, FileFailure, FileState, Source, time_to_keep
from plainmind.base.value import replace
from plainmind.files.safe_open import Root, check_relative, file_refusal, name_refusal, printable
from plainmind.files.system import explain_errors
from plainmind.notes.change_queue import ChangeQueue, Since
from plainmind.notes.discovery import AS_IT_IS, Discovery, FoundFile, Reading, system_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo
    from typing import Any

    from plainmind.notes.source import Mark, Piece
    from plainmind.sessions.transcript_reader import Documents, Form, Lines

FOLDER = "sessions/"
# An archive stays searchable: who resets a conversation, or lets a program tidy up, wants to begin anew, not to forget.
_NAME = pattern(r"[^.].*\.(?P<format>jsonl|json5)(?:\.(?:reset|deleted|archived)\..+)?")
_PACKED = ".zst"
_PLACES = {"": "jsonl", "chats/": "json5", "groups/": "json5"}  # and what is looked for there
_REGISTRIES = frozenset({f"{FOLDER}sessions.json", f"{FOLDER}registry.json5"})
_NEVER = -1
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
        from plainmind.sessions.transcript_reader import read_messages

        return read_messages(self, path, first_line, line_count, max_chars)

    def messages_after(self, file: FoundFile, begin: Mark) -> int:
        """How many messages follow a mark."""
        with self.open(file) as transcript:
            return transcript.messages(begin)

    @contextmanager
    def open(self, file: FoundFile) -> Iterator[Form]:
        """Open a transcript. Raises PathNotAllowed, NotFound or WorkspaceError."""
        from plainmind.sessions.transcript_reader import DocumentForm, LineReader, LinesForm

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
