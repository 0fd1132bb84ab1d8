"""Imports the conversations of other programs: again and again, with nothing doubled and no original touched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, islice

from plainmind.agent.recall import without_recalled
from plainmind.base.errors import (
    ConfigError,
    LockTimeout,
    NotFound,
    PathNotAllowed,
    PlainmindError,
    StorageFailure,
)
from plainmind.base.lazy import find_by_name
from plainmind.base.model import FileFailure, Progress, ProgressCallback
from plainmind.base.value import field, record, value
from plainmind.files.append import Clock
from plainmind.files.jsonl import MAX_LINE_BYTES, open_plain_file
from plainmind.files.system import SYSTEM, System
from plainmind.guests.importers.originals import (
    EXPORTED_BY,
    FROM_WHERE,
    Conversation,
    NothingToTake,
    Original,
    Reader,
    ReadPiece,
    ReadPosition,
    clean_entry,
    find_originals,
    fingerprint,
    line_of_origin,
    with_origin,
)
from plainmind.guests.importers.target import ReadFile, Shelves, Target
from plainmind.sessions.entries import (
    VERSION,
    Draft,
    Entry,
    Transcript,
    id_of,
    line_of,
    marks_of,
    message_of,
    time_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_PAUSE_S = 2.0  # between two looks at the files, at the least


@value
class Imported:
    """One session that was begun or continued."""

    key: str
    id: str
    agent: str | None  # whose store it went to; None: the one that was chosen
    path: str  # of our copy
    original: str
    is_new: bool
    entries: int  # added
    messages: int  # of these, what a person or a model said, and what tools answered


@value
class CopiedNote:
    """One note that was copied, or copied again."""

    path: str  # as cited
    original: str
    is_new: bool


@value
class Damage:
    """A line that could not be read, or not wholly; the others were still copied."""

    path: str
    line: int
    reason: str


@value
class ImportReport:
    """The result of an import; of a rehearsal, what it would be."""

    program: str
    imported: tuple[Imported, ...] = ()
    unchanged: int = 0  # originals that have nothing new
    without_messages: int = 0  # conversations in which nothing was said
    damaged: tuple[Damage, ...] = ()  # the first of them, by name
    damaged_count: int = 0
    failed: tuple[FileFailure, ...] = ()  # originals that could not be read at all
    left_out: tuple[FileFailure, ...] = ()  # what was archived or deleted here since
    empty: tuple[FileFailure, ...] = ()  # originals that hold no conversation, and what they are instead
    exporters: tuple[str, ...] = ()  # whose exports they were, where that can be told
    is_rehearsal: bool = False
    notes: tuple[CopiedNote, ...] = ()  # where notes are imported, and no conversations

    @property
    def sessions_begun(self) -> int:
        """How many sessions are new."""
        return sum(row.is_new for row in self.imported)

    @property
    def messages(self) -> int:
        """How many messages were added."""
        return sum(row.messages for row in self.imported)


_MOST_NAMED = 200


@record
class Tally:
    """The report while it is being gathered."""

    imported: list[Imported]
    damaged: list[Damage]
    failed: list[FileFailure]
    left_out: list[FileFailure]
    empty: list[FileFailure] = field(default_factory=list)
    exporters: dict[str, None] = field(default_factory=dict)
    damaged_count: int = 0
    unchanged: int = 0
    without_messages: int = 0

    def damage(self, path: str, line: int, reason: str) -> None:
        """Count a line that could not be read, and name it if it is among the first."""
        self.damaged_count += 1
        if len(self.damaged) < _MOST_NAMED:
            self.damaged.append(Damage(path, line, reason))

    def report(self, program: str, *, is_rehearsal: bool) -> ImportReport:
        """Say what was done."""
        return ImportReport(
            program,
            tuple(self.imported),
            self.unchanged,
            self.without_messages,
            tuple(self.damaged),
            self.damaged_count,
            tuple(self.failed),
            tuple(self.left_out),
            tuple(self.empty),
            tuple(self.exporters),
            is_rehearsal,
        )


# --- one conversation on its way: begun whole, or continued with what is new ---

TOO_LONG = "too long to be kept: more than 16 MB"
_ENTRIES_A_WRITE = 256
_TITLE_CHARS = 80

# The number of a line, and what is wrong with it.
NoteDamage: TypeAlias = Callable[[int, str], None]
# What may be kept of a text.
Clean: TypeAlias = Callable[[str], str]


@record
class SessionCopy:
    """One conversation on its way: what is copied of it, and what is learned meanwhile."""

    conversation: Conversation
    file: str  # the name of the original
    note_damage: NoteDamage
    place: ReadPosition
    clean: Clean
    entries: int = 0
    messages: int = 0
    title: str = ""
    first_words: str = ""
    latest_ms: int = 0
    is_curable: bool = False

    def fresh(self, known: Iterable[str]) -> Iterator[Entry]:
        """Read on, and give the entries that are not known yet."""
        have = set(known)
        here: set[str] = set()
        for piece in self.conversation.pieces(self.place):
            self._note(piece)
            for given in piece.entries:
                entry = given
                if given["id"] in here:  # two lines of the original have the same id, and neither may be lost
                    entry = given | {"id": f"{given['id']}~{piece.number}"}
                here.add(entry["id"])
                if entry["id"] not in have:
                    cleaned = clean_entry(entry, self.clean)
                    told = next((mark for mark in marks_of(cleaned) if mark in have), None)
                    if told is not None:  # a hook has kept it: once, should the same be said again
                        have.discard(told)
                        continue
                    yield from self._keep(with_origin(cleaned, self.file, piece.number), piece.number)

    def rehearse(self, known: Iterable[str]) -> list[str]:
        """Read on, and only count; the ids that are new."""
        return [entry["id"] for entry in self.fresh(known)]

    @property
    def name(self) -> str:
        """What a person would call the conversation."""
        return self.title or self.first_words

    def _note(self, piece: ReadPiece) -> None:
        self.is_curable = self.is_curable or piece.is_curable
        self.place = piece.place
        if piece.damage is not None:
            self.note_damage(piece.number, piece.damage)

    def _keep(self, entry: Entry, number: int) -> Iterator[Entry]:
        if len(line_of(entry, is_copy=True)) > MAX_LINE_BYTES:
            self.note_damage(number, TOO_LONG)
            return
        self.entries += 1
        self.messages += entry["type"] == "message"
        self.latest_ms = max(self.latest_ms, time_of(entry) or 0)
        if entry["type"] == "session_info" and isinstance(entry.get("name"), str):
            self.title = entry["name"]
        spoken = message_of(entry) if not self.first_words else None
        if spoken is not None and spoken.speaker == "User":
            self.first_words = _title(spoken.text)
        yield entry


def _title(text: str) -> str:
    """The first words of a text, as many as a line of a list has room for."""
    words = " ".join(text[: 4 * _TITLE_CHARS].split())
    if len(words) <= _TITLE_CHARS:
        return words
    kept = words[: _TITLE_CHARS - 1]
    return f"{kept.rpartition(' ')[0] or kept}…"


def begin_session(copying: SessionCopy, target: Target) -> bool:
    """Write a new transcript, whole or not at all; False when the conversation has nothing to say."""
    fresh = copying.fresh(())
    first = next(fresh, None)
    if first is None:
        return False
    about = copying.conversation.about
    header: Entry = {"type": "session", "version": VERSION, "id": target.id}
    header |= {name: found for name, found in about.header.items() if found is not None}
    header |= {"sessionKey": target.key, FROM_WHERE: target.origin}
    target.transcript.rewrite(header, _link(chain([first], fresh)))
    _date(target.transcript.path, copying.latest_ms)
    return True


def continue_session(copying: SessionCopy, transcript: Transcript) -> bool:
    """Add what is new to a transcript; False when it has been archived or deleted meanwhile."""
    known = ids_since(transcript, copying.file, copying.place)
    try:
        fresh = copying.fresh(known)
        while batch := [Draft(entry) for entry in islice(fresh, _ENTRIES_A_WRITE)]:
            transcript.add(batch)
    except NotFound:
        return False
    if copying.entries:
        _date(transcript.path, copying.latest_ms)
    return True


def ids_since(transcript: Transcript, file: str, place: ReadPosition) -> list[str]:
    """The ids of our copy that an original may give again, read on from a place.

    That is little: an import that was killed has copied more than it has noted.
    """
    ids: list[str] = []
    with suppress(NotFound):
        for placed in transcript.backwards():
            name = id_of(placed.entry) if placed.entry is not None else None
            if placed.entry is None or name is None:
                continue
            number = line_of_origin(placed.entry, file)
            if number is not None and number <= place.number:
                break
            ids.append(name)
    return ids


def _link(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Let entries that name no parent follow the one before them."""
    previous: str | None = None
    for entry in entries:
        yield entry if "parentId" in entry else _with_parent(entry, previous)
        previous = id_of(entry)


