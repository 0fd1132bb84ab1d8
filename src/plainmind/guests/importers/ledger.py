"""What was imported before: how far each original was read, and which session it went to."""

from __future__ import annotations

import json
import os

from plainmind.base.errors import NotFound
from plainmind.base.value import record
from plainmind.files.atomic import remove_abandoned, write_atomically
from plainmind.files.jsonl import open_plain_file
from plainmind.files.system import SYSTEM, System, read_range
from plainmind.guests.importers.protocol import Place
from plainmind.sessions.json5_transcript import read_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = 1


@record
class ReadFile:
    """What is known of one original."""

    fingerprint: list[int]
    places: dict[str, Place]  # by session id of ours


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
        files = {path: _written(file) for path, file in sorted(self.files.items())}
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


def _written(file: ReadFile) -> dict[str, Any]:
    places = {session: [place.at, place.number, place.tail] for session, place in file.places.items()}
    return {"is": file.fingerprint, "read": places}


def _read(row: object) -> ReadFile | None:
    if not isinstance(row, dict):
        return None
    marks, places = row.get("is"), row.get("read")
    if not isinstance(marks, list) or not isinstance(places, dict):
        return None
    return ReadFile(marks, {session: _place(found) for session, found in places.items()})


def _place(found: object) -> Place:
    match found:
        case [int(at), int(number), str(tail)]:
            return Place(at, number, tail)
        case _:
            return Place()
