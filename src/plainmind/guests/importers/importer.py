"""Imports the conversations of other programs: again and again, with nothing doubled and no original touched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from plainmind.base.errors import ConfigError, LockTimeout, PathNotAllowed, PlainmindError, StorageFailure
from plainmind.base.model import FileFailure, Progress, ProgressCallback
from plainmind.files.ids import Clock
from plainmind.files.system import SYSTEM, System
from plainmind.guests.importers.copying import Copying, begin, go_on, ids_since
from plainmind.guests.importers.finding import find_originals, fingerprint
from plainmind.guests.importers.ledger import ReadFile
from plainmind.guests.importers.protocol import Conversation, Original, Place, Reader
from plainmind.guests.importers.report import Imported, ImportReport, Tally
from plainmind.guests.importers.target import Shelves, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# The folder of an agent's sessions; None is the agent that was chosen.
FolderOf: TypeAlias = Callable[["str | None"], str]

PROGRAMS = ("openclaw", "claude-code", "codex", "messages")
REMOVED_HERE = "was imported before, and archived or deleted here since"


class Importer:
    """Copies what is new in some originals. One import at a time works on a session folder; others wait."""

    def __init__(
        self,
        program: str,
        folder_of: FolderOf,
        *,
        again: bool = False,
        clock: Clock = time.time,
        system: System = SYSTEM,
    ) -> None:
        self.program = program
        self._reader = reader_of(program)
        self._folder_of = folder_of
        self._again = again  # bring back what was archived or deleted here
        self._clock = clock
        self._system = system
        self._tally = Tally([], [], [], [])
        self._is_rehearsal = False
        self._taken: set[str] = set()  # sessions that another file of this import has
        self._rehearsed: dict[str, list[str]] = {}  # by session, what a rehearsal would have added

    def follow(self, path: str, *, wait: Callable[[float], bool]) -> Iterator[ImportReport]:
        """Import, and again whenever something has been added, until `wait`, called with seconds, returns true."""
        return imports(self, path, wait=wait)

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
                self._tally.unchanged += 1
                self._taken |= before.places.keys()
                return
            read = ReadFile(now, dict(before.places) if before is not None else {})
            is_final = True
            for conversation in self._reader.conversations(original):
                is_final &= self._import_conversation(shelves, original, conversation, read)
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
            read.places.setdefault(target.id, Place())
            return True
        place = read.places.get(target.id, Place()) if target.is_there else Place()
        if not conversation.still_has(place):
            place = Place()
        copying = Copying(
            conversation,
            os.path.basename(original.path),
            lambda line, reason: self._tally.damage(original.path, line, reason),
            place,
        )
        if not self._copied(shelves, target, copying):
            return True
        read.places[target.id] = Place() if copying.is_curable else copying.place
        if copying.entries:
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

    def _copied(self, shelves: Shelves, target: Target, copying: Copying) -> bool:
        """Begin or continue the session; False when there is nothing to note about it."""
        about = copying.conversation.about
        if self._is_rehearsal:
            known = ids_since(target.transcript, copying.file, copying.place) if target.is_there else []
            before = self._rehearsed.setdefault(target.id, [])
            before += copying.rehearse([*known, *before])
        elif not target.is_there:
            if begin(copying, target):
                shelves.register(target, about, copying.name, copying.latest_ms)
        elif not go_on(copying, target.transcript):
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


def imports(
    importer: Importer, path: str, *, wait: Callable[[float], bool], pause_s: float = 2.0
) -> Iterator[ImportReport]:
    """Import, and again whenever something has been added, until `wait` says that it is enough.

    Looking at the files costs little; when it does not, the pauses become longer. What fails the first time raises.
    What fails later, because a disk is unmounted or a lock is held, is in the report, and the next round tries again.
    """
    is_first = True
    while True:
        started = time.monotonic()
        try:
            report = importer.run(path)
        except PlainmindError as error:
            if is_first:
                raise
            report = ImportReport(importer.program, failed=(FileFailure(path, _reason(error)),))
        is_first = False
        took = time.monotonic() - started
        yield report
        if wait(max(pause_s, 10 * took)):
            return


def reader_of(program: str) -> Reader:
    """The reader of a program. Raises ConfigError for an unknown one."""
    if program == "openclaw":
        from plainmind.guests.importers.openclaw import OpenClaw

        return OpenClaw()
    if program == "claude-code":
        from plainmind.guests.importers.claude_code import ClaudeCode

        return ClaudeCode()
    if program == "codex":
        from plainmind.guests.importers.codex import Codex

        return Codex()
    if program == "messages":
        from plainmind.guests.importers.messages import Messages

        return Messages()
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


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    hint = getattr(error, "hint", None)
    return f"{error} ({hint})" if hint else str(error)
