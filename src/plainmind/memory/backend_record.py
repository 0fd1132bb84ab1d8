"""What must be known about an engine in the next process too: a few facts in one small file."""

from __future__ import annotations

import os
import threading

from plainmind.files.atomic import write_atomically

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Record:
    """Facts by name. A file that is missing or cannot be read has none: all of them can be found out again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._facts: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Give a fact, None when it is not known."""
        return self.facts().get(name)

    def number(self, name: str) -> float:
        """Give a fact that is a number, 0 when it is not known."""
        found = self[name]
        usable = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < 1e15
        return float(found) if usable else 0.0

    def facts(self) -> Mapping[str, Any]:
        """All facts, as the process that wrote last has left them."""
        with self._lock:
            return self._read()

    def update(self, **facts: Any) -> None:
        """Learn some facts; the others stay, also those that another process learns now. Raises PlainmindError."""
        import json

        from plainmind.files.system import hold_lock

        with self._lock, hold_lock(f"{self._path}.lock", operation="note facts about an engine"):
            known = self._read()
            if {**known, **facts} == known:
                return
            self._facts = {**known, **facts}
            write_atomically(self._path, json.dumps(self._facts, indent=1, sort_keys=True).encode())
            self._seen = self._look()

    def _read(self) -> dict[str, Any]:
        seen = self._look()
        if seen != self._seen or seen is None:
            self._facts = _facts_in(self._path)
            self._seen = seen
        return self._facts

    def _look(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino)


def _facts_in(path: str) -> dict[str, Any]:
    import json

    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(1 << 20))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
