"""A transcript as JSONL: a header and one entry a line, only ever added to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from plainmind.base.errors import ConflictError
from plainmind.files.atomic import put_in_place, write_atomically
from plainmind.files.group_append import Addition, GroupAppender
from plainmind.files.jsonl import RawLine, backwards, end_of_last_line, forwards, open_plain_file
from plainmind.files.system import SYSTEM, System, explain_errors, make_folders, write_all
from plainmind.sessions.entries import (
    Draft,
    Entry,
    Placed,
    entries_in,
    halves,
    id_of,
    join_halves,
    leads_to,
    line_of,
    refuse_too_long,
)
from plainmind.sessions.usage import may_count

_BLOCK_BYTES = 1 << 20


class JsonlTranscript:
    """One JSONL file. Opening and adding read its end only, however long it is."""

    format = "jsonl"

    def __init__(
        self, path: str, *, state_dir: str, system: System = SYSTEM, timeout_s: float = 10.0
    ) -> None:
        self.path = path
        self._system = system
        self._appender = GroupAppender(
            path,
            state_dir=state_dir,
            # Not a method of ours: each would hold the other, and the file stay open until garbage is looked for.
            read_last=partial(_read_last, system),
            join=join_halves,
            is_record=_has_id,
            system=system,
            timeout_s=timeout_s,
        )

    def create(self, header: Entry) -> None:
        """Make the file with its header; the caller holds the lock of the registry."""
        if os.path.lexists(self.path):
            raise ConflictError(f"{self.path} exists already", hint="choose another session id")
        write_atomically(self.path, line_of(header), system=self._system)

    def header(self) -> Entry | None:
        """Read the first line."""
        with open_plain_file(self.path, system=self._system) as fd:
            line = next(forwards(fd, system=self._system), None)
        found = entries_in(line.data).entries if line is not None else ()
        return found[0] if found and found[0].get("type") == "session" else None

    def add(self, drafts: Sequence[Draft]) -> None:
        """Add lines, with those of other threads, in one write and one sync."""
        additions = list(map(_addition, drafts))
        self._appender.add(additions)
        for draft, addition in zip(drafts, additions, strict=True):
            draft.already_there = addition.already_there

    def entries(self, after: int = 0) -> Iterator[Placed]:
        """Read forwards, one line at a time."""
        with open_plain_file(self.path, system=self._system) as fd:
            for line in forwards(fd, start=after, system=self._system):
                yield from _place(line)

    def backwards(self, before: int | None = None) -> Iterator[Placed]:
        """Read backwards, one line at a time."""
        with open_plain_file(self.path, system=self._system) as fd:
            for line in backwards(fd, end=before, system=self._system):
                yield from reversed(_place(line))

    def countable(self, after: int, before: int) -> Iterator[Entry]:
        """Decode only the lines that could change a counter."""
        with open_plain_file(self.path, system=self._system) as fd:
            for line in forwards(fd, start=after, stop=before, system=self._system):
                if may_count(line.data):
                    yield from entries_in(line.data).entries

    def end(self) -> int:
        """The offset behind the last whole line."""
        with open_plain_file(self.path, system=self._system) as fd:
            return end_of_last_line(fd, self._system.fstat(fd).st_size, system=self._system)

    def rewrite(self, header: Entry, entries: Iterator[Entry]) -> None:
        """Write beside the place in blocks, sync, and rename."""
        folder, name = os.path.split(self.path)
        temporary = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(8).hex()}.tmp")
        with explain_errors("write", self.path):
            make_folders(self._system, folder)
            fd = self._system.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                try:
                    for block in _blocks(header, entries):
                        write_all(self._system, fd, block)
                    self._system.fsync(fd)
                finally:
                    self._system.close(fd)
            except BaseException:
                self._system.unlink(temporary)
                raise
            put_in_place(temporary, self.path, self._system)
            self._system.fsync_folder(folder)


def _read_last(system: System, fd: int, size: int) -> str | None:
    for line in backwards(fd, end=size, system=system):
        for entry in reversed(entries_in(line.data).entries):
            if entry.get("type") == "session":
                return None
            if entry.get("type") == "leaf" or id_of(entry) is not None:
                return leads_to(entry)
    return None


def _addition(draft: Draft) -> Addition:
    entry = draft.entry
    written = halves(entry)
    refuse_too_long(written)
    look_back = draft.look_back_bytes if draft.is_retry else 0
    name = id_of(entry)
    return Addition(name or "", written, leads_to(entry) if entry.get("type") == "leaf" else name, look_back)


def _has_id(line: bytes, entry_id: str) -> bool:
    return any(id_of(entry) == entry_id for entry in entries_in(line).entries)


def _place(line: RawLine) -> list[Placed]:
    found = entries_in(line.data)
    damaged = found.is_damaged or line.is_too_long
    if not line.is_complete and damaged and not found.entries:
        return []  # still being written, or torn: the next append puts it aside
    rows = [
        Placed(entry, line.number, line.start, line.end)
        for entry in found.entries
        if entry.get("type") != "session"
    ]
    if damaged:
        rows.append(Placed(None, line.number, line.start, line.end, line.data))
    return rows


def _blocks(header: Entry, entries: Iterator[Entry]) -> Iterator[bytes]:
    """Gather lines to blocks that are worth a write each."""
    pending = [line_of(header, is_copy=True)]
    length = 0
    for entry in entries:
        pending.append(line_of(entry, is_copy=True))
        length += len(pending[-1])
        if length > _BLOCK_BYTES:
            yield b"".join(pending)
            pending, length = [], 0
    yield b"".join(pending)
