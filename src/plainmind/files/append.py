"""The one way to add to a file: when `append` returns, the record is in it once and on the disk; and ids of records."""

from __future__ import annotations

import enum
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise

from plainmind.base.errors import PathNotAllowed, PlainmindError, StorageFailure
from plainmind.base.value import replace, value
from plainmind.files.atomic import put_in_place, write_temporary
from plainmind.files.jsonl import end_of_last_line
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    explanation,
    hold_lock,
    lock_path_for,
    make_folders,
    read_range,
    write_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


Read: TypeAlias = Callable[[int, int], bytes]  # the bytes from one offset to another, fewer at the end

_SEARCH_BYTES = 1 << 20
# An editor that saves in place empties the file and writes it in pieces: it is left alone until it has been still for
# so long, longer when it came between, or for as long as somebody is willing to wait.
_STILL_S = 0.01
_STILL_AGAIN_S = 0.05
_LONGEST_WAIT_S = 0.5


class Tail(enum.Enum):
    """Whose file it is, and so what may be done with a last line that does not end."""

    MARKDOWN = "markdown"  # people's: nothing is ever cut, an unfinished last line only gets its newline
    JSONL = "jsonl"  # ours: every line is one JSON value, a torn last line is put aside


@value
class Found:
    """The record is in the bytes; `missing` is the end of it that a killed writer did not get to write."""

    start: int
    missing: bytes = b""


@value
class Appended:
    """Where the record now stands."""

    offset: int
    created: bool  # the file did not exist before
    already_there: bool = False  # an earlier try had written it
    was_changed: bool = False  # by others, since the last append


@value
class _Wanted:
    """One call of `append`, unchanged through all its tries."""

    path: str
    record: bytes
    record_id: bytes
    tail: Tail
    header: bytes
    separator: bytes
    look_back: int | None
    system: System
    known: bytes = b""  # how the file looked when it was last added to
    is_again: bool = False  # somebody saved the file while it was being added to


def append(
    path: str,
    record: bytes,
    *,
    state_dir: str,
    record_id: str,
    tail: Tail,
    header: bytes = b"",
    separator: bytes = b"",
    look_back_bytes: int | None = None,
    system: System = SYSTEM,
    timeout_s: float = 10.0,
) -> Appended:
    r"""Add whole lines to the end of a file, durably, whatever other processes, editors and kill -9 do.

    `record` ends with "\n" and contains `record_id`. Trying again with the same id after an error or a
    crash never doubles the record: it is looked for in the file, or in its last `look_back_bytes`. Give 0 for
    an id just made; anything between is a bet on how much others wrote since the first try. Of an id that
    other records mention, give a longer form that only this record has, such as `"id":"01J…"`. A new or
    empty file gets `header` first; otherwise `separator` goes between what is there and the record.

    Raises StorageFailure, WorkspaceError, PathNotAllowed or LockTimeout; none of them acknowledges anything.
    An editor that saves just now is waited for. One that loaded the file before the append and saves after it still
    drops the record: that looks like a deletion on purpose, and only the history knows.
    """
    wanted = _Wanted(path, record, record_id.encode(), tail, header, separator, look_back_bytes, system)
    _check(wanted)
    deadline = time.monotonic() + timeout_s
    lock = lock_path_for(state_dir, path)
    operation = f"append to {os.path.basename(path)}"
    with hold_lock(lock, operation=operation, timeout_s=timeout_s, system=system) as held:
        wanted = replace(wanted, known=held.mark())
        while True:
            with explain_errors("append to", path):
                appended, looks = _try_once(wanted)
            if appended is not None:
                held.leave_mark(looks)
                return appended
            if time.monotonic() > deadline:
                raise StorageFailure(
                    f"could not append to {path}: another program keeps replacing the file",
                    hint="find out which program saves it again and again; nothing was acknowledged",
                )
            # The new file is another text, in which a person may have moved the record anywhere.
            wanted = replace(wanted, look_back=None, is_again=True)


def _check(wanted: _Wanted) -> None:
    if not wanted.record.endswith(b"\n"):
        raise ValueError("a record is whole lines: it must end with a newline")
    if not wanted.record_id or wanted.record_id not in wanted.record:
        raise ValueError("a record must contain its id, or a retry could not find it")
    if wanted.tail is Tail.JSONL and wanted.record.count(b"\n") != 1:
        raise ValueError("a JSONL record is exactly one line")