def _with_parent(entry: Entry, parent: str | None) -> Entry:
    first = {name: entry[name] for name in ("type", "id")}
    return first | {"parentId": parent} | entry


def _date(path: str, latest_ms: int) -> None:
    """Give our copy the time of its last message: so it stands among the others where it belongs."""
    if latest_ms > 0:
        with suppress(OSError, PlainmindError), open_plain_file(path) as fd:  # only the order of a list
            os.utime(fd, ns=(latest_ms * 1_000_000, latest_ms * 1_000_000))


# --- the import ---

# The folder of an agent's sessions; None is the agent that was chosen.
FolderOf: TypeAlias = Callable[["str | None"], str]

_READERS = {
    "openclaw": "openclaw:OpenClaw",
    "claude-code": "claude_code:ClaudeCode",
    "codex": "cli_agents:Codex",
    "copilot": "cli_agents:Copilot",
    "gemini": "cli_agents:Gemini",
    "opencode": "sqlite_chats:OpenCode",
    "cursor": "sqlite_chats:Cursor",
    "messages": "messages:Messages",
}
PROGRAMS = tuple(_READERS)
REMOVED_HERE = "was imported before, and archived or deleted here since"


class Importer:
    """Copies what is new in some originals. One import at a time works on a session folder; others wait."""

    def __init__(
        self,
        program: str,
        folder_of: FolderOf,
        *,
        again: bool = False,
        clean: Clean | None = None,
        clock: Clock = time.time,
        system: System = SYSTEM,
    ) -> None:
        self.program = program
        self._reader = reader_of(program)
        self._folder_of = folder_of
        self._again = again  # bring back what was archived or deleted here
        self._clean = clean or without_recalled
        self._clock = clock
        self._system = system
        self._tally = Tally([], [], [], [])
        self._is_rehearsal = False
        self._taken: set[str] = set()  # sessions that another file of this import has
        self._rehearsed: dict[str, list[str]] = {}  # by session, what a rehearsal would have added

    def follow(self, path: str, *, wait: Callable[[float], bool]) -> Iterator[ImportReport]:
        """Import, and again whenever something has been added, until `wait`, called with seconds, returns true."""
        return repeat_import(lambda: self.run(path), self.program, path, wait=wait)

    def run(
        self, path: str, *, is_rehearsal: bool = False, progress: ProgressCallback | None = None
    ) -> ImportReport:
        """Import a file, or everything below a folder; a rehearsal reads all and writes nothing."""
        self._tally = Tally([], [], [], [])
        self._taken, self._rehearsed = set(), {}
        self._reader = reader_of(self.program)  # a new one: what it has looked up may have changed
        self._is_rehearsal = is_rehearsal
        originals = find_originals(self._reader, path)
        by_folder: dict[str, list[Original]] = {}
        for original in originals:
            by_folder.setdefault(os.path.realpath(self._folder_of(original.agent)), []).append(original)
        done = 0
        for folder, of_folder in by_folder.items():
            _refuse_itself(folder, of_folder)
            done = self._import_into(folder, of_folder, done, len(originals), progress)
        return self._tally.report(self._reader.program, is_rehearsal=is_rehearsal)

    def _import_into(
        self,
        folder: str,
        originals: Sequence[Original],
        done: int,
        total: int,
        progress: ProgressCallback | None,
    ) -> int:
        shelves = Shelves(folder, clock=self._clock, system=self._system)
        with ExitStack() as until_written:
            until_written.enter_context(shelves.held(only_to_look=self._is_rehearsal))
            for original in originals:
                if progress is not None:
                    progress(Progress(done, total, os.path.basename(original.path)))
                self._import_file(shelves, original)
                done += 1
        return done

    def _import_file(self, shelves: Shelves, original: Original) -> None:
        path = original.path
        try:
            now = fingerprint(path)
            before = shelves.ledger.files.get(path)
            if before is not None and before.fingerprint == now and not self._again:
                removed = sum(map(shelves.was_removed, before.places))
                self._tally.left_out += [FileFailure(path, REMOVED_HERE)] * removed
                self._tally.unchanged += not removed or removed < len(before.places)
                self._taken |= before.places.keys()
                return
            read = ReadFile(now, dict(before.places) if before is not None else {})
            is_final = True
            for conversation in self._reader.conversations(original):
                is_final &= self._import_conversation(shelves, original, conversation, read)
        except NothingToTake as error:
            self._tally.empty.append(FileFailure(path, str(error)))
            return
        except (StorageFailure, LockTimeout):
            raise  # our own side: the next file would fare no better
        except (PlainmindError, OSError) as error:
            self._tally.failed.append(FileFailure(path, _reason(error)))
            return
        shelves.ledger.files[path] = read if is_final else ReadFile([], read.places)

    def _import_conversation(
        self, shelves: Shelves, original: Original, conversation: Conversation, read: ReadFile
    ) -> bool:
        """Copy what is new; False when some of it may be readable another time."""
        target = shelves.target_of(self._reader.program, original.path, conversation.about)
        if original.is_spare and (target.is_there or target.id in self._taken):
            return True
        is_new = not target.is_there and target.id not in self._rehearsed
        self._taken.add(target.id)
        if target.was_removed and not self._again:
            self._tally.left_out.append(FileFailure(original.path, REMOVED_HERE))
            read.places.setdefault(target.id, ReadPosition())
            return True
        place = read.places.get(target.id, ReadPosition()) if target.is_there else ReadPosition()
        if not conversation.still_has(place):
            place = ReadPosition()
        copying = SessionCopy(
            conversation,
            os.path.basename(original.path),
            lambda line, reason: self._tally.damage(original.path, line, reason),
            place,
            self._clean,
        )
        if not self._copy(shelves, target, copying):
            return True
        read.places[target.id] = ReadPosition() if copying.is_curable else copying.place
        if copying.entries:
            exporter = conversation.about.fields.get(EXPORTED_BY)
            if isinstance(exporter, str):
                self._tally.exporters[exporter] = None
            self._tally.imported.append(
                Imported(
                    target.key,
                    target.id,
                    original.agent,
                    target.transcript.path,
                    original.path,
                    is_new,
                    copying.entries,
                    copying.messages,
                )
            )
        elif target.is_there:
            self._tally.unchanged += 1
        return not copying.is_curable

    def _copy(self, shelves: Shelves, target: Target, copying: SessionCopy) -> bool:
        """Begin or continue the session; False when there is nothing to note about it."""
        about = copying.conversation.about
        if self._is_rehearsal:
            known = ids_since(target.transcript, copying.file, copying.place) if target.is_there else []
            before = self._rehearsed.setdefault(target.id, [])
            before += copying.rehearse([*known, *before])
        elif not target.is_there:
            if begin_session(copying, target):
                shelves.register(target, about, copying.name, copying.latest_ms)
        elif not continue_session(copying, target.transcript):
            self._tally.left_out.append(FileFailure(target.origin["path"], REMOVED_HERE))
            return False
        elif not target.is_registered:
            shelves.register(target, about, copying.name, copying.latest_ms)
        else:
            shelves.complete(target.key, about, copying.title)
        if not target.is_there and not copying.entries:
            self._tally.without_messages += 1
            return False
        return True


