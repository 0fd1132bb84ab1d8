"""Where a record stands in a file that people may edit, as a pure question about bytes."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Read: TypeAlias = Callable[[int, int], bytes]  # the bytes from one offset to another, fewer at the end

_BLOCK_BYTES = 1 << 20


class Tail(enum.Enum):
    """Whose file it is, and so what may be done with a last line that does not end."""

    MARKDOWN = "markdown"  # people's: nothing is ever cut, an unfinished last line only gets its newline
    JSONL = "jsonl"  # ours: every line is one JSON value, a torn last line is put aside


@value
class Found:
    """The record is in the bytes; `missing` is the end of it that a killed writer did not get to write."""

    start: int
    missing: bytes = b""


def find_record(read: Read, begin: int, size: int, record: bytes, record_id: bytes) -> Found | None:
    """Find a record by its id between `begin` and the end, also when a person has changed its text since.

    A copy that breaks off in the middle of a line was left by a writer that was killed. At the end of the
    file it can still be completed; further up it does not count: what follows it belongs to others.
    """
    offset_of_id = record.index(record_id)
    edited: Found | None = None
    for at in _occurrences(read, begin, size, record_id):
        start = at - offset_of_id
        same = _common_length(read(start, start + len(record)), record) if start >= 0 else 0
        if same == len(record):
            return Found(start)
        if same < offset_of_id + len(record_id):
            line_start = max(0, at - _BLOCK_BYTES)
            edited = edited or Found(line_start + read(line_start, at).rfind(b"\n") + 1)
        elif start + same == size:
            return Found(start, missing=record[same:])
        elif not _broken_off(read(start + same, start + same + 1), record[same:]):
            edited = edited or Found(start)
    return edited


def _occurrences(read: Read, begin: int, size: int, wanted: bytes) -> Iterator[int]:
    """Find every place of some bytes, one block at a time: transcripts can be larger than memory."""
    while begin < size:
        block = read(begin, min(size, begin + _BLOCK_BYTES + len(wanted) - 1))
        at = block.find(wanted)
        while at >= 0:
            yield begin + at
            at = block.find(wanted, at + 1)
        begin += _BLOCK_BYTES


def _common_length(data: bytes, record: bytes) -> int:
    """Count the bytes that both begin with, by halving: comparing long runs is one call in C."""
    low, high = 0, len(record)
    while low < high:
        middle = (low + high + 1) // 2
        if data[:middle] == record[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _broken_off(after: bytes, expected: bytes) -> bool:
    """Whether the newline that the next writer puts behind a torn line stands where the record goes on."""
    return after == b"\n" and not expected.startswith(b"\n")


def is_whole_json(line: bytes) -> bool:
    """Whether a line that lost its newline lost nothing else; a bare number might have lost digits."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)