def _try_once(wanted: _Wanted) -> tuple[Appended | None, bytes]:
    """Append to the file that now has the name, and say how it looks; None when it then lost the name, or our bytes."""
    fd, created = _open(wanted.path, wanted.system)
    try:
        status = wanted.system.fstat(fd)
        _refuse_links(status, wanted.path)
        size = status.st_size if created else _size_when_still(wanted, fd, status)
        was_changed = bool(wanted.known) and _looks(status) != wanted.known
        found, payload, lead = _plan(wanted, fd, size)
        start = _write_whole(wanted, fd, payload) if payload else size
        offset = found.start if found is not None else start + lead
        if start != size and wanted.is_again and _was_there(wanted, fd, start, payload):
            return None, b""
        if not _make_durable(wanted, fd, start, payload) or (wanted.is_again and _remove_copies(wanted, fd)):
            return None, b""
        looks = b""
        with suppress(OSError):  # it is acknowledged all the same; the next one may wait a moment
            looks = _looks(wanted.system.fstat(fd))
    except BaseException:
        if created:
            _take_back_empty_file(wanted, fd)
        raise
    finally:
        with suppress(OSError):  # the bytes are synced and read back, or an error is on its way
            wanted.system.close(fd)
    return Appended(offset, created, already_there=found is not None, was_changed=was_changed), looks


def _looks(status: os.stat_result) -> bytes:
    """How a file looks from outside: another look is another content."""
    return b"%d %d %d" % (status.st_ino, status.st_size, status.st_mtime_ns)


def _size_when_still(wanted: _Wanted, fd: int, status: os.stat_result) -> int:
    """Wait until an editor that saves the file just now is done with it; how large it is then.

    What we left ourselves is nobody's work; and what was left alone for long enough is done.
    """
    age_s = time.time() - status.st_mtime_ns / 1e9
    is_fresh = 0 <= age_s < _STILL_S and _looks(status) != wanted.known
    if not (wanted.is_again or (is_fresh and wanted.tail is Tail.MARKDOWN)):
        return status.st_size
    now = time.monotonic()
    last, since, deadline = _looks(status), now, now + _LONGEST_WAIT_S
    enough_s = _STILL_AGAIN_S if wanted.is_again else _STILL_S
    while now - since < enough_s and now < deadline:
        time.sleep(_STILL_S / 4)
        status = wanted.system.fstat(fd)
        now = time.monotonic()
        if _looks(status) != last:
            last, since = _looks(status), now
    return status.st_size


def _was_there(wanted: _Wanted, fd: int, start: int, payload: bytes) -> bool:
    """Take our bytes back if a save that came between our look and our write has the record already."""
    read = partial(read_range, wanted.system, fd)
    found = find_record(read, 0, start, wanted.record, wanted.record_id)
    return found is not None and not found.missing and _take_back(wanted, fd, start, len(payload))


def _remove_copies(wanted: _Wanted, fd: int) -> bool:
    """Write the file anew with one copy of the record, when a save kept one and we added another; False for one."""
    status = wanted.system.fstat(fd)
    data = read_range(wanted.system, fd, 0, status.st_size)
    before, record, after = data.partition(wanted.record)
    if wanted.tail is Tail.JSONL or wanted.record not in after:
        return False
    single = before + record + after.replace(wanted.record, b"")
    temporary = write_temporary(wanted.path, single, 0o600, status, wanted.system)
    if _still_named(wanted, fd) and _looks(wanted.system.fstat(fd)) == _looks(status):
        put_in_place(temporary, wanted.path, wanted.system)
    else:
        wanted.system.unlink(temporary)  # saved again: another look tells what there is now
    return True


def _open(path: str, system: System) -> tuple[int, bool]:
    """Open for reading and appending; the second value says that the file was made by this call."""
    flags = os.O_RDWR | os.O_APPEND | os.O_NONBLOCK  # a FIFO must not make us wait
    while True:
        with suppress(FileNotFoundError):
            return system.open(path, flags), False
        make_folders(system, os.path.dirname(path))
        with suppress(FileExistsError):  # made by another process since: open that one
            return system.open(path, flags | os.O_CREAT | os.O_EXCL), True