def repeat_import(
    run: Callable[[], ImportReport],
    program: str,
    path: str,
    *,
    wait: Callable[[float], bool],
) -> Iterator[ImportReport]:
    """Import, and again whenever something has been added, until `wait` says that it is enough.

    Looking at the files costs little; when it does not, the pauses become longer. What fails the first time raises.
    What fails later, because a disk is unmounted or a lock is held, is in the report, and the next round tries again.
    """
    is_first = True
    while True:
        started = time.monotonic()
        try:
            report = run()
        except PlainmindError as error:
            if is_first:
                raise
            report = ImportReport(program, failed=(FileFailure(path, _reason(error)),))
        is_first = False
        took = time.monotonic() - started
        yield report
        if wait(max(_PAUSE_S, 10 * took)):
            return


def reader_of(program: str) -> Reader:
    """The reader of a program. Raises ConfigError for an unknown one."""
    if program in _READERS:
        reader: Reader = find_by_name(f"plainmind.guests.importers.{_READERS[program]}")()
        return reader
    raise ConfigError(
        f"conversations of `{program}` cannot be read", hint=f"use one of {', '.join(PROGRAMS)}"
    )


def _refuse_itself(folder: str, originals: Sequence[Original]) -> None:
    for original in originals:
        if f"{os.path.realpath(original.path)}{os.sep}".startswith(folder + os.sep):
            raise PathNotAllowed(
                f"{folder} is the session folder itself",
                hint="its sessions are searched as they are; there is nothing to import",
            )


def _reason(error: PlainmindError | OSError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{error} ({error.hint})" if error.hint else str(error)
