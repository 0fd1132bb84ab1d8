"""From one transcript format to the other, losing nothing: what cannot be read is put beside the new file as it was."""

from __future__ import annotations

import time

from commonplace.files.atomic import write_atomically
from commonplace.files.failures import explaining
from commonplace.files.system import System
from commonplace.sessions.entries import VERSION
from commonplace.sessions.protocol import Transcript
from commonplace.sessions.shelf import Shelf
from commonplace.sessions.usage import counted_to, marked
from commonplace.text.transcripts import Entry


def convert(shelf: Shelf, name: str, wanted: str) -> bool:
    """Give one session the wanted format; False when it has it."""
    with shelf.registry.holding(f"convert session {name[:30]}") as held:
        key, entry = shelf.known(held.sessions, name)
        old = shelf.transcript(entry)
        if old.format == wanted:
            return False
        relative = shelf.places.new_transcript(wanted, entry["sessionId"], entry)
        new = shelf.transcript(entry | {"sessionFile": relative})
        # Whoever waits for this lock to append finds the file gone, and then the new one.
        with shelf.locked(old.path, "convert"):
            _write_anew(old, new, entry["sessionId"], shelf.system)
            settled, _ = shelf.counted(entry)
            held.sessions[key] = settled | {"sessionFile": relative}
            if counted_to(entry) is not None:
                held.sessions[key] = marked(held.sessions[key], new.end())
            held.write()
            with explaining("remove", old.path):
                shelf.system.unlink(old.path)
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
