"""Putting sessions away, where they stay searchable, and deleting them, after which nothing of them is left."""

from __future__ import annotations

import os

from plainmind.files.ids import new_id
from plainmind.files.system import explain_errors
from plainmind.sessions.entries import Draft, Entry, iso
from plainmind.sessions.leftovers import forget_leftovers
from plainmind.sessions.shelf import Shelf
from plainmind.sessions.unfinished import begin, remove, remove_files

ARCHIVED = "plainmind.archived"


def archive(shelf: Shelf, name: str) -> str:
    """Rename a transcript and free its key; what the registry knew of it becomes its last line."""
    with shelf.registry.holding(f"archive session {name[:30]}") as held:
        key, entry = shelf.known(held.sessions, name)
        transcript = shelf.transcript(entry)
        archived = shelf.places.archived_name(transcript.path, shelf.clock())
        if os.path.exists(transcript.path):
            begin(held, key, "archive")
            last: Entry = {
                "type": "custom",
                "id": new_id(shelf.clock),
                "timestamp": iso(shelf.clock()),
                "customType": ARCHIVED,
                "data": {"sessionKey": key, "entry": entry},
            }
            transcript.add([Draft(last)])
            with shelf.locked(transcript.path, "archive"), explain_errors("archive", transcript.path):
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
    with shelf.registry.holding(f"delete session {name[:30]}") as held:
        key, _ = shelf.known(held.sessions, name)
        begin(held, key, "delete")
        remove(shelf, held.sessions.pop(key), held.sessions)
        held.write()
        shelf.registry.forget_copies()
