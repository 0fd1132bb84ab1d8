"""The file of entries: one JSON object a line, for people to read and edit; everything else is made from it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType

from commonplace.entries.model import Entry, entry_of
from commonplace.files.append import append
from commonplace.files.atomic import write_atomically
from commonplace.files.failures import explaining
from commonplace.files.locks import hold_lock
from commonplace.files.records import Tail
from commonplace.files.system import SYSTEM, make_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Signature: TypeAlias = tuple[int, int, int]
Entries: TypeAlias = Mapping[str, Entry]

_NO_FILE: Signature = (0, 0, 0)
_TIMEOUT_S = 30.0


class EntryFile:
    """The entries of one agent. Safe to share between threads; processes take turns by a lock."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.path = os.path.join(self.folder, "entries.jsonl")
        self._guard = threading.Lock()
        self._known: tuple[Signature, Entries] = (_NO_FILE, MappingProxyType({}))

    def changing(self, operation: str) -> AbstractContextManager[None]:
        """Wait to be the only one who changes the file."""
        with explaining("make", self.folder):
            make_folders(SYSTEM, self.folder)
        return hold_lock(os.path.join(self.folder, "entries.lock"), operation=operation, timeout_s=_TIMEOUT_S)

    def read(self) -> tuple[Signature, Entries]:
        """All entries by id, the oldest first; and what changes whenever the file does."""
        signature = self._signature()
        with self._guard:
            if self._known[0] == signature:
                return self._known
        found = {entry.id: entry for line in self._lines() if (entry := _read(line)) is not None}
        known = (signature, MappingProxyType(found))
        with self._guard:
            self._known = known
        return known

    def add(self, entry: Entry) -> None:
        """Add an entry. On disk when this returns. Needs the lock."""
        before, entries = self.read()
        record = _written(entry)
        append(
            self.path,
            record,
            state_dir=self.folder,
            record_id=f'"id":"{entry.id}"',
            tail=Tail.JSONL,
            look_back_bytes=0,
        )
        after = self._signature()
        # Only if nobody else has written meanwhile do we know what is there.
        if before == _NO_FILE or after[1] == before[1] + len(record):
            with self._guard:
                self._known = (after, MappingProxyType({**entries, entry.id: entry}))

    def remove(self, ids: Iterable[str]) -> None:
        """Write the file anew without some entries: no byte of them is left. Needs the lock."""
        gone = frozenset(ids)
        self._rewrite(lambda entry: None if entry.id in gone else entry)

    def replace(self, changed: Mapping[str, Entry]) -> None:
        """Write the file anew with some entries changed. Needs the lock."""
        self._rewrite(lambda entry: changed.get(entry.id, entry))

    def _rewrite(self, made: Callable[[Entry], Entry | None]) -> None:
        kept = []
        for line in self._lines():
            entry = _read(line)
            if entry is None:
                kept.append(line + b"\n")  # a person's, or damaged: not ours to throw away
                continue
            new = made(entry)
            if new is not None:
                kept.append(line + b"\n" if new == entry else _written(new))
        write_atomically(self.path, b"".join(kept))

    def _lines(self) -> list[bytes]:
        with explaining("read", self.path):
            try:
                with open(self.path, "rb") as file:
                    return [line for line in file.read().split(b"\n") if line.strip()]
            except FileNotFoundError:
                return []

    def _signature(self) -> Signature:
        with explaining("look at", self.path):
            try:
                found = os.stat(self.path)
            except FileNotFoundError:
                return _NO_FILE
        return found.st_ino, found.st_size, found.st_mtime_ns


def _read(line: bytes) -> Entry | None:
    try:
        facts = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry_of(facts) if isinstance(facts, dict) else None


def _written(entry: Entry) -> bytes:
    return json.dumps(entry.as_json(), ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
