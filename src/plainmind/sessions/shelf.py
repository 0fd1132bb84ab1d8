"""What the parts of a session store share: where the files are, the registry, the locks, the clock."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from functools import partial
from weakref import WeakValueDictionary, ref

from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.files.ids import Clock
from plainmind.files.system import System, hold_lock, lock_path_for
from plainmind.sessions.entries import VERSION, Entry, Transcript, iso
from plainmind.sessions.json5_transcript import Json5Transcript
from plainmind.sessions.jsonl_transcript import JsonlTranscript
from plainmind.sessions.registry import AUDIENCE, UNFINISHED, Places, Registry, Sessions
from plainmind.sessions.usage import COUNTERS, count_on, place_of_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STRUCTURE = frozenset({"sessionId", "sessionFile"})
IN_HEADER = ("cwd", *AUDIENCE)


class Shelf:
    """One session folder."""

    def __init__(
        self, folder: str, *, preferred: str | None, clock: Clock, timeout_s: float, system: System
    ) -> None:
        self.clock = clock
        self.system = system
        self.places = Places(folder)
        self.registry = Registry(self.places, preferred=preferred, system=system, timeout_s=timeout_s)
        self.registry.finish = partial(_finish, ref(self))
        self._preferred = preferred
        self._timeout_s = timeout_s
        self._guard = threading.Lock()
        # Shared, so that threads which opened the same session each for itself still write and sync together.
        self._transcripts: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def transcript(self, entry: Entry) -> Transcript:
        """The transcript that an entry of the registry names, whether or not the file is there."""
        return self.transcript_at(self.places.transcript_now(entry))

    def transcript_at(self, path: str) -> Transcript:
        """The transcript of a path, in the format that its name says."""
        with self._guard:
            found: Transcript | None = self._transcripts.get(path)
            if found is None:
                found = self._transcripts[path] = self._new_transcript(path)
        return found

    def _new_transcript(self, path: str) -> Transcript:
        state_dir, system, timeout_s = self.places.state_dir, self.system, self._timeout_s
        if ".json5" in os.path.basename(path):
            return Json5Transcript(path, state_dir=state_dir, system=system, timeout_s=timeout_s)
        return JsonlTranscript(path, state_dir=state_dir, system=system, timeout_s=timeout_s)

    def hold(self, path: str, operation: str) -> AbstractContextManager[object]:
        """Keep all others from adding to a transcript; taken while the registry is held, never the other way round."""
        lock = lock_path_for(self.places.state_dir, path)
        return hold_lock(lock, operation=operation, timeout_s=self._timeout_s, system=self.system)

    def new_entry(self, session_id: str, fields: dict[str, object]) -> Entry:
        """The entry of a new session, with the file that it shall have."""
        wrong = STRUCTURE & fields.keys()
        if wrong:
            raise PlainmindError(f"`{min(wrong)}` is chosen by the store", hint="give `id` to choose the id")
        entry: Entry = {"sessionId": session_id, "sessionFile": "", "updatedAt": self.now_ms(), **fields}
        file = self.places.new_transcript(self.places.format(self._preferred), session_id, entry)
        return entry | {"sessionFile": file}

    def new_header(self, key: str, session_id: str, fields: dict[str, object]) -> Entry:
        """The first line; the key is in it, and who reads along, so that a lost registry can be written again."""
        header: Entry = {
            "type": "session",
            "version": VERSION,
            "id": session_id,
            "timestamp": iso(self.clock()),
        }
        told = {name: found for name in IN_HEADER if isinstance(found := fields.get(name), str)}
        return header | told | {"sessionKey": key}

    def count(self, entry: Entry) -> tuple[Entry, int | None]:
        """The entry with its counters as of now, and up to which place that is; None: another program counts."""
        since = place_of_count(entry)
        if since is None:
            return entry, None
        transcript = self.transcript(entry)
        try:
            end = transcript.end()
            if since > end:  # replaced by a shorter one: begin anew
                entry = {name: found for name, found in entry.items() if name not in COUNTERS}
                since = 0
            return count_on(entry, transcript.countable(since, end)), end
        except NotFound:
            return entry, since

    def measure(self, path: str) -> tuple[int, int]:
        """The size of a file, and when it was changed last; zeros when there is none."""
        try:
            status = os.stat(path, follow_symlinks=False)
        except FileNotFoundError:
            return 0, 0
        return status.st_size, status.st_mtime_ns // 1_000_000

    def now_ms(self) -> int:
        """The time, as the registry writes it."""
        return int(self.clock() * 1000)

    def not_found(self, name: str) -> NotFound:
        """The error for a name that no session has."""
        return NotFound(
            f"there is no session `{name}` in {self.places.folder}",
            hint="`list()` names those that are there",
        )

    def require(self, sessions: Sessions, name: str) -> tuple[str, Entry]:
        """Find a session that must be there. Raises NotFound."""
        found = find(sessions, name)
        if found is None:
            raise self.not_found(name)
        return found


def _finish(shelf: ref[Shelf], sessions: Sessions) -> bool:
    """Finish what a killed process left, which there hardly ever is."""
    found = shelf()
    if found is None or not any(
        UNFINISHED in entry for entry in sessions.values() if isinstance(entry, dict)
    ):
        return False
    from plainmind.sessions.changes import finish_changes

    return finish_changes(found, sessions)


def find(sessions: Sessions, name: str) -> tuple[str, Entry] | None:
    """Find a session by key, else by id: its key and its entry."""
    entry = sessions.get(name)
    if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str):
        return name, entry
    for key, other in sessions.items():
        if isinstance(other, dict) and other.get("sessionId") == name:
            return key, other
    return None


def refuse_taken(sessions: Sessions, key: str, session_id: str) -> None:
    """Refuse to give a key or an id a second time."""
    if key in sessions:
        raise ConflictError(
            f"there is a session `{key}` already", hint="open it, or archive or delete it first"
        )
    if find(sessions, session_id) is not None:
        raise ConflictError(
            f"there is a session with the id `{session_id}` already", hint="choose another id"
        )