def _refuse_links(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise PathNotAllowed(f"{path} is not a plain file", hint="remove it or choose another name")
    if status.st_nlink > 1:
        raise PathNotAllowed(
            f"{path} has {status.st_nlink} names (hard links): writing to it would change the others too",
            hint=f"make it a file of its own: cp {path} {path}.copy && mv {path}.copy {path}",
        )


def _plan(wanted: _Wanted, fd: int, size: int) -> tuple[Found | None, bytes, int]:
    """Decide what to write: the record if it is there, the bytes to write, how many of them precede it."""
    if wanted.tail is Tail.JSONL:
        size, newline = _repair_jsonl(wanted, fd, size)
    else:
        newline = b"" if not size or wanted.system.pread(fd, 1, size - 1) == b"\n" else b"\n"
    found = _look_for(wanted, fd, size)
    if found is not None:
        return found, found.missing, 0
    lead = newline + wanted.separator if size else wanted.header
    return None, lead + wanted.record, len(lead)


def _look_for(wanted: _Wanted, fd: int, size: int) -> Found | None:
    if wanted.look_back == 0:
        return None
    begin = 0 if wanted.look_back is None else max(0, size - wanted.look_back)
    read = partial(read_range, wanted.system, fd)
    return find_record(read, begin, size, wanted.record, wanted.record_id)


def _repair_jsonl(wanted: _Wanted, fd: int, size: int) -> tuple[int, bytes]:
    """Mend a last line without newline: the size to append at, and the newline that a whole line lacks."""
    start = end_of_last_line(fd, size, system=wanted.system)
    if start == size:
        return size, b""
    line = read_range(wanted.system, fd, start, size)
    if is_whole_json(line):
        return size, b"\n"
    put_aside(wanted.path, line, wanted.system)
    wanted.system.ftruncate(fd, start)
    return start, b""


def put_aside(path: str, line: bytes, system: System) -> None:
    """Keep a torn line beside its file, durably, before it is cut off."""
    copy = f"{path}.torn-{time.time_ns()}"
    fd = system.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(system, fd, line)
        system.fsync(fd)
    except BaseException:
        system.unlink(copy)
        raise
    finally:
        system.close(fd)
    system.fsync_folder(os.path.dirname(path) or ".")


def _write_whole(wanted: _Wanted, fd: int, payload: bytes) -> int:
    """Write in one call, all or nothing; the offset where O_APPEND put it."""
    written = wanted.system.write(fd, payload)
    start = wanted.system.position(fd) - written
    if written == len(payload):
        return start
    undone = _take_back(wanted, fd, start, written)
    raise StorageFailure(
        f"could not append to {wanted.path}: the disk took only {written} of {len(payload)} bytes",
        hint="free some space; "
        + ("nothing was written" if undone else "a part of the text is still at its end"),
    )


def _make_durable(wanted: _Wanted, fd: int, start: int, payload: bytes) -> bool:
    """Sync the bytes and the name, then look whether they are still there; an error takes the bytes back.

    A failed sync is never tried again: the kernel may have dropped the pages and would then report success.
    Cutting the bytes off lets the next append write them anew, into pages that are honestly dirty.
    """
    try:
        wanted.system.fdatasync(fd)
        # Also for a file that we did not make: an editor, or a writer that was killed, may not have done it.
        wanted.system.fsync_folder(os.path.dirname(wanted.path) or ".")
        return _still_named(wanted, fd) and (
            read_range(wanted.system, fd, start, start + len(payload)) == payload
        )
    except OSError as error:
        _take_back(wanted, fd, start, len(payload))
        raise explanation(error, "append to", wanted.path, outcome=_outcome(wanted)) from error


def _take_back(wanted: _Wanted, fd: int, start: int, length: int) -> bool:
    """Cut off what we wrote, unless another process has written behind it."""
    try:
        if length and wanted.system.fstat(fd).st_size == start + length:
            wanted.system.ftruncate(fd, start)
            return True
    except OSError:
        return False  # the error that brought us here is the one to report
    return not length


def _outcome(wanted: _Wanted) -> str:
    """Say what a descriptor of its own, opened after the failure, finds in the file."""
    try:
        fd = wanted.system.open(wanted.path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            found = _look_for(replace(wanted, look_back=None), fd, wanted.system.fstat(fd).st_size)
        finally:
            wanted.system.close(fd)
    except OSError:
        return "the file cannot be read back, and the record is not acknowledged"
    if found is None:
        return "nothing was written"
    return "the record is in the file but may not survive a power cut: it is not acknowledged"


def _still_named(wanted: _Wanted, fd: int) -> bool:
    """Whether the file that we wrote to is the one that readers will open."""
    try:
        named = wanted.system.stat(wanted.path)
    except FileNotFoundError:
        return False
    return os.path.samestat(named, wanted.system.fstat(fd))


def _take_back_empty_file(wanted: _Wanted, fd: int) -> None:
    """Leave no empty file behind a failed first append."""
    with suppress(OSError, PlainmindError):  # the failure itself is on its way to the caller
        if not wanted.system.fstat(fd).st_size and _still_named(wanted, fd):
            wanted.system.unlink(wanted.path)


# --- where a record stands in a file that people may edit: pure questions about bytes ---


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
            line_start = max(0, at - _SEARCH_BYTES)
            edited = edited or Found(line_start + read(line_start, at).rfind(b"\n") + 1)
        elif start + same == size:
            return Found(start, missing=record[same:])
        elif not _broken_off(read(start + same, start + same + 1), record[same:]):
            edited = edited or Found(start)
    return edited


def _occurrences(read: Read, begin: int, size: int, wanted: bytes) -> Iterator[int]:
    """Find every place of some bytes, one block at a time: transcripts can be larger than memory."""
    while begin < size:
        block = read(begin, min(size, begin + _SEARCH_BYTES + len(wanted) - 1))
        at = block.find(wanted)
        while at >= 0:
            yield begin + at
            at = block.find(wanted, at + 1)
        begin += _SEARCH_BYTES


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


Clock: TypeAlias = Callable[[], float]  # seconds since 1970
RandomBytes: TypeAlias = Callable[[int], bytes]

# No I, L, O or U: an id read aloud or copied by hand stays the same id.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_LETTER_OF_BYTE = (_ALPHABET * 8).encode()  # five bits of it
_DIGIT_OF_LETTER = str.maketrans(_ALPHABET, "0123456789abcdefghijklmnopqrstuv")
_FOLLOWING = dict(pairwise(_ALPHABET))
_CHANCE_LETTERS = 16
_CHANCE_BITS = 5 * _CHANCE_LETTERS
_LATEST_MS = (1 << 48) - 1

_guard = threading.Lock()
_last_ms = -1
_last = ""


def new_id(clock: Clock = time.time, random: RandomBytes = os.urandom) -> str:
    """Give 26 characters: 48 bits of milliseconds, 80 of chance; above every earlier id of this process."""
    global _last_ms, _last  # noqa: PLW0603 -- one sequence a process is what makes ids monotone
    ms = min(max(int(clock() * 1000), 0), _LATEST_MS)
    with _guard:
        if ms > _last_ms:
            chance = random(_CHANCE_LETTERS).translate(_LETTER_OF_BYTE).decode()
            _last = (
                f"{_PAIRS[ms >> 40]}{_PAIRS[ms >> 30 & 1023]}{_PAIRS[ms >> 20 & 1023]}"
                f"{_PAIRS[ms >> 10 & 1023]}{_PAIRS[ms & 1023]}{chance}"
            )
            _last_ms = ms
        # In the same millisecond, or after the clock went back: count on from the last one.
        elif (following := _FOLLOWING.get(_last[-1])) is not None:
            _last = _last[:-1] + following
        else:
            number = int(_last.translate(_DIGIT_OF_LETTER), 32) + 1
            _last = "".join(_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10))
            _last_ms = number >> _CHANCE_BITS
        return _last


def time_of(name: str) -> float:
    """When an id was given, in seconds since 1970. Raises ValueError for what is none."""
    return int(name[:10].translate(_DIGIT_OF_LETTER), 32) / 1000


def _start_anew() -> None:
    """Keep a forked child from counting on to the ids that its parent will give next."""
    global _guard, _last_ms
    # The guard may have been held by a thread that the child does not have.
    _guard, _last_ms = threading.Lock(), -1


os.register_at_fork(after_in_child=_start_anew)
