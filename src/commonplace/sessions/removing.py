"""Putting sessions away, where they stay searchable, and deleting them, after which nothing of them is left."""

from __future__ import annotations

import os

from commonplace.files.failures import explaining
from commonplace.files.ids import new_id
from commonplace.sessions.entries import iso
from commonplace.sessions.protocol import Draft
from commonplace.sessions.shelf import Shelf
from commonplace.text.transcripts import Entry

ARCHIVED = "commonplace.archived"


def archive(shelf: Shelf, name: str) -> str:
    """Rename a transcript and free its key; what the registry knew of it becomes its last line."""
    with shelf.registry.holding(f"archive session {name[:30]}") as held:
        key, entry = shelf.known(held.sessions, name)
        transcript = shelf.transcript(entry)
        archived = shelf.places.archived_name(transcript.path, shelf.clock())
        if os.path.exists(transcript.path):
            last: Entry = {
                "type": "custom",
                "id": new_id(shelf.clock),
                "timestamp": iso(shelf.clock()),
                "customType": ARCHIVED,
                "data": {"sessionKey": key, "entry": entry},
            }
            transcript.add([Draft(last)])
            with shelf.locked(transcript.path, "archive"), explaining("archive", transcript.path):
                shelf.system.replace(transcript.path, archived)
                shelf.system.fsync_folder(os.path.dirname(archived))
        del held.sessions[key]
        held.write()
    return archived


def delete(shelf: Shelf, name: str) -> None:
    """Remove a session, by key or id, or an archive, by its name."""
    if name in shelf.places.archives():
        _remove(shelf, os.path.join(shelf.places.folder, name))
        return
    with shelf.registry.holding(f"delete session {name[:30]}") as held:
        key, entry = shelf.known(held.sessions, name)
        path = shelf.places.transcript(entry)
        del held.sessions[key]
        others = (other for other in held.sessions.values() if isinstance(other, dict))
        if all(shelf.places.transcript(other) != path for other in others):
            _remove(shelf, path)
        held.write()
        shelf.registry.forget_copies()


def _remove(shelf: Shelf, path: str) -> None:
    with shelf.locked(path, "delete"), explaining("delete", path):
        for each in (path, *shelf.places.companions(path)):
            if os.path.lexists(each):
                shelf.system.unlink(each)
        shelf.system.fsync_folder(os.path.dirname(path))
