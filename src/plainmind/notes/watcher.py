"""Tells what may have changed on disk: without a look at the files, where the system reports changes, or by hints.

Linux queues an inotify event before the call that changed the file returns, whichever process made it. So an empty
queue proves that a look at the files would find them as they were: a search that comes after a write sees the write,
and a search that comes after nothing costs nothing. What the queue cannot show (a file changed through a mapping
that stays open, or through another name) is found by a look at everything, which is due every ten
seconds, and less often where it takes long.

Whenever anything is out of the ordinary the answer is that only such a look can tell, which is always right. A hint
says no more than that: it wakes who keeps an index up to date.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from threading import Event

from plainmind.base.value import value
from plainmind.files.system import kind_of_file_system
from plainmind.notes.discovery import RULE_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

    from watchfiles._rust_notify import RustNotify


# Of each event the watch of the folder and the name in it.
Events: TypeAlias = "set[tuple[int, str]]"

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
_ONLY_DIRECTORIES = 0x0100_0000
# After a file was changed through a mapping, closing it is all that is told.
_WATCHED = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
)
# What happens to a file and to nothing else. Everything else (a folder came or went, a disk was unmounted, the
# queue was full) says that something happened, not what.
_ABOUT_A_FILE = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE

_HEADER = struct.Struct("iIII")  # watch, kind, cookie, length of the name
_READ_SIZE = 1 << 16
_MOST_READS = 64  # a writer that never pauses must not keep us reading

# By the numbers in statfs(2): where every change goes through this kernel.
_LOCAL = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0x01021994,  # tmpfs
        0x858458F6,  # ramfs
        0x794C7630,  # overlayfs
        0xF2F52010,  # f2fs
        0x2FC12FC1,  # zfs
        0xCA451A4E,  # bcachefs
        0x3153464A,  # jfs
        0x52654973,  # reiserfs
        0x24051905,  # ubifs
    }
)


@value
class _System:
    """The calls that Python does not offer; each answers -1 and leaves a number behind when it fails."""

    init: Callable[[int], int]
    add_watch: Callable[[int, bytes, int], int]
    error: Callable[[], OSError]


@cache
def _system() -> _System | None:
    import sys

    if sys.platform != "linux":
        return None
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)

    def error() -> OSError:
        code = ctypes.get_errno()
        return OSError(code, os.strerror(code))

    try:
        return _System(library.inotify_init1, library.inotify_add_watch, error)
    except AttributeError:
        return None


class Inotify:
    """One queue. Closed at the latest when nothing refers to it any more."""

    def __init__(self, descriptor: int, system: _System) -> None:
        self._descriptor = descriptor
        self._system = system
        self._watches: set[int] = set()

    @property
    def count(self) -> int:
        """How many folders were ever watched through it; those that are gone count too."""
        return len(self._watches)

    def watch(self, folder: int) -> int:
        """Watch an open folder, by itself rather than by a path that may lead elsewhere by now. Raises OSError.

        A folder that is watched already keeps its number.
        """
        name = self._system.add_watch(
            self._descriptor, b"/proc/self/fd/%d" % folder, _WATCHED | _ONLY_DIRECTORIES
        )
        if name < 0:
            raise self._system.error()
        self._watches.add(name)
        return name

    def events(self) -> Events | None:
        """What has happened since the last call; None when something else happened than files changing."""
        found: set[tuple[int, str]] = set()
        for _ in range(_MOST_READS):
            try:
                data = os.read(self._descriptor, _READ_SIZE)
            except BlockingIOError:
                return found
            except OSError:
                return None
            if not _read_events(data, found):
                self._skip()
                return None
        return None

    def close(self) -> None:
        """Let go of all watches; more than once does no harm."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def _skip(self) -> None:
        """Throw away what else has happened: that something happened is known."""
        for _ in range(_MOST_READS):
            try:
                os.read(self._descriptor, _READ_SIZE)
            except OSError:
                return


