"""The files of a session folder, and its registry: which key is which session; small, and never silently empty."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime
from functools import partial

from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.files.atomic import remove_abandoned, write_atomically
from plainmind.files.jsonl import forwards, open_plain_file
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    hold_lock,
    lock_path_for,
    make_folders,
    read_range,
)
from plainmind.sessions.entries import Entry, entries_in, time_of, with_place_of_count
from plainmind.sessions.transcript_files import read_object, salvage_members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    T = TypeVar("T")


Sessions: TypeAlias = "dict[str, Any]"  # by key; what is not an object is not ours, and stays

AUDIENCE = ("chatType", "groupId", "channel")  # without them a group would be taken for the owner
_MAX_BYTES = 256 << 20
_HEADER_BYTES = 1 << 20
_PATIENCE_S = 0.05
# In an entry of the registry: a change of its files that has begun and is not known to have ended.
UNFINISHED = "plainmindUnfinished"
REGISTRIES = {"jsonl": "sessions.json", "json5": "registry.json5"}
_SUBFOLDERS = ("chats", "groups")
_NAME = pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_ID = pattern(r"[A-Za-z0-9_-]{1,64}")
_ARCHIVE = pattern(r"(?P<name>.+\.(?:jsonl|json5))\.(?:reset|deleted|archived)\..+")


class Places:
    """The names in one session folder."""

    FOLDERS = (".", *_SUBFOLDERS)  # where transcripts are

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        # Derived from the folder and from nothing else: all users of the folder must find the same locks.
        self.state_dir = os.path.join(self.folder, ".plainmind")
        self.drafts = os.path.join(self.state_dir, "drafts")

    def registry(self, preferred: str | None = None) -> str:
        """The registry that is there; none yet: that of the preferred format."""
        for name in REGISTRIES.values():
            path = os.path.join(self.folder, name)
            if os.path.lexists(path):
                return path
        return os.path.join(self.folder, REGISTRIES[preferred or "jsonl"])

    def format(self, preferred: str | None = None) -> str:
        """The format of new sessions: the preferred one, else that of the registry."""
        if preferred is not None:
            return preferred
        name = os.path.basename(self.registry())
        return next(known for known, registry in REGISTRIES.items() if registry == name)

    def transcript(self, entry: Entry) -> str:
        """The path of a session's transcript. Raises PathNotAllowed for one outside of the folder."""
        named = entry.get("sessionFile")
        session_id = entry.get("sessionId")
        relative = named if isinstance(named, str) and named else f"{session_id}.jsonl"
        if os.path.isabs(relative):
            relative = self._inside(relative)
        folder, name = os.path.split(os.path.normpath(relative))
        if (folder and folder not in _SUBFOLDERS) or not _NAME.fullmatch(name):
            raise PathNotAllowed(
                f"the registry names a transcript outside of its folder: {relative}",
                hint=f"move the file into {self.folder} and name it there",
            )
        return os.path.join(self.folder, folder, name)

    def transcript_now(self, entry: Entry) -> str:
        """The same, also for a session whose conversion was cut off after the old file was removed."""
        path = self.transcript(entry)
        unfinished = entry.get(UNFINISHED)
        if (
            isinstance(unfinished, dict)
            and unfinished.get("change") == "convert"
            and not os.path.lexists(path)
        ):
            new = self.transcript(entry | {"sessionFile": unfinished.get("file")})
            return new if os.path.lexists(new) else path
        return path

    def draft(self, path: str) -> str:
        """Where a transcript is made that is not to be seen yet."""
        name, _, ending = os.path.basename(path).rpartition(".")
        return os.path.join(self.drafts, f"{name}.{os.getpid()}.{ending}")

    def new_transcript(self, format: str, session_id: str, entry: Entry) -> str:  # noqa: A002
        """Choose the path of a new session, relative to the folder."""
        if format == "jsonl":
            return f"{session_id}.jsonl"
        group = entry.get("groupId")
        if isinstance(group, str) and _ID.fullmatch(group):
            relative = f"groups/{group}.json5"
            if not os.path.lexists(os.path.join(self.folder, relative)):
                return relative
        return f"chats/{session_id}.json5"

    def transcripts(self) -> list[str]:
        """List the transcripts that are there, relative to the folder, archives left out."""
        found = [name for name in self._names(".") if name.endswith(".jsonl")]
        for folder in _SUBFOLDERS:
            found += [f"{folder}/{name}" for name in self._names(folder) if name.endswith(".json5")]
        return found

    def archives(self) -> list[str]:
        """List the archived transcripts, relative to the folder."""
        found = [name for name in self._names(".") if _ARCHIVE.fullmatch(name)]
        for folder in _SUBFOLDERS:
            found += [f"{folder}/{name}" for name in self._names(folder) if _ARCHIVE.fullmatch(name)]
        return found

    def archived_name(self, path: str, seconds: float) -> str:
        """Choose a name for an archived transcript that nothing has yet, whatever the clock says."""
        stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3] + "Z"
        name = f"{path}.reset.{stamp}"
        for number in range(2, 10_000):
            if not os.path.lexists(name):
                return name
            name = f"{path}.reset.{stamp}-{number}"
        raise PlainmindError(f"there are too many archives of {path}", hint="delete some of them")

    def companions(self, path: str) -> list[str]:
        """List what was put aside of a transcript: torn lines, damaged texts, copies."""
        folder, name = os.path.split(path)
        marks = tuple(f"{name}.{mark}" for mark in ("torn-", "corrupt-", "damaged-", "bak"))
        return [os.path.join(folder, other) for other in self._names(folder) if other.startswith(marks)]

    def _names(self, folder: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(os.path.join(self.folder, folder)) if name[0] != ".")
        except FileNotFoundError:
            return []

    def _inside(self, path: str) -> str:
        """Make a path relative; one from another machine or home is looked for by its name."""
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        relative = os.path.relpath(real, os.path.realpath(self.folder))
        return os.path.basename(path) if relative.startswith(os.pardir) else relative


