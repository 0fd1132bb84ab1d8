"""Where imported sessions go: a session folder, of which one import at a time changes what it has imported."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from plainmind.base.errors import NotFound
from plainmind.base.model import sha256_text
from plainmind.base.pattern import pattern
from plainmind.base.value import value
from plainmind.files.ids import Clock
from plainmind.files.system import SYSTEM, System, explain_errors, hold_lock, lock_path_for, make_folders
from plainmind.guests.importers.ledger import Ledger
from plainmind.guests.importers.marks import FROM_WHERE
from plainmind.guests.importers.protocol import About
from plainmind.sessions.entries import Entry, Transcript
from plainmind.sessions.registry import Sessions
from plainmind.sessions.shelf import Shelf, find
from plainmind.sessions.usage import with_place_of_count

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
        if key is not None:
            entry = self._entry(key)
            transcript = self._shelf.transcript(entry)
            return Target(key, entry["sessionId"], origin, transcript, is_there=True, is_registered=True)
        session_id = self._id_for(program, about.id)
        transcript = self._transcript(session_id)
        is_there = self._was_made_from(session_id) == (program, about.id)
        was_removed = session_id in self._imported and not is_there
        found = find(self._known, session_id)
        key = found[0] if found is not None else f"{program}:{session_id}"
        return Target(key, session_id, origin, transcript, is_there=is_there, was_removed=was_removed)

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
            with self._shelf.registry.holding("import sessions") as held:
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
