"""What was taken out of an index and still stands in its bytes: since when, and when it is time to wipe it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress

from plainmind.files.atomic import write_atomically
from plainmind.files.system import SYSTEM, explain_errors, read_file
from plainmind.index.sync import REMOVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Stamp: TypeAlias = tuple[int, int]

# What is taken out of an index is found no more, but its words stay in postings, free pages and logs until all of it is
# written anew. That takes long where there is much, so that it is done once for all that went meanwhile.
LONGEST_S = 3_600.0
_MOST_OF_THE_TIME = 1 / 20  # that wiping may take while nobody waits longer than that


class Remains:
    """Two small files beside the index: since when there is something to wipe, and how long it took the last time."""

    def __init__(self, folder: str, clock: Callable[[], float]) -> None:
        self._mark = os.path.join(folder, REMOVED)
        self._last = os.path.join(folder, "wiped.json")
        self._clock = clock

    def note(self) -> None:
        """Something has been taken out."""
        with explain_errors("note in", self._mark), suppress(FileNotFoundError):
            SYSTEM.touch(self._mark)  # who is wiping just now sees that there is more
            return
        write_atomically(self._mark, json.dumps({"since": self._clock()}).encode())

    def is_due(self, *, soon: bool) -> bool:
        """Whether it is time: after an hour anyway; `soon` is now, unless that takes too much of the time."""
        since = self._clock() - _number(self._mark, "since")
        if not 0 <= since < LONGEST_S:
            return True
        rest = self._clock() - _number(self._last, "at")
        return soon and not 0 <= rest * _MOST_OF_THE_TIME < _number(self._last, "seconds")

    def stamp(self) -> Stamp | None:
        """What changes with every note."""
        with suppress(FileNotFoundError):
            status = os.stat(self._mark)
            return status.st_ino, status.st_mtime_ns
        return None

    def clear(self, before: Stamp | None, seconds: float = 0.0) -> None:
        """All was wiped that had been taken out when the stamp was read, which took so long."""
        if seconds:
            write_atomically(self._last, json.dumps({"at": self._clock(), "seconds": seconds}).encode())
        if before is not None and before == self.stamp():
            with explain_errors("delete", self._mark), suppress(FileNotFoundError):
                SYSTEM.unlink(self._mark)


def _number(path: str, name: str) -> float:
    """A number of a small file; 0 when it cannot be read: then it was long ago."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return float(json.loads(read_file(path))[name])
    return 0.0
