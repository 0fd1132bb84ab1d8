"""Where imported sessions go, and what was imported before; one import at a time works on a session folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from plainmind.base.errors import NotFound
from plainmind.base.lazy import pattern
from plainmind.base.model import sha256_text
from plainmind.base.value import record, value
from plainmind.files.append import Clock
from plainmind.files.atomic import remove_abandoned, write_atomically
from plainmind.files.jsonl import open_plain_file
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    hold_lock,
    lock_path_for,
    make_folders,
    read_range,
)
from plainmind.guests.importers.originals import FROM_WHERE, About, ReadPosition
from plainmind.sessions.entries import Entry, Transcript, with_place_of_count
from plainmind.sessions.registry import Sessions
from plainmind.sessions.shelf import Shelf, find
from plainmind.sessions.transcript_files import read_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_VERSION = 1


@record
class ReadFile:
    """What is known of one original."""

    fingerprint: list[int]
    places: dict[str, ReadPosition]  # by session id of ours


class Ledger:
    """One small file beside the locks of a session folder.

    Without it nothing is imported twice either, originals are only read whole again. But what was deleted here comes
    back then: only the ledger remembers that it had been imported.
    """

    def __init__(self, state_dir: str, system: System = SYSTEM) -> None:
        self.path = os.path.join(state_dir, "imports.json")
        self.files: dict[str, ReadFile] = {}
        self._system = system
        self._data = b""

    def load(self) -> None:
        """Read it; a damaged one counts as none."""
        try:
            with open_plain_file(self.path, system=self._system) as fd:
                size = self._system.fstat(fd).st_size
                self._data = read_range(self._system, fd, 0, size)
        except NotFound:
            self._data = b""
        found = read_object(self._data) or {}
        files = found.get("files")
        rows = files.items() if isinstance(files, dict) else ()
        read = {path: _read(row) for path, row in rows}
        self.files = {path: file for path, file in read.items() if file is not None}

    def save(self) -> None:
        """Write it down in one step, if it says something new."""
        files = {path: _encode(file) for path, file in sorted(self.files.items())}
        data = json.dumps({"version": _VERSION, "files": files}, separators=(",", ":")).encode() + b"\n"
        if data != self._data:
            remove_abandoned_in(self.path, self._system)
            write_atomically(self.path, data, system=self._system)
            self._data = data

    def sessions(self) -> set[str]:
        """The ids of all sessions that were ever imported."""
        return {session for file in self.files.values() for session in file.places}


def remove_abandoned_in(path: str, system: System) -> None:
    """Remove what a killed import left; the folder need not exist yet."""
    if os.path.isdir(os.path.dirname(path)):
        remove_abandoned(path, system)


def _encode(file: ReadFile) -> dict[str, Any]:
    places = {session: [place.at, place.number, place.tail] for session, place in file.places.items()}
    return {"is": file.fingerprint, "read": places}


def _read(row: object) -> ReadFile | None:
    if not isinstance(row, dict):
        return None
    marks, places = row.get("is"), row.get("read")
    if not isinstance(marks, list) or not isinstance(places, dict):
        return None
    return ReadFile(marks, {session: _place(found) for session, found in places.items()})


def _place(found: object) -> ReadPosition:
    match found:
        case [int(at), int(number), str(tail)]:
            return ReadPosition(at, number, tail)
        case _:
            return ReadPosition()


# --- session folders ---

_ID = pattern(r"[A-Za-z0-9_-]{1,64}")
# Every change of the registry writes it whole: new sessions are entered by the hundred.
_SESSIONS_A_WRITE = 200
_LONGEST_WAIT_S = 10.0


@value
class Target:
    """The session that a conversation becomes, or is already."""

    key: str
    id: str
    origin: Entry  # which program, which file, and what the conversation is called there
    transcript: Transcript
    is_there: bool = False  # and need only be continued
    is_registered: bool = False
    was_removed: bool = False  # imported before, and archived or deleted since


class Shelves:
    """One session folder during an import."""

    def __init__(self, folder: str, *, clock: Clock = time.time, system: System = SYSTEM) -> None:
        self._shelf = Shelf(folder, preferred=None, clock=clock, timeout_s=_LONGEST_WAIT_S, system=system)
        self._lock = lock_path_for(self._shelf.places.state_dir, os.path.join(folder, "imports.json"))
        self._system = system
        self._known: Sessions = {}
        self._by_origin: dict[tuple[object, object], str] = {}
        self._new: Sessions = {}
        self._news: dict[str, Entry] = {}
        self.ledger = Ledger(self._shelf.places.state_dir, system)
        self._imported: set[str] = set()
        self._unlisted: set[str] = set()

    @property
    def folder(self) -> str:
        """Where everything is."""
        return self._shelf.places.folder

    @contextmanager
    def held(self, *, only_to_look: bool) -> Iterator[None]:
        """Keep other imports away during a block, and write down at its end what is left to write."""
        if only_to_look:
            self._look()
            yield
            return
        with explain_errors("make", self.folder):
            make_folders(self._system, self.folder)
        with hold_lock(self._lock, operation="import", timeout_s=_LONGEST_WAIT_S, system=self._system):
            self._look()
            try:
                yield
            finally:
                self.write_down()

    def target_of(self, program: str, path: str, about: About) -> Target:
        """Find the session of a conversation, or choose its id and key."""
        origin: Entry = {"program": program, "path": path, "id": about.id}
        key = self._by_origin.get((program, about.id))
        told = f"{program}:{about.id}"
        if key is None and isinstance(self._known.get(told), dict):
            key = told  # a hook has kept it as it was said: the same conversation
        if key is not None:
            entry = self._entry(key)
            transcript = self._shelf.transcript(entry)
            is_known = FROM_WHERE in entry
            return Target(key, entry["sessionId"], origin, transcript, is_there=True, is_registered=is_known)
        session_id = self._id_for(program, about.id)
        transcript = self._transcript(session_id)
        is_there = self._was_made_from(session_id) == (program, about.id)
        was_removed = session_id in self._imported and not is_there
        found = find(self._known, session_id)
        key = found[0] if found is not None else f"{program}:{session_id}"
        return Target(key, session_id, origin, transcript, is_there=is_there, was_removed=was_removed)

    def was_removed(self, session_id: str) -> bool:
        """Whether a session was imported, and archived or deleted since."""
        return session_id in self._unlisted and self._was_made_from(session_id) is None

    def register(self, target: Target, about: About, name: str, latest_ms: int) -> None:
        """Enter a new session; written down with the next ones, or at the end."""
        fields = {field: found for field, found in about.fields.items() if found is not None}
        entry: Entry = {
            "sessionId": target.id,
            "sessionFile": os.path.basename(target.transcript.path),
            "updatedAt": latest_ms or self._shelf.now_ms(),
        }
        if name and "displayName" not in fields:
            entry["displayName"] = name
        entry |= fields | {FROM_WHERE: target.origin}
        self._new[target.key] = with_place_of_count(entry, 0)
        self._by_origin[target.origin["program"], target.origin["id"]] = target.key
        if len(self._new) >= _SESSIONS_A_WRITE:
            self.write_down()

    def complete(self, key: str, about: About, title: str) -> None:
        """Note what only this original knows of a session, and a title that it was given since."""
        entry = self._entry(key)
        news = {
            field: found for field, found in about.fields.items() if field not in entry and found is not None
        }
        if title:
            news["displayName"] = title
        news = {field: found for field, found in news.items() if entry.get(field) != found}
        if news:
            self._news[key] = self._news.get(key, {}) | news

    def write_down(self) -> None:
        """Write the registry, then the ledger: what is noted as imported is there."""
        if self._new or self._news:
            with self._shelf.registry.hold("import sessions") as held:
                for key, entry in self._new.items():
                    # A registry that is read off the transcripts, for want of another, knows it already.
                    there = held.sessions.get(key)
                    if not isinstance(there, dict) or there.get("sessionId") == entry["sessionId"]:
                        held.sessions[key] = (there or {}) | entry
                for key, fields in self._news.items():
                    if isinstance(held.sessions.get(key), dict):
                        held.sessions[key] |= fields
                held.write()
            self._known |= self._new
            self._new, self._news = {}, {}
        if self.ledger.files:
            self.ledger.save()

    def _look(self) -> None:
        self._known = self._shelf.registry.read()
        self._by_origin = {
            (origin.get("program"), origin.get("id")): key
            for key, entry in self._known.items()
            if isinstance(entry, dict) and isinstance(origin := entry.get(FROM_WHERE), dict)
        }
        self.ledger.load()
        self._imported = self.ledger.sessions()
        listed = (entry.get("sessionId") for entry in self._known.values() if isinstance(entry, dict))
        self._unlisted = self._imported.difference(listed)

    def _entry(self, key: str) -> Entry:
        entry: Entry = self._new.get(key) or self._known[key]
        return entry

    def _transcript(self, session_id: str) -> Transcript:
        return self._shelf.transcript({"sessionFile": f"{session_id}.jsonl"})

    def _id_for(self, program: str, wanted: str) -> str:
        """The conversation's own id, unless another session here has it or it can be no file name."""
        other = f"{program}-{sha256_text(wanted)[:16]}"
        if not _ID.fullmatch(wanted):
            return other
        made_from = self._was_made_from(wanted)
        if made_from == (program, wanted):
            return wanted
        is_taken = find(self._known, wanted) or find(self._new, wanted)
        return other if is_taken or made_from is not None else wanted

    def _was_made_from(self, session_id: str) -> tuple[object, object] | None:
        """Of which conversation there is a copy with that id; empty for a transcript that was not imported.

        The registry may not know it: an import may have been killed, a damaged registry been written anew.
        """
        try:
            header = self._transcript(session_id).header() or {}
        except NotFound:
            return None
        origin = header.get(FROM_WHERE)
        return (origin.get("program"), origin.get("id")) if isinstance(origin, dict) else ("", "")
