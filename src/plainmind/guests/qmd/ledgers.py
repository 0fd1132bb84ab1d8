"""How far a conversation has been copied: where in the transcript each part of the copy begins."""

from __future__ import annotations

import json

from plainmind.base.model import FileState
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.notes.discovery import FoundFile
from plainmind.notes.extent import START, Mark, extent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from plainmind.sessions.transcripts import Piece

ENDING = ".parts"


@value
class Ledger:
    """The parts of one copy. It holds no text."""

    begins: tuple[Mark, ...] = ()  # of each part that was written
    state: FileState | None = None  # how the transcript looked, as far as it was copied
    resumes_at: Mark = START  # behind the last part, or at its beginning when it may grow
    is_complete: bool = False

    def is_of(self, found: FoundFile) -> bool:
        """Whether all of a transcript, as it looks now, has been copied."""
        state = self.state
        return (
            self.is_complete
            and state is not None
            and (state.size, state.mtime_ns, state.inode) == (found.size, found.mtime_ns, found.inode)
        )


def ledger_after(piece: Piece, begins: Sequence[Mark]) -> Ledger:
    """What is known once the last of the parts was written, which a piece is in, if it has a text."""
    resumes_at = (begins[-1] if begins else START) if piece.is_last else piece.end
    return Ledger(tuple(begins), piece.state, resumes_at, piece.is_last)


def read_ledger(path: str, found: FoundFile) -> Ledger:
    """What was copied of a transcript; nothing, when that cannot be told."""
    try:
        with open(path, "rb") as file:
            written = json.loads(file.read())
        size, mtime_ns, inode = map(int, written["seen"])
        begins = tuple(map(_mark, written["begins"]))
        resumes_at = _mark(written["resumesAt"])
        is_complete = written["complete"] is True
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Ledger()
    state = FileState(found.path, "sessions", "", size, mtime_ns, inode)
    return Ledger(begins, state, resumes_at, is_complete)


def write_ledger(path: str, ledger: Ledger) -> None:
    """Keep it. Raises StorageFailure."""
    state = ledger.state
    written: dict[str, Any] = {
        "begins": [str(mark) for mark in ledger.begins],
        "complete": ledger.is_complete,
        "resumesAt": str(ledger.resumes_at),
        "seen": None if state is None else [state.size, state.mtime_ns, state.inode],
    }
    write_atomically(path, json.dumps(written).encode())


def _mark(written: str) -> Mark:
    found = extent_of(written)
    if found is None:
        raise ValueError(written)
    return found.whole