def open_inotify() -> Inotify | None:
    """Open a queue, or None where there is no such thing or the user has too many."""
    system = _system()
    if system is None:
        return None
    descriptor = system.init(os.O_NONBLOCK | os.O_CLOEXEC)
    return Inotify(descriptor, system) if descriptor >= 0 else None


def is_local(folder: int) -> bool:
    """Whether an open folder is on a file system that only this machine writes to."""
    return kind_of_file_system(folder) in _LOCAL


def _read_events(data: bytes, found: set[tuple[int, str]]) -> bool:
    """Add the events to `found`; False when one of them is not about a file."""
    at = 0
    while at < len(data):
        watch, kind, _, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        # A kind with any other bit, as that of folders, is none of these.
        if kind & ~_ABOUT_A_FILE or not length:
            return False
        found.add((watch, os.fsdecode(data[at : at + length].rstrip(b"\0"))))
        at += length
    return True


# For how long a look is enough, as long as the queue is quiet: where looking takes long, it is done more seldom, by
# then rather by who keeps the index fresh in the background than by who waits for an answer.
TRUSTED_S, TRUSTED_TIMES, MOST_TRUSTED_S = 10.0, 60.0, 300.0
# A user's processes share a quota of watches: a tree of more folders than this is looked at every time.
MOST_FOLDERS = 4_096
_MOST_CHANGES = 64  # how many are remembered one by one

NOTHING: frozenset[str] = frozenset()

_Identity: TypeAlias = tuple[int, int] | None  # which folder or file it is


@value
class Since:
    """What may have changed between two moments: files, as cited. `moment` is the later one."""

    moment: int
    files: frozenset[str]


def may_be_note(name: str) -> bool:
    """Whether a file of this name could be part of a memory."""
    return name[-3:].lower() == ".md" and not name.startswith(".")


class Look:
    """One look at all files while their folders are being watched, each before it is listed."""

    __slots__ = ("_queue", "began", "folders", "moment", "refusal")

    def __init__(self, queue: ChangeQueue, moment: int, began: float) -> None:
        self._queue = queue
        self.moment = moment
        self.began = began
        # By watch: how what is in it is cited; None when in two ways.
        self.folders: dict[int, str | None] = {}
        self.refusal: str | None = None

    def enter(self, folder: int, cited: str) -> None:
        """Watch an open folder from now on; `cited` is empty or ends with a slash."""
        if self.refusal is None:
            self._queue.watch(self, folder, cited)


