"""Hashes of texts that were forgotten, so that work in flight cannot bring them back."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable

from plainmind.files.append import Tail, append
from plainmind.files.atomic import write_atomically
from plainmind.files.ids import Clock, new_id
from plainmind.files.system import SYSTEM, System, explain_errors, hold_lock, lock_path_for, read_file

_KEPT_S = 24 * 3600.0
COMPACT_ABOVE_BYTES = 1 << 18


class Tombstones:
    """Which texts must not be stored again, by hash alone; shared by all processes through one file."""

    def __init__(self, path: str, *, system: System = SYSTEM, clock: Clock = time.time) -> None:
        self._path = path
        self._folder = os.path.dirname(path)
        self._system = system
        self._clock = clock
        self._guard = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._buried_at: dict[str, float] = {}

    def bury(self, hashes: Iterable[str]) -> None:
        """Refuse these texts for the next 24 hours, from the moment this returns and in every process."""
        buried = sorted(set(hashes))
        if not buried:
            return
        self._drop_expired()
        name = new_id(self._clock)
        line = json.dumps({"id": name, "at": self._clock(), "hashes": buried}, separators=(",", ":"))
        append(
            self._path,
            line.encode() + b"\n",
            state_dir=self._folder,
            record_id=name,
            tail=Tail.JSONL,
            look_back_bytes=0,
            system=self._system,
        )

    def is_buried(self, text_hash: str) -> bool:
        """Whether this text was forgotten less than 24 hours ago."""
        with self._guard:
            self._refresh()
            at = self._buried_at.get(text_hash)
        # A burial in the future means that the clock went back: it still holds.
        return at is not None and self._clock() - at < _KEPT_S

    def _refresh(self) -> None:
        with explain_errors("read", self._path, outcome="it is not known what was forgotten"):
            try:
                status = self._system.stat(self._path)
            except FileNotFoundError:
                self._seen, self._buried_at = None, {}
                return
            seen = (status.st_ino, status.st_size, status.st_mtime_ns)
            if seen != self._seen:
                self._buried_at = _burials(self._path, self._system)
                self._seen = seen

    def _drop_expired(self) -> None:
        """Rewrite the file once it has grown, under the lock that `append` takes too."""
        if not os.path.exists(self._path) or os.path.getsize(self._path) <= COMPACT_ABOVE_BYTES:
            return
        lock = lock_path_for(self._folder, self._path)
        with hold_lock(lock, operation="drop expired tombstones", system=self._system):
            with explain_errors("read", self._path):
                burials = _burials(self._path, self._system)
            now = self._clock()
            by_time: dict[float, list[str]] = {}
            for text_hash, at in burials.items():
                if now - at < _KEPT_S:
                    by_time.setdefault(at, []).append(text_hash)
            lines = [
                json.dumps({"id": "", "at": at, "hashes": hashes}) + "\n" for at, hashes in by_time.items()
            ]
            write_atomically(self._path, "".join(lines).encode(), system=self._system)


def _burials(path: str, system: System) -> dict[str, float]:
    """Read when each hash was buried last; a line that cannot be read was never acknowledged."""
    found: dict[str, float] = {}
    for line in read_file(path, system=system).splitlines():
        try:
            entry = json.loads(line)
            at = float(entry["at"])
            hashes = [str(text_hash) for text_hash in entry["hashes"]]
        except (ValueError, KeyError, TypeError):
            continue
        found.update((text_hash, max(at, found.get(text_hash, at))) for text_hash in hashes)
    return found
