"""What killed processes leave in a session folder: copies that were being made, and files that never got their name."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from plainmind.base.pattern import pattern
from plainmind.sessions.places import Places
from plainmind.sessions.shelf import Shelf

# `.x.jsonl.4711.0123456789abcdef.tmp` on its way to a name, and `x.4711.jsonl` among the drafts.
_TEMPORARY = pattern(r"\..+\.([0-9]{1,10})\.[0-9a-f]{16}\.tmp")
_DRAFT = pattern(r"\.?[A-Za-z0-9_-]+\.([0-9]{1,10})\..+")


def forget_leftovers(shelf: Shelf) -> None:
    """Remove what only a process that is gone could have finished: it has what may have been deleted since."""
    for folder in Places.FOLDERS:
        _forget(shelf, os.path.join(shelf.places.folder, folder), _TEMPORARY)
    _forget(shelf, shelf.places.drafts, _DRAFT)


def _forget(shelf: Shelf, folder: str, made_by: re.Pattern[str]) -> None:
    if not os.path.isdir(folder):
        return
    for name in shelf.system.listdir(folder):
        maker = made_by.fullmatch(name)
        if maker is not None and not _is_running(int(maker[1])):
            with suppress(FileNotFoundError):  # another process was faster
                shelf.system.unlink(os.path.join(folder, name))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # another user's
    return True
