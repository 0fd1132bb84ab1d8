"""A session folder: its files, registry, locks and clock, and changes of several files: fork, convert, archive, delete.

A crash can cut such a change in two. So the registry says first what is about to happen, and the next process finishes
it or takes it back.
"""

from __future__ import annotations

import os
import re
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from weakref import WeakValueDictionary, ref

from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.files.append import Clock, new_id
from plainmind.files.atomic import remove_abandoned, write_atomically
from plainmind.files.system import System, explain_errors, hold_lock, lock_path_for, make_folders
from plainmind.sessions.entries import (
    COUNTERS,
    VERSION,
    Draft,
    Entry,
    Placed,
    Transcript,
    branch,
    count_on,
    iso,
    place_of_count,
    with_place_of_count,
)
from plainmind.sessions.registry import AUDIENCE, UNFINISHED, Held, Places, Registry, Sessions
from plainmind.sessions.transcript_files import Json5Transcript, JsonlTranscript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

    Change: TypeAlias = Literal["archive", "convert", "delete", "fork"]


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


ARCHIVED = "plainmind.archived"  # the type of the last entry of an archive
# `.x.jsonl.4711.0123456789abcdef.tmp` on its way to a name, and `x.4711.jsonl` among the drafts.
_TEMPORARY = pattern(r"\..+\.([0-9]{1,10})\.[0-9a-f]{16}\.tmp")
_DRAFT = pattern(r"\.?[A-Za-z0-9_-]+\.([0-9]{1,10})\..+")


def begin_change(held: Held, key: str, change: Change, file: str = "") -> None:
    """Say in the registry, durably, what is about to happen to a session; `file` is the new file of a conversion."""
    held.sessions[key] = held.sessions[key] | {UNFINISHED: {"change": change, "file": file}}
    held.write()


def without_mark(entry: Entry) -> Entry:
    """The entry as it is when nothing is left to do."""
    return {name: found for name, found in entry.items() if name != UNFINISHED}


def finish_changes(shelf: Shelf, sessions: Sessions) -> bool:
    """Finish or undo what a killed process left; whether anything has changed. The registry is held, and not written.

    No other process is at it: every change is made while the registry is held.
    """
    left = {
        key: entry[UNFINISHED]
        for key, entry in sessions.items()
        if isinstance(entry, dict) and UNFINISHED in entry
    }
    for key, what in left.items():
        change = what.get("change") if isinstance(what, dict) else None
        if change == "delete":
            remove_session(shelf, sessions.pop(key), sessions)
        elif change == "convert":
            _settle_conversion(shelf, sessions, key)
        elif change in {"archive", "fork"} and not os.path.lexists(shelf.places.transcript(sessions[key])):
            del sessions[key]  # it is in the archive already; or the copy was never put in its place
        else:
            sessions[key] = without_mark(sessions[key])
    return bool(left)


def _settle_conversion(shelf: Shelf, sessions: Sessions, key: str) -> None:
    """Keep the old file if it is still there, for a process may have added to it; else the new one is whole."""
    entry = sessions[key]
    old = shelf.places.transcript(entry)
    current = shelf.places.transcript_now(entry)
    sessions[key] = without_mark(entry)
    if current != old:
        sessions[key] |= {"sessionFile": os.path.relpath(current, shelf.places.folder)}
        if place_of_count(entry) is not None:
            sessions[key] = with_place_of_count(sessions[key], shelf.transcript(sessions[key]).end())
        return
    new = shelf.places.transcript(entry | {"sessionFile": entry[UNFINISHED].get("file")})
    with explain_errors("remove", new):
        if new != old and os.path.lexists(new):
            shelf.system.unlink(new)
        if os.path.isdir(os.path.dirname(new)):
            remove_abandoned(new, shelf.system)


def remove_session(shelf: Shelf, entry: Entry, others: Sessions) -> None:
    """Remove the transcript of an entry and all that was put aside of it, unless another session has it too."""
    path = shelf.places.transcript(entry)
    if all(shelf.places.transcript(other) != path for other in others.values() if isinstance(other, dict)):
        remove_files(shelf, path)


def remove_files(shelf: Shelf, path: str) -> None:
    """Remove a transcript, live or archived, and all that was put aside of it."""
    if not os.path.isdir(os.path.dirname(path)):
        return
    with shelf.hold(path, "delete"), explain_errors("delete", path):
        for each in (path, *shelf.places.companions(path)):
            if os.path.lexists(each):
                shelf.system.unlink(each)
        shelf.system.fsync_folder(os.path.dirname(path))


# --- what killed processes leave: copies that were being made, and files that never got their name ---


def forget_leftovers(shelf: Shelf) -> None:
    """Remove what only a process that is gone could have finished: it has what may have been deleted since."""
    for folder in Places.FOLDERS:
        _forget(shelf, os.path.join(shelf.places.folder, folder), _TEMPORARY)
    _forget(shelf, shelf.places.drafts, _DRAFT)


def _forget(shelf: Shelf, folder: str, made_by: re.Pattern[str]) -> None:
    if not os.path.isdir(folder):
        return
    with explain_errors("sweep", folder, outcome="nothing was changed"):
        for name in shelf.system.listdir(folder):
            maker = made_by.fullmatch(name)
            if maker is not None and not _is_running(int(maker[1])):
                with suppress(FileNotFoundError):  # another process was faster
                    shelf.system.unlink(os.path.join(folder, name))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # another user's
    return True


# --- archive and delete ---


