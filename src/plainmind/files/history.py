"""What files were before we changed them, the journal of our own changes, and hashes of what was forgotten for good."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from plainmind.base.errors import NotFound, PlainmindError, StorageFailure
from plainmind.base.lazy import pattern
from plainmind.base.model import sha256_bytes
from plainmind.base.value import replace, value
from plainmind.files.append import Clock, Tail, append, new_id
from plainmind.files.atomic import write_atomically
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    hold_lock,
    lock_path_for,
    read_file,
    write_all,
)

_HASH = pattern(r"[0-9a-f]{64}")
_ONE_OF_SEVERAL = pattern(r" [0-9A-HJKMNP-TV-Z]{26}$")  # files that were changed as one share an id


APPEND = "append"
UNDO = "undo"
_NOTHING = sha256_bytes(b"")  # of a file that was removed, or has nothing in it

_RECENT_JOURNAL_BYTES = 1 << 18
_PRUNED_EVERY_S = 24 * 3600.0


@value
class Version:
    """One journal line: our change gave `path` this content, or added this record to it."""

    id: str
    at: str  # ISO 8601, UTC
    path: str  # as cited
    operation: str
    length: int
    hash: str
    previous: str | None  # the content before, None when there was no file
    available: bool = False  # whether `read` can give it back
    text: str | None = None  # of an appended record, so that it can be put back when somebody saves over it
    made: bool = False  # whether there was no file before its record was appended

    @property
    def what(self) -> str:
        """The operation in words, without the id that it shares with others or that it took back."""
        return _ONE_OF_SEVERAL.sub("", self.operation)


@value
class Problem:
    """Something that a check of the history found wrong, in a sentence."""

    path: str
    what: str


class History:
    """Old contents and a journal in one folder: bounded, erasable, shared by all processes."""

    def __init__(
        self,
        folder: str,
        *,
        max_age_days: int = 90,
        max_bytes: int = 200 << 20,
        system: System = SYSTEM,
        clock: Clock = time.time,
    ) -> None:
        self._folder = folder
        self._journal = os.path.join(folder, "journal.jsonl")
        self._blobs = Blobs(os.path.join(folder, "blobs"), system)
        self._max_age = timedelta(days=max_age_days)
        self._max_bytes = max_bytes
        self._system = system
        self._clock = clock

    def keep(self, path: str, data: bytes, operation: str) -> Version:
        """Store what `path` contains now, before `operation` changes it."""
        with self._hold(f"keep {os.path.basename(path)}"):
            name = self._blobs.put(data)
            latest = self._latest(path)
            if latest is not None and latest.hash == name:
                return latest  # the journal has told of this content already: when we wrote it
            return self._tell(path, f"before {operation}", name, len(data), previous=None)

    def record(
        self,
        path: str,
        *,
        operation: str,
        new_hash: str,
        length: int,
        previous: str | None,
        record_id: str | None = None,
        text: str | None = None,
        made: bool = False,
    ) -> Version:
        """Tell the journal of a change that was made; an `APPEND` names its record, to be verified and put back."""
        with self._hold(f"record {operation}"):
            version = self._tell(
                path,
                operation,
                new_hash,
                length,
                previous=previous,
                record_id=record_id,
                text=text,
                made=made,
            )
            with suppress(PlainmindError):  # the change is made and told; the next one prunes again
                self._prune_once_a_day()
            return version

    def versions(self, path: str | None = None) -> list[Version]:
        """List what the journal tells, of one path or of all, newest first."""
        lines, _ = self._read_journal()
        stored = set(self._blobs)
        return [
            _with_availability(line, stored) for line in reversed(lines) if path is None or line.path == path
        ]

    def has_made(self, path: str, data: bytes) -> bool:
        """Whether an append has made the file that has these bytes: there was none before, and we never removed it.

        Where a note that we did not take back is missing, somebody has written the file anew: then it is theirs.
        """
        lines, _ = self._read_journal()
        if any(line.id.encode() not in data for line in _expected_records(lines).get(path, ())):
            return False
        for line in reversed(lines):
            if line.path == path and (line.made or line.hash == _NOTHING):
                return line.made
        return False

    def paths_of(self, version_id: str) -> list[str]:
        """In which files the journal says that a record was put, whatever became of it since."""
        lines, _ = self._read_journal()
        return [line.path for line in lines if line.id == version_id]

    def read(self, version_id: str) -> bytes:
        """Give the content of a version back; NotFound when it is unknown, pruned or erased."""
        lines, _ = self._read_journal()
        for line in reversed(lines):
            if line.id == version_id and line.text is not None:
                return line.text.encode()
            if line.id == version_id and (data := self._blobs.get(line.hash)) is not None:
                return data
        raise NotFound(
            f"there is no stored version `{version_id}`", hint="list the versions with `plainmind history`"
        )

    def content(self, name: str) -> bytes | None:
        """What has this hash; None when it is not kept any more."""
        return self._blobs.get(name)

    def latest_changes(self) -> list[Version]:
        """The newest change that was not taken back, with all that were made as one with it, newest first.

        Making a workspace is no change. An undo names the line that it took back.
        """
        lines = self._read_journal()[0]
        undone = {line.operation.removeprefix(f"{UNDO} ") for line in lines}
        taken_back = 0  # by an undo of earlier days, which does not say of what
        found: list[Version] = []
        for line in reversed(lines):
            if line.operation == UNDO:
                taken_back += 1
            elif (
                line.operation.startswith(("before ", f"{UNDO} "))
                or line.operation == "init"
                or line.id in undone
            ):
                continue
            elif taken_back and not found:
                taken_back -= 1
            elif not found or line.operation == found[0].operation:
                found.append(line)
                if not _ONE_OF_SEVERAL.search(line.operation):
                    break
        return found

    def prune(self) -> int:
        """Drop what is too old, then the oldest contents until the rest fits; how many contents went.

        `record` does this once a day.
        """
        with self._hold("prune"):
            return self._prune()

    def erase(self, without: Callable[[bytes], bytes | None]) -> int:
        """Remove forgotten text from every stored content; how many had it.

        `without` gets each content and gives back what may stay of it: the same bytes, fewer, or None for
        nothing. The old bytes are overwritten when their file has lost its name. After a crash, call it again.
        """
        with self._hold("erase"):
            self._blobs.sweep()
            renamed: dict[str, tuple[str, int]] = {}
            doomed: list[str] = []
            for name in list(self._blobs):
                data = self._read_content(name)
                cleaned = None if data is None else without(data)
                if cleaned == data and data is not None:
                    continue
                doomed.append(name)
                if cleaned is not None:
                    renamed[name] = (self._blobs.put(cleaned), len(cleaned))
            lines, unreadable = self._read_journal()
            cleaned_lines = [_rename_contents(_without_text(line, without), renamed) for line in lines]
            if cleaned_lines != lines:
                self._write_journal(cleaned_lines, unreadable)
            for name in doomed:
                self._blobs.destroy(name)
            forgotten = sum(old.text != new.text for old, new in zip(lines, cleaned_lines, strict=True))
            return len(doomed) or forgotten

    def paths_with(self, matches: Callable[[bytes], bool]) -> list[str]:
        """Name the paths of the stored contents that match; "" for one of which the journal tells nothing."""
        with self._hold("look through"):
            found = {name for name in self._blobs if matches(self._read_content(name) or b"")}
            lines, _ = self._read_journal()
        told = {line.hash: line.path for line in lines} | {line.previous: line.path for line in lines}
        appended = {line.path for line in lines if line.text is not None and matches(line.text.encode())}
        return sorted({told.get(name, "") for name in found} | appended)

    def missing(
        self, read_file: Callable[[str], bytes | None], *, path: str | None = None, days: int = 7
    ) -> list[Version]:
        """Name the records that were appended lately and are not in their file any more, though it is there.

        We did not remove them: an editor that had read the file earlier may have saved over them.
        """
        since = _iso(self._now() - timedelta(days=days))
        lines, _ = self._read_journal(last_bytes=None if path is None else _RECENT_JOURNAL_BYTES)
        missing: list[Version] = []
        for name, records in _expected_records(lines).items():
            wanted = [line for line in records if line.at >= since and line.text is not None]
            if not wanted or path not in {None, name}:
                continue
            data = read_file(name)
            missing += [line for line in wanted if data is not None and line.id.encode() not in data]
        return missing

    def verify(self, read_file: Callable[[str], bytes | None]) -> list[Problem]:
        """Check every stored content, and that every journalled append is still in its file.

        `read_file` gives the bytes of a cited path, None when it does not exist. A record that was appended
        before our latest rewrite of its file is not asked for: the rewrite may have removed it on purpose.
        """
        lines, unreadable = self._read_journal()
        problems = [
            Problem(self._journal, f"a line of the journal cannot be read: {raw[:60]!r}")
            for raw in unreadable
        ]
        for name in self._blobs:
            try:
                self._blobs.get(name)
            except StorageFailure as error:
                problems.append(Problem(name, str(error)))
        for path, records in _expected_records(lines).items():
            data = read_file(path)
            if data is None:
                problems.append(Problem(path, "the file is gone; it was not removed by plainmind"))
                continue
            problems += [
                Problem(
                    path, f"the note `{line.id}` is no longer in the file; it was not removed by plainmind"
                )
                for line in records
                if line.id.encode() not in data
            ]
        return problems

    def _prune_once_a_day(self) -> None:
        mark, now, last = os.path.join(self._folder, "pruned"), self._clock(), float("-inf")
        never = suppress(FileNotFoundError, ValueError)  # or the mark is damaged
        with explain_errors("read", mark, outcome="nothing was pruned"), never:
            last = float(read_file(mark, system=self._system, most=64))
        # A day in either direction: a clock that was set back must not put it off for years.
        if abs(now - last) >= _PRUNED_EVERY_S:
            self._prune()
            write_atomically(mark, f"{now:.0f}\n".encode(), system=self._system)

    def _prune(self) -> int:
        self._blobs.sweep()
        lines, unreadable = self._read_journal()
        oldest = _iso(self._now() - self._max_age)
        recent = [line for line in lines if line.at >= oldest]
        # A content that was replaced recently was current until then, however old it is.
        wanted = {line.hash for line in recent} | {line.previous for line in recent}
        kept = [line for line in lines if line.at >= oldest or line.hash in wanted]
        if len(kept) < len(lines):
            self._write_journal(kept, unreadable)
        dropped = self._too_much(recent)
        for name in dropped:
            self._blobs.destroy(name)
        return len(dropped)

    def _too_much(self, recent: list[Version]) -> list[str]:
        """Choose the contents that no recent line names, and the oldest of the others beyond the limit."""
        newest_first = dict.fromkeys(
            name for line in reversed(recent) for name in (line.hash, line.previous) if name is not None
        )
        sizes = self._blobs.sizes()
        dropped = [name for name in sizes if name not in newest_first]
        total = 0
        for name in newest_first:
            total += sizes.get(name, 0)
            if total > self._max_bytes and name in sizes:
                dropped.append(name)
        return dropped

    def _read_content(self, name: str) -> bytes | None:
        try:
            return self._blobs.get(name)
        except _Damage:
            return None  # what a damaged content still contains is unknown, so erasing takes it too

    def _tell(
        self,
        path: str,
        operation: str,
        new_hash: str,
        length: int,
        *,
        previous: str | None,
        record_id: str | None = None,
        text: str | None = None,
        made: bool = False,
    ) -> Version:
        version = Version(
            id=record_id or new_id(self._clock),
            at=_iso(self._now()),
            path=path,
            operation=operation,
            length=length,
            hash=new_hash,
            previous=previous,
            text=text,
            made=made,
        )
        append(
            self._journal,
            _line(version),
            state_dir=self._folder,
            record_id=json.dumps(version.id),
            tail=Tail.JSONL,
            look_back_bytes=0 if record_id is None else _RECENT_JOURNAL_BYTES,
            system=self._system,
        )
        return version

    def _latest(self, path: str) -> Version | None:
        """Find the last recent line about a path; one further back is not missed, only told again."""
        lines = self._journal_lines(last_bytes=_RECENT_JOURNAL_BYTES)
        written = json.dumps(path).encode()  # only lines with it are taken apart: there may be a thousand
        versions = (_parse(text) for text in reversed(lines) if written in text)
        return next((version for version in versions if version is not None and version.path == path), None)

    def _read_journal(self, last_bytes: int | None = None) -> tuple[list[Version], list[bytes]]:
        """Read the journal: its lines, oldest first, and those that cannot be read."""
        lines: list[Version] = []
        unreadable: list[bytes] = []
        for text in self._journal_lines(last_bytes):
            version = _parse(text)
            if version is not None:
                lines.append(version)
            else:
                unreadable.append(text)
        return lines, unreadable

    def _journal_lines(self, last_bytes: int | None) -> list[bytes]:
        with explain_errors("read", self._journal, outcome="nothing was changed"):
            try:
                raw = read_file(self._journal, system=self._system, last=last_bytes)
            except FileNotFoundError:
                return []
        if last_bytes is not None and len(raw) == last_bytes:
            raw = raw.partition(b"\n")[2]  # begins in the middle of a line
        return raw.splitlines()

    def _write_journal(self, lines: list[Version], unreadable: list[bytes]) -> None:
        data = b"".join(raw + b"\n" for raw in unreadable) + b"".join(map(_line, lines))
        with explain_errors("erase", self._journal, outcome="it still has the old text"):
            rewrite(self._journal, data, self._system)

    @contextmanager
    def _hold(self, operation: str) -> Iterator[None]:
        lock = os.path.join(self._folder, "history.lock")
        with hold_lock(lock, operation=f"history: {operation}", system=self._system):
            yield

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def _line(version: Version) -> bytes:
    fields = ("id", "at", "path", "operation", "length", "hash", "previous")
    entry = {field: getattr(version, field) for field in fields}
    if version.text is not None:
        entry["text"] = version.text
    if version.made:
        entry["made"] = True
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _parse(text: bytes) -> Version | None:
    try:
        entry = json.loads(text)
        previous = entry["previous"]
        return Version(
            id=str(entry["id"]),
            at=str(entry["at"]),
            path=str(entry["path"]),
            operation=str(entry["operation"]),
            length=int(entry["length"]),
            hash=str(entry["hash"]),
            previous=None if previous is None else str(previous),
            text=text if isinstance(text := entry.get("text"), str) else None,
            made=entry.get("made") is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _with_availability(line: Version, stored: set[str]) -> Version:
    return replace(line, available=line.hash in stored or line.text is not None)


def _without_text(line: Version, without: Callable[[bytes], bytes | None]) -> Version:
    """A note of which something is forgotten is not kept at all: it could not be put back."""
    if line.text is None or without(line.text.encode()) == line.text.encode():
        return line
    return replace(line, text=None)


def _rename_contents(line: Version, renamed: dict[str, tuple[str, int]]) -> Version:
    name, length = renamed.get(line.hash, (line.hash, line.length))
    previous = line.previous and renamed.get(line.previous, (line.previous, 0))[0]
    return replace(line, hash=name, length=length, previous=previous)


def _expected_records(lines: list[Version]) -> dict[str, list[Version]]:
    """Name the records that must be in each file: those appended after its last rewrite, less those taken back."""
    expected: dict[str, list[Version]] = {}
    for line in lines:
        if line.operation == APPEND:
            expected.setdefault(line.path, []).append(line)
        elif line.operation.startswith(f"{UNDO} ") and line.previous == line.hash:
            # The record was gone when it was to be taken back: nothing was written.
            records = expected.get(line.path, [])
            expected[line.path] = [each for each in records if line.operation != f"{UNDO} {each.id}"]
        elif not line.operation.startswith("before "):
            expected.pop(line.path, None)
    return expected


# --- contents, compressed, each stored once under its hash ---


class Blobs:
    """A folder of contents. A process that writes holds the history's lock."""

    def __init__(self, folder: str, system: System) -> None:
        self._folder = folder
        self._system = system

    def put(self, data: bytes) -> str:
        """Store a content durably; its hash."""
        name = sha256_bytes(data)
        if self._get_intact(name) != data:
            write_atomically(self._path(name), zlib.compress(data, 6), system=self._system)
        return name

    def get(self, name: str) -> bytes | None:
        """Read a content back, None when it is not here; StorageFailure when the disk changed it."""
        path = self._path(name)
        with explain_errors("read", path, outcome="nothing was changed"):
            try:
                packed = read_file(path, system=self._system)
            except FileNotFoundError:
                return None
        try:
            data = zlib.decompress(packed)
        except zlib.error as error:
            raise _damage_at(path) from error
        if sha256_bytes(data) != name:
            raise _damage_at(path)
        return data

    def sizes(self) -> dict[str, int]:
        """Every stored content and the bytes it takes on the disk."""
        with explain_errors("look at", self._folder, outcome="nothing was changed"):
            return {name: self._system.stat(self._path(name)).st_size for name in self}

    def __iter__(self) -> Iterator[str]:
        return (name for name in sorted(self._names()) if _HASH.fullmatch(name))

    def destroy(self, name: str) -> None:
        """Remove a content so that its bytes are not left in free blocks."""
        with explain_errors("erase", self._path(name), outcome="its bytes are still on the disk"):
            scrub(self._path(name), self._system)

    def sweep(self) -> None:
        """Destroy what a killed process left half written."""
        for name in self._names():
            if not _HASH.fullmatch(name):
                self.destroy(name)

    def _get_intact(self, name: str) -> bytes | None:
        try:
            return self.get(name)
        except StorageFailure:
            return None  # damaged: `put` is about to write it anew

    def _names(self) -> list[str]:
        with explain_errors("list", self._folder, outcome="nothing was changed"):
            try:
                return self._system.listdir(self._folder)
            except FileNotFoundError:
                return []

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def _clear(fd: int, system: System) -> None:
    """Overwrite an open file with zeros, durably, if it has no name left.

    Nothing can give it a name again. One that still has a name is not ours to clear: somebody may have put a hard link
    to a file of his in the place of ours, and taken it away again.
    """
    status = system.fstat(fd)
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
        write_all(system, fd, bytes(status.st_size))
        system.fsync(fd)


def rewrite(path: str, data: bytes, system: System) -> None:
    """Give a file a new content, so that the bytes it had are not left in free blocks."""
    try:
        old = system.open(path, os.O_WRONLY)
    except FileNotFoundError:
        write_atomically(path, data, system=system)
        return
    try:
        write_atomically(path, data, system=system)
        _clear(old, system)
    finally:
        system.close(old)


def scrub(path: str, system: System) -> None:
    """Remove a file, so that the bytes it had are not left in free blocks; one with a second name only loses this.

    The folder is synced last: after a power cut before that the name may be back, to be scrubbed again.
    """
    fd = system.open(path, os.O_WRONLY)
    try:
        system.unlink(path)
        _clear(fd, system)
    finally:
        system.close(fd)
    system.fsync_folder(os.path.dirname(path) or ".")


class _Damage(StorageFailure):
    """A content that is not the one it was stored as; unlike one that could not be read this time."""


def _damage_at(path: str) -> _Damage:
    return _Damage(f"{path} is damaged", hint="check the disk; this old version cannot be read any more")


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
