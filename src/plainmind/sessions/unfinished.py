"""Changes of several files that a crash can cut in two: said in the registry first, finished by the next process."""

from __future__ import annotations

import os

from plainmind.files.atomic import remove_abandoned
from plainmind.files.system import explain_errors
from plainmind.sessions.entries import Entry
from plainmind.sessions.places import UNFINISHED
from plainmind.sessions.registry import Held, Sessions
from plainmind.sessions.shelf import Shelf
from plainmind.sessions.usage import counted_to, marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    Change: TypeAlias = Literal["archive", "convert", "delete", "fork"]


def begin(held: Held, key: str, change: Change, file: str = "") -> None:
    """Say in the registry, durably, what is about to happen to a session; `file` is the new file of a conversion."""
    held.sessions[key] = held.sessions[key] | {UNFINISHED: {"change": change, "file": file}}
    held.write()


def without_mark(entry: Entry) -> Entry:
    """The entry as it is when nothing is left to do."""
    return {name: found for name, found in entry.items() if name != UNFINISHED}


def finish(shelf: Shelf, sessions: Sessions) -> bool:
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
            remove(shelf, sessions.pop(key), sessions)
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
        if counted_to(entry) is not None:
            sessions[key] = marked(sessions[key], shelf.transcript(sessions[key]).end())
        return
    new = shelf.places.transcript(entry | {"sessionFile": entry[UNFINISHED].get("file")})
    with explain_errors("remove", new):
        if new != old and os.path.lexists(new):
            shelf.system.unlink(new)
        if os.path.isdir(os.path.dirname(new)):
            remove_abandoned(new, shelf.system)


def remove(shelf: Shelf, entry: Entry, others: Sessions) -> None:
    """Remove the transcript of an entry and all that was put aside of it, unless another session has it too."""
    path = shelf.places.transcript(entry)
    if all(shelf.places.transcript(other) != path for other in others.values() if isinstance(other, dict)):
        remove_files(shelf, path)


def remove_files(shelf: Shelf, path: str) -> None:
    """Remove a transcript, live or archived, and all that was put aside of it."""
    if not os.path.isdir(os.path.dirname(path)):
        return
    with shelf.locked(path, "delete"), explain_errors("delete", path):
        for each in (path, *shelf.places.companions(path)):
            if os.path.lexists(each):
                shelf.system.unlink(each)
        shelf.system.fsync_folder(os.path.dirname(path))
