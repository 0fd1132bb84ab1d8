"""The registry of a session folder: which key is which session; small, written in one step, never silently empty."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.value import value
from plainmind.files.atomic import remove_abandoned, write_atomically
from plainmind.files.jsonl import forwards, opened
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    hold_lock,
    lock_path_for,
    make_folders,
    read_range,
)
from plainmind.sessions.entries import Entry, entries_in, time_of
from plainmind.sessions.json5_text import read_object, saved_members
from plainmind.sessions.places import Places
from plainmind.sessions.usage import marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    T = TypeVar("T")

Sessions: TypeAlias = "dict[str, Any]"  # by key; what is not an object is not ours, and stays

AUDIENCE = ("chatType", "groupId", "channel")  # without them a group would be taken for the owner
_MAX_BYTES = 256 << 20
_HEADER_BYTES = 1 << 20
_PATIENCE_S = 0.05


@value
class _Current:
    """The registry as it is on the disk."""

    data: bytes | None  # None: there is no file
    sessions: Sessions | None  # None: the bytes are no registry


class Held:
    """The entries while the lock is held; `write` puts them down, if they have changed."""

    def __init__(self, sessions: Sessions, write: Callable[[Sessions], None]) -> None:
        self.sessions = sessions
        self._write = write

    def write(self) -> None:
        """Replace the registry, durably."""
        self._write(self.sessions)


class Registry:
    """Reads and changes the registry. Readers need no lock: the file is replaced, never written over."""

    def __init__(
        self, places: Places, *, preferred: str | None, system: System = SYSTEM, timeout_s: float = 10.0
    ) -> None:
        self.places = places
        self.notices: list[str] = []  # what was found damaged, and what became of it
        self.finish: Callable[[Sessions], bool] = lambda _: False  # what a killed process has left half done
        self._preferred = preferred
        self._system = system
        self._timeout_s = timeout_s
        # One lock for the folder, whichever name the registry has.
        self._lock = lock_path_for(places.state_dir, os.path.join(places.folder, "sessions.json"))

    def read(self) -> Sessions:
        """Read all entries; a damaged registry is rebuilt first, a missing one is read off the transcripts."""
        current = self._current()
        if current.sessions is not None:
            return current.sessions
        if current.data is None:
            return self._gathered({})
        return self.change(dict, "rebuild the session registry")

    def change(self, change: Callable[[Sessions], T], operation: str) -> T:
        """Change the entries under the lock, and write them down if they did change."""
        with self.holding(operation) as held:
            result = change(held.sessions)
            held.write()
        return result

    @contextmanager
    def holding(self, operation: str) -> Iterator[Held]:
        """Hold the lock during a block; waiting ends after `timeout_s`, with an error that names the holder."""
        with explain_errors("make", self.places.folder):
            make_folders(self._system, self.places.folder)
        with hold_lock(self._lock, operation=operation, timeout_s=self._timeout_s, system=self._system):
            current = self._settled()
            found = current.sessions
            sessions = self._rebuilt(current.data) if found is None else deepcopy(found)
            if self.finish(sessions):
                self._write(current, sessions)
                self.forget_copies()
                current = _Current(_written(sessions), deepcopy(sessions))
            yield Held(sessions, partial(self._write, current))

    def move_to(self, name: str) -> None:
        """Give the registry its other name; the caller has converted what it names."""
        with self.holding("rename the session registry") as held:
            held.write()
            old, new = self.places.registry(self._preferred), os.path.join(self.places.folder, name)
            if old != new and os.path.lexists(old):
                write_atomically(new, _written(held.sessions), system=self._system)
                with explain_errors("remove", old):
                    self._system.unlink(old)

    def forget_copies(self) -> None:
        """Remove the copy of the registry before its last change: it still has what was deleted."""
        for name in ("sessions.json.bak", "registry.json5.bak"):
            path = os.path.join(self.places.folder, name)
            if os.path.lexists(path):
                with explain_errors("remove", path):
                    self._system.unlink(path)

    def _current(self) -> _Current:
        path = self.places.registry(self._preferred)
        try:
            with opened(path, system=self._system) as fd:
                size = self._system.fstat(fd).st_size
                if size > _MAX_BYTES:
                    raise PlainmindError(
                        f"{path} has {size / 1e6:.0f} MB, which no registry needs",
                        hint="look at what fills it; it is neither read nor changed",
                    )
                data = read_range(self._system, fd, 0, size)
        except NotFound:
            return _Current(None, None)
        return _Current(data, read_object(data))

    def _settled(self) -> _Current:
        """The registry, once a program that writes it over without our lock has had the time to end that."""
        current = self._current()
        if current.data is not None and current.sessions is None:
            time.sleep(_PATIENCE_S)
            current = self._current()
        return current

    def _write(self, old: _Current, sessions: Sessions) -> None:
        path = self.places.registry(self._preferred)
        data = _written(sessions)
        if old.sessions is not None and data == _written(old.sessions):
            return
        if old.data is not None and old.sessions is not None:
            # Read again if a program that knows no better leaves the registry empty or torn.
            remove_abandoned(f"{path}.bak", self._system)
            write_atomically(f"{path}.bak", old.data, system=self._system)
        remove_abandoned(path, self._system)
        write_atomically(path, data, system=self._system)

    def _rebuilt(self, damaged: bytes | None) -> Sessions:
        """Gather the entries anew, and keep the damaged text aside."""
        if damaged is None:
            return self._gathered({})
        path = self.places.registry(self._preferred)
        aside = f"{path}.corrupt-{time.time_ns()}"
        write_atomically(aside, damaged, system=self._system)
        sessions = self._gathered(saved_members(damaged))
        notice = f"{path} was damaged and has been rebuilt with {len(sessions)} sessions; the damaged file is {aside}"
        self.notices.append(notice)
        import logging

        logging.getLogger(__name__).warning("%s", notice)
        return sessions

    def _gathered(self, saved: Sessions) -> Sessions:
        """Put together what was saved, what only the last copy knows, and what only the transcripts know."""
        known = {key: entry for key, entry in (self._copy() | saved).items() if self._has_transcript(entry)}
        return found_in_transcripts(self.places, known, self._system)

    def _copy(self) -> Sessions:
        try:
            with opened(f"{self.places.registry(self._preferred)}.bak", system=self._system) as fd:
                return read_object(read_range(self._system, fd, 0, _MAX_BYTES)) or {}
        except NotFound:
            return {}

    def _has_transcript(self, entry: object) -> bool:
        if not isinstance(entry, dict):
            return False
        try:
            return os.path.exists(self.places.transcript(entry))
        except PlainmindError:
            return False


def found_in_transcripts(places: Places, known: Sessions, system: System) -> Sessions:
    """Add to the known sessions those of which only the transcript is left."""
    sessions = dict(known)
    files = set()
    for entry in known.values():
        if isinstance(entry, dict):
            files.add(os.path.relpath(places.transcript(entry), places.folder))
    ids = {entry.get("sessionId") for entry in known.values() if isinstance(entry, dict)}
    for relative in places.transcripts():
        if relative in files:
            continue
        entry, key = _entry_of_transcript(places, relative, system)
        if entry is None or entry["sessionId"] in ids:
            continue
        ids.add(entry["sessionId"])
        if not key or key in sessions:
            key = entry["sessionId"]
        sessions[key] = entry
    return sessions


def _entry_of_transcript(places: Places, relative: str, system: System) -> tuple[Entry | None, str | None]:
    """Read a session off its transcript: its id, and of its key and its audience what the header has.

    What it has cost is counted from the beginning.
    """
    path = os.path.join(places.folder, relative)
    name = os.path.basename(relative).rpartition(".")[0]
    try:
        with opened(path, system=system) as fd:
            status = system.fstat(fd)
            header = _header(fd, relative, system)
    except PlainmindError:
        return None, None  # a symlink or a folder of that name; a file that went away meanwhile
    session_id = header.get("id", header.get("sessionId"))
    key = header.get("sessionKey")
    entry: Entry = {
        "sessionId": session_id if isinstance(session_id, str) and session_id else name,
        "sessionFile": relative,
        "updatedAt": status.st_mtime_ns // 1_000_000,
    }
    started = time_of(header)
    if started is not None:
        entry["createdAt"] = started
    entry |= {name: found for name in AUDIENCE if isinstance(found := header.get(name), str)}
    return marked(entry, 0), key if isinstance(key, str) else None


def _header(fd: int, relative: str, system: System) -> Entry:
    if relative.endswith(".json5"):
        document = read_object(read_range(system, fd, 0, _HEADER_BYTES)) or {}
        header = document.get("header")
        return header if isinstance(header, dict) else document
    line = next(forwards(fd, system=system, max_line_bytes=_HEADER_BYTES), None)
    found = entries_in(line.data).entries if line is not None else ()
    return found[0] if found and found[0].get("type") == "session" else {}


def _written(sessions: Sessions) -> bytes:
    try:
        text = json.dumps(sessions, indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a character can only be escaped
        return json.dumps(sessions, indent=2, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise PlainmindError(
            f"an entry cannot be written as JSON: {error}",
            hint="give strings, finite numbers, lists and dictionaries; nothing was written",
        ) from error
