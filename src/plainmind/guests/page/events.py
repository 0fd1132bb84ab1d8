"""What happens, told as it happens: a bounded journal of events, and the threads that notice changes on disk."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_bytes
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from plainmind.memory.memory import Memory
    from plainmind.notes.discovery import FoundFile

    Files: TypeAlias = Mapping[str, FoundFile]

_MOST_EVENTS = 1_000
_MANY = 200  # files that changed at once: then everything is loaded anew
_DEBOUNCE_MS = 100
_TALK_MS = 300
_LOOK_SECONDS = 0.5


@value
class Event:
    """Something that happened."""

    number: int
    kind: str
    facts: Mapping[str, Any]


class Journal:
    """The last events, numbered. Who was away for too long is told to load everything anew."""

    def __init__(self, most: int = _MOST_EVENTS, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=most)
        self._life = f"{clock():.0f}"  # another process numbers anew
        self._last = 0

    @property
    def last(self) -> int:
        """The number of the latest event."""
        return self._last

    def name_of(self, number: int) -> str:
        """The id of an event, for a client to go on after it."""
        return f"{self._life}-{number}"

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Add an event."""
        from datetime import UTC, datetime

        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        with self._lock:
            self._last += 1
            self._events.append(Event(self._last, kind, {**facts, "at": at}))

    def place_of(self, name: str) -> int | None:
        """The number that a client has seen last; None when what came after it is not kept any more."""
        life, _, number = name.partition("-")
        if life != self._life or not number.isdecimal() or len(number) > 18:
            return None
        with self._lock:
            oldest = self._events[0].number if self._events else self._last + 1
            seen = int(number)
            return seen if oldest - 1 <= seen <= self._last else None

    def since(self, number: int) -> list[Event] | None:
        """The events after a number; None when some of them are not kept any more."""
        with self._lock:
            if self._events and self._events[0].number > number + 1:
                return None
            return [event for event in self._events if event.number > number]


class Lookout:
    """Notices changes of files, conversations, recalls and proposals, from the first listener on."""

    def __init__(self, memory: Memory, journal: Journal, list_files: Callable[[], Files]) -> None:
        self._memory, self._journal, self._list_files = memory, journal, list_files
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        """Start to look, if nobody has yet; what there is now is known when this returns."""
        with self._lock:
            if self._threads or self._stop.is_set():
                return
            known = self._files()
            for work in (lambda: self._watch(known), self._look_at_logs):
                thread = threading.Thread(target=work, name="plainmind lookout", daemon=True)
                self._threads.append(thread)
                thread.start()

    def close(self) -> None:
        """End, and wait a moment for the threads to let go of the memory."""
        self._stop.set()
        for thread in self._threads:
            thread.join(2.0)

    def _files(self) -> Files:
        try:
            return self._list_files()
        except PlainmindError:
            return {}  # it cannot be looked at just now

    def _watch(self, known: Files) -> None:
        from plainmind.notes.watcher import watch

        talks = self._memory.conversations.folder
        hints = watch(
            self._memory.notes.workspace.watched_paths(),
            debounce_ms=_DEBOUNCE_MS,
            stop=self._stop,
            transcripts=talks if os.path.isdir(talks) else None,
            talk_debounce_ms=_TALK_MS,
        )
        for hint in hints:
            for path in sorted(hint.paths):
                if path.startswith(talks + "/"):
                    self._journal.tell(
                        "session.grew", {"citation": f"sessions/{os.path.relpath(path, talks)}"}
                    )
            now = self._files()
            self._compare(known, now)
            known = now

    def _compare(self, known: Files, now: Files) -> None:
        gone = [path for path in known if path not in now]
        changed = [path for path, found in now.items() if not _is_same(known.get(path), found)]
        if not gone and not changed:
            return
        if len(gone) + len(changed) > _MANY:
            self._journal.tell("reset", {})
        else:
            for path in gone:
                self._journal.tell("note.changed", {"path": path, "etag": None})
            for path in changed:
                self._journal.tell("note.changed", {"path": path, "etag": self._etag(now[path])})
        self._journal.tell("index", {"indexed": len(changed), "removed": len(gone)})

    def _etag(self, found: FoundFile) -> str | None:
        try:
            data, _ = found.root.read(found.relative, max_bytes=self._memory.notes.workspace.max_file_bytes)
        except PlainmindError:
            return None  # gone, or not to be read any more
        return sha256_bytes(data)

    def _look_at_logs(self) -> None:
        """Recalls and proposals are appended to files of the home: their sizes tell."""
        seen = dict(self._log_stamps())
        while not self._stop.wait(_LOOK_SECONDS):
            now = dict(self._log_stamps())
            for kind, stamp in now.items():
                if seen.get(kind) != stamp:
                    self._journal.tell(kind, {})
            seen = now

    def _log_stamps(self) -> Iterator[tuple[str, object]]:
        yield "recall", self._memory.recalls.stamp()
        folder = os.path.join(self._memory.places.state, "upkeep")
        try:
            with os.scandir(folder) as listing:
                found = sorted((one.name, one.stat().st_mtime_ns, one.stat().st_size) for one in listing)
        except OSError:
            found = []
        yield "proposal", tuple(one for one in found if not one[0].endswith(".lock"))


def _is_same(before: FoundFile | None, now: FoundFile) -> bool:
    return before is now or (
        before is not None
        and (before.mtime_ns, before.size, before.inode) == (now.mtime_ns, now.size, now.inode)
    )
