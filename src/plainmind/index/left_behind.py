"""What another store has left in the folder of an index: it is not kept up to date, so forgetting deletes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress

from plainmind.base.lazy import pattern
from plainmind.base.model import Source
from plainmind.files.system import SYSTEM, explain_errors, hold_lock, try_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# Where each of the stores that keep an index in a folder has its files.
_PLACES: Mapping[str, str] = {"sqlite": "", "lancedb": "lancedb"}
_WITH_TEXT = pattern(r"(?:gen|bad)-\d+\.sqlite(?:-[a-z]+)?|tables")
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
        for lock in locks:
            _delete(lock)
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
