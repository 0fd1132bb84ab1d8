"""The lines of a JSONL file, forwards from any offset or backwards from the end, in bounded memory; and one more.

A line ends at a line feed and nowhere else. Nothing is decoded here and no bytes make it raise: what a line says, and
whether it is whole, is for `sessions/entries.py`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from plainmind.base.errors import NotFound, PathNotAllowed
from plainmind.base.lazy import parse_json
from plainmind.base.value import value
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    make_folders,
    read_file,
    read_range,
    write_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Decoding may take eight times a line's bytes (characters of four bytes, twice), and 300 MB must do for all.
MAX_LINE_BYTES = 16 << 20
_BLOCK_BYTES = 1 << 20


@value
class RawLine:
    """One line as it stands in the file."""

    number: int  # from 1; 0 when reading backwards, where lines are not counted
    start: int
    end: int  # the offset behind its newline
    data: bytes  # without the newline; empty when it is too long to be read
    is_complete: bool = True  # False for a last line without newline: it may still be being written
    is_too_long: bool = False


@contextmanager
def open_plain_file(path: str, *, system: System = SYSTEM) -> Iterator[int]:
    """Open a plain file for reading. Raises NotFound, PathNotAllowed, StorageFailure or WorkspaceError."""
    with explain_errors("read", path):
        try:
            fd = system.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            raise NotFound(f"{path} does not exist", hint="it may have been deleted meanwhile") from None
    try:
        if not stat.S_ISREG(system.fstat(fd).st_mode):
            raise PathNotAllowed(f"{path} is not a plain file", hint="folders and devices are not read")
        yield fd
    finally:
        system.close(fd)


def forwards(
    fd: int,
    *,
    start: int = 0,
    number: int = 1,
    stop: int | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
    system: System = SYSTEM,
) -> Iterator[RawLine]:
    """Give the lines from the offset `start`, which must begin a line, numbered from `number`, up to `stop`.

    A line of more than `max_line_bytes` is given without its data. Lines that are added while reading are given too,
    unless `stop` says otherwise.
    """
    gathered = _Gathered(max_line_bytes)
    at = start
    while stop is None or at < stop:
        block = system.pread(fd, _BLOCK_BYTES if stop is None else min(_BLOCK_BYTES, stop - at), at)
        if not block:
            break
        at += len(block)
        first, *others = block.split(b"\n")
        gathered.add(first)
        for part in others:
            data, length, is_too_long = gathered.take()
            yield RawLine(number, start, start + length + 1, data, is_too_long=is_too_long)
            number += 1
            start += length + 1
            gathered.add(part)
    if start < at:
        data, _, is_too_long = gathered.take()
        yield RawLine(number, start, at, data, is_complete=False, is_too_long=is_too_long)


def backwards(
    fd: int,
    *,
    end: int | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
    system: System = SYSTEM,
) -> Iterator[RawLine]:
    """Give the lines before the offset `end` (of the file), last one first; their numbers are all 0."""
    at = end = system.fstat(fd).st_size if end is None else end
    gathered = _Gathered(max_line_bytes)
    is_complete = False
    while at:
        begin = max(0, at - _BLOCK_BYTES)
        *others, last = read_range(system, fd, begin, at).split(b"\n")
        at = begin
        gathered.add(last)
        for part in reversed(others):
            data, length, is_too_long = gathered.take(backwards=True)
            start = end - length - is_complete
            if start < end:
                yield RawLine(0, start, end, data, is_complete, is_too_long)
            end, is_complete = start, True
            gathered.add(part)
    if end:
        data, _, is_too_long = gathered.take(backwards=True)
        yield RawLine(0, 0, end, data, is_complete, is_too_long)


def add_line(path: str, data: bytes, *, system: System = SYSTEM) -> None:
    """Add a line in one write, without waiting for the disk: for what may be lost with the power. Raises OSError.

    The line of a writer that was stopped half-way is ended first. Others may add at the same time.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    try:
        fd = system.open(path, flags)
    except FileNotFoundError:
        make_folders(system, os.path.dirname(path))
        fd = system.open(path, flags)
    try:
        size = system.fstat(fd).st_size
        is_torn = size > 0 and system.pread(fd, 1, size - 1) != b"\n"
        write_all(system, fd, b"\n" * is_torn + data + b"\n")
    finally:
        system.close(fd)


def objects_in(path: str, *, system: System = SYSTEM) -> Iterator[dict[str, Any]]:
    """The objects of a small file of ours; none where there is no file. A line that is torn is passed over."""
    try:
        data = read_file(path, system=system)
    except FileNotFoundError:
        return
    for line in data.splitlines():
        try:
            found = parse_json(line.decode("utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def end_of_last_line(fd: int, size: int, *, system: System = SYSTEM) -> int:
    """Find the offset behind the last newline; equal to `size` when the file ends as it should."""
    end = size
    while end:
        # The one byte that nearly always answers comes first.
        begin = max(0, end - _BLOCK_BYTES) if end < size else end - 1
        at = read_range(system, fd, begin, end).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0


def start_of_line(fd: int, number: int, *, stop: int, system: System = SYSTEM) -> int | None:
    """Find the offset at which a line begins, counted from 1; None when fewer line ends stand before `stop`."""
    missing = number - 1
    at = 0
    while missing > 0 and at < stop:
        block = read_range(system, fd, at, min(stop, at + _BLOCK_BYTES))
        ends = block.count(b"\n")
        if ends >= missing:
            found = -1
            for _ in range(missing):
                found = block.find(b"\n", found + 1)
            return at + found + 1
        missing -= ends
        at += len(block) or stop  # cut off meanwhile
    return 0 if number == 1 else None


def lines_holding(
    fd: int, wanted: bytes, *, start: int = 0, stop: int, system: System = SYSTEM
) -> Iterator[RawLine]:
    """Give the lines between two offsets that hold some bytes; the others are only searched, as fast as memory is."""
    begin = start
    while begin < stop:
        block = read_range(system, fd, begin, min(stop, begin + _BLOCK_BYTES + len(wanted) - 1))
        at = block.find(wanted)
        if at < 0:
            begin += _BLOCK_BYTES
            continue
        before = next(backwards(fd, end=begin + at, system=system), None)
        line_start = before.start if before is not None and not before.is_complete else begin + at
        line = next(forwards(fd, start=line_start, number=0, stop=stop, system=system))
        yield line
        begin = line.end


class _Gathered:
    """The pieces of one line that stretches over blocks; let go of once they are more than may be read."""

    __slots__ = ("_is_too_long", "_length", "_limit", "_pieces")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._length = 0
        self._is_too_long = False

    def add(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length > self._limit:
            self._is_too_long = True
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def take(self, *, backwards: bool = False) -> tuple[bytes, int, bool]:
        """Give the line, its length, and whether it is too long to be had; begin the next one."""
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(reversed(pieces) if backwards else pieces)
        taken = data, self._length, self._is_too_long
        self._pieces, self._length, self._is_too_long = [], 0, False
        return taken
