"""Text that is out of an index and still stands in its folder: in its own bytes, or left there by another store."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress

from plainmind.base.lazy import pattern
from plainmind.base.model import Source
from plainmind.files.atomic import write_atomically
from plainmind.files.system import SYSTEM, explain_errors, hold_lock, read_file, try_lock
from plainmind.index.sync import REMOVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
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


# Where each of the stores that keep an index in a folder has its files.
_PLACES: Mapping[str, str] = {"sqlite": "", "lancedb": "lancedb"}
_WITH_TEXT = pattern(r"(?:gen|bad)-\d+\.sqlite(?:-[a-z]+)?|tables")
_BESIDE_TEXT = pattern(r"gen-\d+\.sums")
_LOCK_OF_GENERATION = pattern(r"gen-\d+\.lock")
_TIMEOUT_S = 10.0


def erase_left_behind(folder: str, driver: str, source: Source, paths: Sequence[str]) -> None:
    """Delete the index in a folder of every store but the one in use; the files of one that a process reads are erased.

    It may know a file by an older name, or as it was long ago. So it goes as a whole: it can be made anew.
    """
    for other, within in _PLACES.items():
        place = os.path.join(folder, within)
        if other == driver or not _names(place, _WITH_TEXT) or _deleted(place):
            continue
        from plainmind.index.store import open_store

        with closing(open_store(other, folder=folder)) as store:
            store.erase(source, *paths)


def _deleted(place: str) -> bool:
    """Delete an index, unless it is in use."""
    operation = "delete an index that is not in use"
    with ExitStack() as held:
        held.enter_context(
            hold_lock(os.path.join(place, "writer.lock"), operation=operation, timeout_s=_TIMEOUT_S)
        )
        locks = [os.path.join(place, name) for name in _names(place, _LOCK_OF_GENERATION)]
        for lock in locks:
            taken = try_lock(lock, operation=operation)
            if taken is None:
                return False
            held.enter_context(taken)
        _delete(os.path.join(place, "CURRENT"))
        # Backwards: a database after its logs, which are not found without it.
        for name in reversed(_names(place, _WITH_TEXT)):
            _delete(os.path.join(place, name))
        for path in (*(os.path.join(place, name) for name in _names(place, _BESIDE_TEXT)), *locks):
            _delete(path)
    return True


def _delete(path: str) -> None:
    with explain_errors("delete", path), suppress(FileNotFoundError):
        if os.path.isdir(path):
            SYSTEM.remove_tree(path)
        else:
            SYSTEM.unlink(path)


def _names(place: str, wanted: re.Pattern[str]) -> list[str]:
    try:
        names = sorted(SYSTEM.listdir(place))
    except FileNotFoundError:
        return []
    return [name for name in names if wanted.fullmatch(name)]