def archive(shelf: Shelf, name: str) -> str:
    """Rename a transcript and free its key; what the registry knew of it becomes its last line."""
    with shelf.registry.hold(f"archive session {name[:30]}") as held:
        key, entry = shelf.require(held.sessions, name)
        transcript = shelf.transcript(entry)
        archived = shelf.places.archived_name(transcript.path, shelf.clock())
        if os.path.exists(transcript.path):
            begin_change(held, key, "archive")
            last: Entry = {
                "type": "custom",
                "id": new_id(shelf.clock),
                "timestamp": iso(shelf.clock()),
                "customType": ARCHIVED,
                "data": {"sessionKey": key, "entry": entry},
            }
            transcript.add([Draft(last)])
            with shelf.hold(transcript.path, "archive"), explain_errors("archive", transcript.path):
                shelf.system.replace(transcript.path, archived)
                shelf.system.fsync_folder(os.path.dirname(archived))
        del held.sessions[key]
        held.write()
    return archived


def delete(shelf: Shelf, name: str) -> None:
    """Remove a session, by key or id, or an archive, by its name."""
    forget_leftovers(shelf)
    if name in shelf.places.archives():
        remove_files(shelf, os.path.join(shelf.places.folder, name))
        return
    with shelf.registry.hold(f"delete session {name[:30]}") as held:
        key, _ = shelf.require(held.sessions, name)
        begin_change(held, key, "delete")
        remove_session(shelf, held.sessions.pop(key), held.sessions)
        held.write()
        shelf.registry.forget_copies()


# --- fork ---


def fork(
    shelf: Shelf, origin: Transcript, key: str, at: str | None, fields: dict[str, object]
) -> tuple[str, Transcript]:
    """Copy the branch into a new transcript and give it a free key; its id, and the transcript."""
    session_id = new_id(shelf.clock)
    refuse_taken(shelf.registry.read(), key, session_id)
    starts = array("Q", (placed.start for placed in branch(origin.backwards, leaf=at)))
    if at is not None and not starts:
        raise NotFound(f"there is no entry {at} in {origin.path}", hint="`entries()` lists them")
    starts.reverse()
    entry = shelf.new_entry(session_id, fields)
    parent = os.path.relpath(origin.path, shelf.places.folder)
    header = shelf.new_header(key, session_id, fields) | {"parentSession": parent}
    transcript = shelf.transcript(entry)
    forget_leftovers(shelf)
    draft = shelf.transcript_at(shelf.places.draft(transcript.path))
    try:
        # Not under the lock: a long conversation takes its time. It is not seen before it has its entry.
        draft.rewrite(header, _entries_at(origin.entries(), starts))
        _publish(shelf, key, entry, draft, transcript)
    except BaseException:
        with suppress(OSError):  # it has its name already; or the error on its way is the one to report
            shelf.system.unlink(draft.path)
        raise
    return session_id, transcript


def _publish(shelf: Shelf, key: str, entry: Entry, draft: Transcript, transcript: Transcript) -> None:
    """Give the copy its entry and its place."""
    end = draft.end()
    total = count_on({}, draft.countable(0, end)).get("totalTokens", 0)
    with shelf.registry.hold(f"fork session {entry['sessionId']}") as held:
        refuse_taken(held.sessions, key, entry["sessionId"])
        # What the branch has cost is its own session's business; how full it is goes along.
        held.sessions[key] = with_place_of_count(entry | {"totalTokens": total}, end)
        begin_change(held, key, "fork")
        with explain_errors("write", transcript.path):
            folder = os.path.dirname(transcript.path)
            make_folders(shelf.system, folder)
            shelf.system.replace(draft.path, transcript.path)
            shelf.system.fsync_folder(folder)
        held.sessions[key] = without_mark(held.sessions[key])
        held.write()


def _entries_at(entries: Iterator[Placed], starts: array[int]) -> Iterator[Entry]:
    """Give the entries at the places of a sorted list."""
    at = 0
    for placed in entries:
        while at < len(starts) and starts[at] < placed.start:
            at += 1
        if at == len(starts):
            return
        if placed.start == starts[at] and placed.entry is not None:
            yield placed.entry


# --- convert, losing nothing: what cannot be read is put beside the new file as it was ---


def convert(shelf: Shelf, name: str, wanted: str) -> bool:
    """Give one session the wanted format; False when it has it."""
    with shelf.registry.hold(f"convert session {name[:30]}") as held:
        key, entry = shelf.require(held.sessions, name)
        old = shelf.transcript(entry)
        if old.format == wanted:
            return False
        relative = shelf.places.new_transcript(wanted, entry["sessionId"], entry)
        new = shelf.transcript(entry | {"sessionFile": relative})
        # A process that waits for this lock to append finds the file gone, and then the new one.
        with shelf.hold(old.path, "convert"):
            settled, place = shelf.count(entry)
            held.sessions[key] = settled if place is None else with_place_of_count(settled, place)
            begin_change(held, key, "convert", relative)
            _write_anew(old, new, entry["sessionId"], shelf.system)
            # Before the registry names the new one: as long as the old file is there, a process may add to it.
            with explain_errors("remove", old.path):
                shelf.system.unlink(old.path)
                shelf.system.fsync_folder(os.path.dirname(old.path))
            held.sessions[key] = without_mark(held.sessions[key]) | {"sessionFile": relative}
            if place is not None:
                held.sessions[key] = with_place_of_count(held.sessions[key], new.end())
            held.write()
    return True


def _write_anew(old: Transcript, new: Transcript, session_id: str, system: System) -> None:
    header = old.header() or {"type": "session", "version": VERSION, "id": session_id}
    unreadable: list[bytes] = []
    entries: list[Entry] = []
    for placed in old.entries():
        if placed.entry is None:
            unreadable.append(placed.raw + b"\n")
        else:
            entries.append(placed.entry)
    if unreadable:
        write_atomically(f"{new.path}.damaged-{time.time_ns()}", b"".join(unreadable), system=system)
    new.rewrite(header, iter(entries))