class ChangeQueue:
    """Watches the folders of one source. Safe to share between threads; a fork begins anew.

    `anchors` are the paths at which looks begin: what is there now is compared by identity, for a parent folder that
    was renamed or mounted over is no event in the folders that are watched. `matters` tells by its name whether a file
    is worth telling of. `has_looked` says that the first look was made before there was a queue.
    """

    def __init__(
        self,
        anchors: Callable[[], Iterable[str]],
        *,
        matters: Callable[[str], bool] = may_be_note,
        has_looked: bool = False,
        open_queue: Callable[[], Inotify | None] = open_inotify,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._anchors = anchors
        self._matters = matters
        self._open_queue = open_queue
        self._clock = clock
        self._forget()
        self._has_looked = has_looked

    def _forget(self) -> None:
        self._process = os.getpid()
        self._guard = threading.Lock()
        self._inotify: Inotify | None = None
        self._has_looked = False
        self._looking = 0
        self._moment = 0
        self._folders: dict[int, str | None] = {}
        self._trusted_until = 0.0
        self._identities: dict[str, tuple[int, int] | None] = {}
        # Of each moment, newest last, the files that made it: None when it may have been any.
        self._changes: deque[frozenset[str] | None] = deque(maxlen=_MOST_CHANGES)
        self._refusal: str | None = "not needed yet"

    def begin(self) -> Look | None:
        """Begin a look at everything. The first one watches nothing: a process that looks once would not gain."""
        self._after_fork()
        with self._guard:
            if not self._has_looked:
                self._has_looked = True
                return None
            if self._inotify is None or self._inotify.count > MOST_FOLDERS:
                self._close()
                self._inotify = self._open_queue()
            if self._inotify is None:
                self._refusal = "the system offers none, or no more"
                return None
            self._take_events()
            self._identities = {path: _identity(path) for path in self._anchors()}
            self._looking += 1
            return Look(self, self._moment, self._clock())

    def watch(self, look: Look, folder: int, cited: str) -> None:
        """Watch one more folder for a look."""
        with self._guard:
            if self._inotify is None:
                look.refusal = "closed meanwhile"
            elif len(look.folders) >= MOST_FOLDERS:
                look.refusal = f"more than {MOST_FOLDERS:,} folders"
            elif not is_local(folder):
                look.refusal = "a file system that other machines may write to"
            else:
                try:
                    name = self._inotify.watch(folder)
                except OSError as error:
                    look.refusal = f"a folder cannot be watched: {error.strerror}"
                    return
                known = look.folders.setdefault(name, cited)
                if known != cited:
                    look.folders[name] = None

    def end(self, look: Look | None, *, complete: bool) -> int | None:
        """The moment that a look shows, for `changed_since`; None when it does not show everything for sure."""
        if look is None:
            return None
        with self._guard:
            self._looking -= 1
            if look.refusal is not None or not complete:
                self._refusal = look.refusal or "a folder cannot be looked at"
                self._trusted_until = 0.0
                return None
            self._refusal = None
            self._folders = look.folders
            took = self._clock() - look.began
            self._trusted_until = look.began + min(max(TRUSTED_S, took * TRUSTED_TIMES), MOST_TRUSTED_S)
            return look.moment

    def changed_since(self, moment: int | None) -> Since | None:
        """What may have changed since a moment; None when only a look at everything can tell."""
        self._after_fork()
        with self._guard:
            if moment is None or self._inotify is None or self._clock() >= self._trusted_until:
                return None
            self._take_events()
            happened = self._moment - moment
            if happened > len(self._changes):
                return None
            changed: set[str] = set()
            for number in range(1, happened + 1):
                files = self._changes[-number]
                if files is None:
                    return None
                changed |= files
            return Since(self._moment, frozenset(changed))

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`: how many folders are watched, or why none is."""
        with self._guard:
            watching = self._inotify is not None and self._refusal is None
            return {
                "watching": watching,
                "folders": len(self._folders) if watching else 0,
                "maxFolders": MOST_FOLDERS,
                "reason": None if watching else self._refusal,
            }

    def close(self) -> None:
        """Let go of the queue; the next look opens another."""
        self._after_fork()
        with self._guard:
            self._close()
            self._refusal = "closed"

    def _close(self) -> None:
        inotify, self._inotify = self._inotify, None
        self._trusted_until = 0.0
        self._folders = {}
        if inotify is not None:
            inotify.close()

    def _after_fork(self) -> None:
        """Leave the queue to the parent: events that a child reads would be lost to it."""
        if self._process != os.getpid():
            self._forget()

    def _take_events(self) -> None:
        """Begin a new moment when anything has happened."""
        assert self._inotify is not None
        files = self._files_of(self._inotify.events())
        if any(_identity(path) != before for path, before in self._identities.items()):
            files = None
        if files != NOTHING:
            self._moment += 1
            self._changes.append(files)

    def _files_of(self, events: Events | None) -> frozenset[str] | None:
        """Which notes events are about: only in folders that are cited in one way, and not while that may change."""
        if events is None:
            return None
        if any(name in RULE_FILES for _, name in events):
            return None  # other files may be notes now
        notes = [event for event in events if self._matters(event[1])]
        folders = {self._folders.get(watch) for watch, _ in notes}
        if notes and (self._looking or None in folders):
            return None
        return frozenset(f"{self._folders[watch]}{name}" for watch, name in notes)


def _identity(path: str, look: Callable[[str], os.stat_result] = os.stat) -> _Identity:
    try:
        status = look(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


# How long one wait inside the watcher may ignore a stop or a signal.
_STEP_MS = 100
# A burst that never pauses is still reported.
_LONGEST_BURST = 5
TALK_DEBOUNCE_MS = 5_000
# The kernel's queue may have overflowed during a burst this large.
_LARGE_BURST = 1_000
_SETTLING_S = 2.0

_ADDED = 1  # watchfiles.Change.added


@value
class Hint:
    """A reason to look at the files again."""

    cause: Literal["changed", "rescan", "polling"]
    paths: frozenset[str] = frozenset()  # absolute, as far as known
    reason: str | None = None  # why we watch less well than we could


def watch(
    paths: Sequence[str],
    *,
    debounce_ms: int,
    rescan_s: float = 60.0,
    stop: Event,
    poll_s: float = 2.0,
    transcripts: str | None = None,
    talk_debounce_ms: int = TALK_DEBOUNCE_MS,
) -> Iterator[Hint]:
    """Yield when files beneath `paths` may have changed, and every `rescan_s` anyway, until `stop` is set.

    A path is a folder, watched with everything beneath, or a `.md` file; it need not exist yet and may vanish
    and come back. Links and hidden folders are not watched. The first hint comes once watching has begun:
    a look at the files after it misses nothing. When the system cannot watch (no descriptors or no inotify
    watches left), a hint comes every `poll_s` and says why, until watching works again.

    `transcripts` is a folder of conversations: a message is soon followed by its answer, so changes there alone are
    told of after a longer silence.
    """
    paths = [os.path.abspath(path) for path in (*paths, *([transcripts] if transcripts else []))]
    spoken = os.path.abspath(transcripts) if transcripts else None
    pace = _Pace(max(1, debounce_ms), rescan_s, poll_s, spoken, talk_debounce_ms)
    while not stop.is_set():
        try:
            yield from _watch_until_rearmed(paths, pace, stop)
        except (OSError, RuntimeError) as error:  # watchfiles reports its own failures as RuntimeError
            reason = f"watching failed, looking every {poll_s:g} s instead: {error}"
            # A folder that vanished just now is no reason to give up watching the others for long.
            yield from _poll(
                reason, poll_s if isinstance(error, FileNotFoundError) else rescan_s, poll_s, stop
            )


@value
class _Pace:
    debounce_ms: int
    rescan_s: float
    poll_s: float
    transcripts: str | None  # the folder of conversations
    talk_debounce_ms: int

    def is_spoken(self, path: str) -> bool:
        """Whether a file lies with the transcripts."""
        return self.transcripts is not None and path.startswith(self.transcripts + "/")

    def is_transcript(self, path: str) -> bool:
        """Whether a file may be a transcript: lines in the folder itself, documents in those beneath it."""
        is_beneath = os.path.dirname(path) != self.transcripts
        return self.is_spoken(path) and (".json5" if is_beneath else ".jsonl") in os.path.basename(path)

    def quiet_ms(self, events: set[tuple[int, str]]) -> int:
        """How long nothing more must happen before what happened is told."""
        is_talk = bool(events) and all(self.is_spoken(path) for _, path in events)
        return max(self.debounce_ms, self.talk_debounce_ms) if is_talk else self.debounce_ms


def _poll(reason: str, for_s: float, poll_s: float, stop: Event) -> Iterator[Hint]:
    """Hint at a steady pace for a while, then let the caller try to watch again."""
    until = time.monotonic() + for_s
    while not stop.is_set():
        yield Hint("polling", reason=reason)
        if time.monotonic() >= until:
            return
        stop.wait(poll_s)


def _watch_until_rearmed(paths: Sequence[str], pace: _Pace, stop: Event) -> Iterator[Hint]:
    """Watch one set of folders. Returns when the set has changed, so that a new one is watched."""
    from watchfiles._rust_notify import RustNotify

    identities = _identities(paths)
    folders = _folders_to_watch(paths)
    gone = [path for path in paths if identities[path] is None and not path.lower().endswith(".md")]
    reason = f"waiting for {', '.join(gone)} to appear" if gone else None
    # Not recursive: the watcher would follow links, and miss files written at once into new folders.
    with RustNotify(sorted(folders), False, False, 300, False, True) as watcher:  # noqa: FBT003
        if _folders_to_watch(paths) != folders:
            yield Hint("rescan", reason="new folders are not watched yet")
            return
        yield Hint("rescan", reason=reason)
        next_rescan = time.monotonic() + pace.rescan_s
        while not stop.is_set():
            wait_s = min(pace.poll_s, next_rescan - time.monotonic())
            events = _next_burst(watcher, pace, wait_s, stop)
            changed = frozenset(path for _, path in events if _matters(path, paths, pace))
            if changed:
                yield Hint("changed", changed)
            if _identities(paths) != identities or _brought_a_folder(events):
                return
            if len(events) >= _LARGE_BURST:
                next_rescan = min(next_rescan, time.monotonic() + _SETTLING_S)
            if time.monotonic() >= next_rescan:
                yield Hint("rescan", reason=reason)
                next_rescan = time.monotonic() + pace.rescan_s


def _next_burst(watcher: RustNotify, pace: _Pace, wait_s: float, stop: Event) -> set[tuple[int, str]]:
    """Wait for events, then until none came for a while. Empty when nothing happened."""
    events: set[tuple[int, str]] = set()
    wait_ms = max(1, int(wait_s * 1000))
    until = None
    step_ms = min(_STEP_MS, pace.debounce_ms, wait_ms)
    while True:
        answer = watcher.watch(pace.debounce_ms, step_ms, wait_ms, stop)
        if answer == "signal":
            raise KeyboardInterrupt
        if isinstance(answer, str):
            return events
        events |= answer
        wait_ms = pace.quiet_ms(events)
        until = until or time.monotonic() + _LONGEST_BURST * wait_ms / 1000
        if time.monotonic() >= until:
            return events


def _identities(paths: Sequence[str]) -> dict[str, _Identity]:
    """Which folder or file is behind each path now; a file only by whether its folder is the same."""
    return {path: _identity(os.path.dirname(path) if _is_file(path) else path, os.lstat) for path in paths}


def _is_file(path: str) -> bool:
    return path.lower().endswith(".md") and not os.path.isdir(path)


def _folders_to_watch(paths: Sequence[str]) -> frozenset[str]:
    """All folders beneath the paths, for files the folder they are in."""
    folders: set[str] = set()
    for path in paths:
        if _is_file(path):
            if os.path.isdir(parent := os.path.dirname(path)):
                folders.add(parent)
        elif os.path.isdir(path) and not os.path.islink(path):
            folders.update(_folders_beneath(path))
    return frozenset(folders)


def _folders_beneath(top: str) -> Iterator[str]:
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                waiting += [
                    entry.path
                    for entry in listing
                    if entry.is_dir(follow_symlinks=False)
                    and not entry.name.startswith(".")
                    and entry.name != "node_modules"  # thousands of folders, and never a note
                ]
        except OSError:
            continue  # vanished or closed to us: discovery reports it
        yield folder


def _matters(path: str, paths: Sequence[str], pace: _Pace) -> bool:
    """Whether an event may be about a note or a folder of notes: editors, and we, write other files too."""
    name = os.path.basename(path)
    if name.startswith("."):
        return name in RULE_FILES
    if path in paths or pace.is_transcript(path):
        return True
    is_note = name.lower().endswith(".md")
    may_be_folder = "." not in name or os.path.isdir(path)
    return (is_note or may_be_folder) and any(
        path.startswith(top + "/") for top in paths if not _is_file(top)
    )


def _brought_a_folder(events: set[tuple[int, str]]) -> bool:
    return any(
        kind == _ADDED and not os.path.basename(path).startswith(".") and os.path.isdir(path)
        for kind, path in events
    )
