"""From one transcript format to the other, losing nothing: what cannot be read is put beside the new file as it was."""

from __future__ import annotations

import os
import time

from plainmind.files.atomic import write_atomically
from plainmind.files.system import System, explain_errors
from plainmind.sessions.entries import VERSION, Entry, Transcript
from plainmind.sessions.shelf import Shelf
from plainmind.sessions.unfinished import begin, without_mark
from plainmind.sessions.usage import marked


def convert(shelf: Shelf, name: str, wanted: str) -> bool:
    """Give one session the wanted format; False when it has it."""
    with shelf.registry.holding(f"convert session {name[:30]}") as held:
        key, entry = shelf.known(held.sessions, name)
        old = shelf.transcript(entry)
        if old.format == wanted:
            return False
        relative = shelf.places.new_transcript(wanted, entry["sessionId"], entry)
        new = shelf.transcript(entry | {"sessionFile": relative})
        # A process that waits for this lock to append finds the file gone, and then the new one.
        with shelf.locked(old.path, "convert"):
            settled, place = shelf.counted(entry)
            held.sessions[key] = settled if place is None else marked(settled, place)
            begin(held, key, "convert", relative)
            _write_anew(old, new, entry["sessionId"], shelf.system)
            # Before the registry names the new one: as long as the old file is there, a process may add to it.
            with explain_errors("remove", old.path):
                shelf.system.unlink(old.path)
                shelf.system.fsync_folder(os.path.dirname(old.path))
            held.sessions[key] = without_mark(held.sessions[key]) | {"sessionFile": relative}
            if place is not None:
                held.sessions[key] = marked(held.sessions[key], new.end())
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
