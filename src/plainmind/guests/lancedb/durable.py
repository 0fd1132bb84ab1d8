"""Files that LanceDB has written, brought to the disk: it never waits for that, and a pointer to them does."""

from __future__ import annotations

import os

from plainmind.files.system import System


class SyncedFiles:
    """Remembers which files of a table are on the disk: LanceDB never changes one, it writes others."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._known: set[tuple[str, int]] = set()  # path and inode

    def sync(self, table: str) -> None:
        """Wait until a table survives a power cut."""
        found: set[tuple[str, int]] = set()
        for folder, _, names in os.walk(table):
            paths = [os.path.join(folder, name) for name in names]
            files = {(path, self._system.stat(path).st_ino) for path in paths}
            for path, _inode in files - self._known:
                self._sync_file(path)
            if files - self._known:
                self._system.fsync_folder(folder)
            found |= files
        self._system.fsync_folder(os.path.dirname(table))
        self._known = found

    def _sync_file(self, path: str) -> None:
        opened = self._system.open(path, os.O_RDONLY)
        try:
            self._system.fsync(opened)
        finally:
            self._system.close(opened)