def check_id(session_id: str) -> str:
    """Refuse an id that cannot be part of a file name."""
    if not _ID.fullmatch(session_id):
        raise PlainmindError(
            f"`{session_id!s:.80}` cannot be a session id",
            hint="use up to 64 letters, digits, `_` and `-`",
        )
    return session_id


def check_key(key: str) -> None:
    """Refuse a key that could not be read aloud or typed."""
    if not key or len(key) > 512 or not key.isprintable():
        raise PlainmindError(
            f"`{key!r:.80}` cannot be a session key",
            hint="use up to 512 printable characters, such as `agent:main:main`",
        )


# --- the registry: written in one step ---


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
            return self._gather({})
        return self.change(dict, "rebuild the session registry")

    def change(self, change: Callable[[Sessions], T], operation: str) -> T:
        """Change the entries under the lock, and write them down if they did change."""
        with self.hold(operation) as held:
            result = change(held.sessions)
            held.write()
        return result

    @contextmanager
    def hold(self, operation: str) -> Iterator[Held]:
        """Hold the lock during a block; waiting ends after `timeout_s`, with an error that names the holder."""
        with explain_errors("make", self.places.folder):
            make_folders(self._system, self.places.folder)
        with hold_lock(self._lock, operation=operation, timeout_s=self._timeout_s, system=self._system):
            current = self._read_settled()
            found = current.sessions
            sessions = self._rebuild(current.data) if found is None else deepcopy(found)
            if self.finish(sessions):
                self._write(current, sessions)
                self.forget_copies()
                current = _Current(_encode(sessions), deepcopy(sessions))
            yield Held(sessions, partial(self._write, current))

    def move_to(self, name: str) -> None:
        """Give the registry its other name; the caller has converted what it names."""
        with self.hold("rename the session registry") as held:
            held.write()
            old, new = self.places.registry(self._preferred), os.path.join(self.places.folder, name)
            if old != new and os.path.lexists(old):
                write_atomically(new, _encode(held.sessions), system=self._system)
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
            with open_plain_file(path, system=self._system) as fd:
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

    def _read_settled(self) -> _Current:
        """The registry, once a program that writes it over without our lock has had the time to end that."""
        current = self._current()
        if current.data is not None and current.sessions is None:
            time.sleep(_PATIENCE_S)
            current = self._current()
        return current

    def _write(self, old: _Current, sessions: Sessions) -> None:
        path = self.places.registry(self._preferred)
        data = _encode(sessions)
        if old.sessions is not None and data == _encode(old.sessions):
            return
        if old.data is not None and old.sessions is not None:
            # Read again if a program that knows no better leaves the registry empty or torn.
            remove_abandoned(f"{path}.bak", self._system)
            write_atomically(f"{path}.bak", old.data, system=self._system)
        remove_abandoned(path, self._system)
        write_atomically(path, data, system=self._system)

    def _rebuild(self, damaged: bytes | None) -> Sessions:
        """Gather the entries anew, and keep the damaged text aside."""
        if damaged is None:
            return self._gather({})
        path = self.places.registry(self._preferred)
        aside = f"{path}.corrupt-{time.time_ns()}"
        write_atomically(aside, damaged, system=self._system)
        sessions = self._gather(salvage_members(damaged))
        import logging

        logging.getLogger(__name__).warning(
            "%s was damaged and has been rebuilt with %d sessions; the damaged file is %s",
            path,
            len(sessions),
            aside,
        )
        return sessions

    def _gather(self, saved: Sessions) -> Sessions:
        """Put together what was saved, what only the last copy knows, and what only the transcripts know."""
        known = {key: entry for key, entry in (self._copy() | saved).items() if self._has_transcript(entry)}
        return add_sessions_of_transcripts(self.places, known, self._system)

    def _copy(self) -> Sessions:
        try:
            with open_plain_file(f"{self.places.registry(self._preferred)}.bak", system=self._system) as fd:
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


def add_sessions_of_transcripts(places: Places, known: Sessions, system: System) -> Sessions:
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
        with open_plain_file(path, system=system) as fd:
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
    return with_place_of_count(entry, 0), key if isinstance(key, str) else None


def _header(fd: int, relative: str, system: System) -> Entry:
    if relative.endswith(".json5"):
        document = read_object(read_range(system, fd, 0, _HEADER_BYTES)) or {}
        header = document.get("header")
        return header if isinstance(header, dict) else document
    line = next(forwards(fd, system=system, max_line_bytes=_HEADER_BYTES), None)
    found = entries_in(line.data).entries if line is not None else ()
    return found[0] if found and found[0].get("type") == "session" else {}


def _encode(sessions: Sessions) -> bytes:
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
