"""A transcript as one document that people read: every change writes it whole, so it is for short conversations."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence

from plainmind.base.errors import ConflictError, PlainmindError
from plainmind.base.value import value
from plainmind.files.atomic import remove_abandoned, write_atomically
from plainmind.files.jsonl import opened
from plainmind.files.system import SYSTEM, System, hold_lock, lock_path_for, read_range
from plainmind.sessions.documents import document_of, entries_of
from plainmind.sessions.entries import Draft, Entry, Placed, halves, id_of, leads_to, refuse_too_long
from plainmind.sessions.json5_text import is_plain, read_object, saved_messages

MAX_DOCUMENT_BYTES = 64 << 20


@value
class _Read:
    """A document as it was read; `is_damaged` when only some of its messages could be saved."""

    data: bytes
    header: Entry
    entries: list[Entry]
    is_damaged: bool


def entries_in(data: bytes) -> list[Entry]:
    """What a document says; of a damaged one, the messages that can be saved."""
    document = read_object(data)
    return entries_of({"messages": saved_messages(data)} if document is None else document)[1]


class Json5Transcript:
    """One document. It is read as JSON5 and written as JSON, which is JSON5 too."""

    format = "json5"

    def __init__(
        self, path: str, *, state_dir: str, system: System = SYSTEM, timeout_s: float = 10.0
    ) -> None:
        self.path = path
        self._lock = lock_path_for(state_dir, path)
        self._system = system
        self._timeout_s = timeout_s

    def create(self, header: Entry) -> None:
        """Make the document without messages; the caller holds the lock of the registry."""
        if os.path.lexists(self.path):
            raise ConflictError(f"{self.path} exists already", hint="choose another session or group id")
        self._write(header, [])

    def header(self) -> Entry | None:
        """What stands outside of the lists."""
        return self._read().header

    def add(self, drafts: Sequence[Draft]) -> None:
        """Write the document anew with the entries at its end."""
        for draft in drafts:
            refuse_too_long(halves(draft.entry))
        operation = f"append to {os.path.basename(self.path)}"
        with hold_lock(self._lock, operation=operation, timeout_s=self._timeout_s, system=self._system):
            read = self._read()
            entries = read.entries
            known = {id_of(entry) for entry in entries}
            for draft in drafts:
                name = id_of(draft.entry)
                draft.already_there = draft.is_retry and name in known
                if not draft.already_there:
                    parent = leads_to(entries[-1]) if entries else None
                    entries.append({"parentId": parent, **draft.entry})
                    known.add(name)
            self._keep_aside(read)
            remove_abandoned(self.path, self._system)
            self._write(read.header, entries)

    def entries(self, after: int = 0) -> Iterator[Placed]:
        """Read the document, and give its entries."""
        read = self._read()
        for place, entry in enumerate(read.entries[after:], after):
            yield Placed(entry, place + 1, place, place + 1)
        if read.is_damaged:
            end = len(read.entries)
            yield Placed(None, end + 1, end, end, read.data)

    def backwards(self, before: int | None = None) -> Iterator[Placed]:
        """Read the document, and give its entries from the end."""
        entries = self._read().entries
        for place in range(len(entries) if before is None else before, 0, -1):
            yield Placed(entries[place - 1], 0, place - 1, place)

    def countable(self, after: int, before: int) -> Iterator[Entry]:
        """Give the entries between two places."""
        yield from self._read().entries[after:before]

    def end(self) -> int:
        """How many entries there are."""
        return len(self._read().entries)

    def updated_ms(self) -> int:
        """The time of the last change."""
        with opened(self.path, system=self._system) as fd:
            return self._system.fstat(fd).st_mtime_ns // 1_000_000

    def rewrite(self, header: Entry, entries: Iterator[Entry]) -> None:
        """Write the document."""
        self._write(header, list(entries))

    def _read(self) -> _Read:
        with opened(self.path, system=self._system) as fd:
            size = self._system.fstat(fd).st_size
            if size > MAX_DOCUMENT_BYTES:
                raise PlainmindError(
                    f"{self.path} is too large to be read whole: {size / 1e6:.0f} MB",
                    hint="keep long conversations in the format `jsonl`, which is read piece by piece",
                )
            data = read_range(self._system, fd, 0, size)
        document = read_object(data)
        if document is not None:
            return _Read(data, *entries_of(document), is_damaged=False)
        name = os.path.basename(self.path).partition(".")[0]
        saved = {"sessionId": name, "messages": saved_messages(data)}
        return _Read(data, *entries_of(saved), is_damaged=True)

    def _keep_aside(self, read: _Read) -> None:
        """Keep what the next write would lose: a damaged text for good, the comments of a person in one copy."""
        if read.is_damaged:
            write_atomically(f"{self.path}.corrupt-{time.time_ns()}", read.data, system=self._system)
        elif not is_plain(read.data):
            write_atomically(f"{self.path}.bak", read.data, system=self._system)

    def _write(self, header: Entry, entries: list[Entry]) -> None:
        document = document_of(header, entries, updated_ms=time.time_ns() // 1_000_000)
        try:
            data = json.dumps(document, indent=2, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half a character can only be escaped
            data = json.dumps(document, indent=2).encode()
        if len(data) > MAX_DOCUMENT_BYTES:
            raise PlainmindError(
                f"{self.path} would become too large: {len(data) / 1e6:.0f} MB",
                hint="convert this session to the format `jsonl`; nothing was written",
            )
        write_atomically(self.path, data + b"\n", system=self._system)
