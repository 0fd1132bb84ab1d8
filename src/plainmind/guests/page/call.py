"""One request to `/v1` as what answers it sees it: who asks, of which memory, with what is kept between requests."""

from __future__ import annotations

import base64
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock

from plainmind.agent.recalls import Asker
from plainmind.agent.scope import SearchContext
from plainmind.agent.tool_calls import Codes
from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError, ScopeDenied
from plainmind.base.model import sha256_bytes
from plainmind.base.value import value
from plainmind.guests.page import shapes
from plainmind.guests.page.gate import Caller, Callers
from plainmind.guests.page.wire import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    from plainmind.guests.page.days import LineCounts
    from plainmind.guests.page.network import Network, NoteMap
    from plainmind.memory.memory import Memory
    from plainmind.memory.scoped import ScopedMemory
    from plainmind.memory.session_pages import Listed
    from plainmind.notes.discovery import FoundFile
    from plainmind.notes.notebook import Forgotten
    from plainmind.notes.workspace import Workspace

    Listing: TypeAlias = Mapping[str, FoundFile]
    T = TypeVar("T")


_MOST_WAITING = 100
_FEW_FILES = 16  # more that changed at once are found by a look at everything
_ROWS_SECONDS = 2.0  # how long a list of conversations is taken for the present one


@value
class Reply:
    """What is answered."""

    body: Any  # a value of `shapes`, or a mapping that is JSON already; None: nothing
    status: int = 200
    etag: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@value
class Call:
    """A request that may be carried out."""

    caller: Caller
    memory: Memory
    keeper: Keeper
    parameters: Mapping[str, str]  # in the path
    query: Any
    body: Any
    headers: Mapping[str, str]  # names in small letters
    token: str

    @property
    def scoped(self) -> ScopedMemory:
        """The memory as the caller may see it."""
        return self.memory.within(self.caller.context)

    @property
    def asker(self) -> Asker:
        """Who asks, for the recall log; a person at the page is not in it."""
        return Asker("http", self.caller.name)

    def shown(self, text: str) -> str:
        """A text as the caller gets it: a person sees their notes as they are, a program without secrets."""
        return text if self.caller.is_page else self.scoped.hide_secrets(text)

    def header(self, name: str) -> str:
        """What a header says; "" when it is not there."""
        return self.headers.get(name, "")

    def require_owner(self, detail: str, hint: str = "use a token of the owner") -> None:
        """Raise ScopeDenied unless everything may be seen."""
        if not self.caller.is_owner or not self.scoped.access.sees_everything:
            raise ScopeDenied(detail, hint=hint)

    def files(self, *, newest_first: bool = False) -> Sequence[FoundFile]:
        """The files that the caller may see, by path or by when they changed."""
        known = self.keeper.files
        if self.caller.is_owner:
            return known.newest() if newest_first else known.now()
        found = sorted(self.scoped.list(), key=lambda one: one.path)
        return sorted(found, key=lambda one: -one.mtime_ns) if newest_first else found


def page_of(
    rows: Sequence[T], limit: int, cursor: str, name_of: Callable[[T], str], offset: int = 0
) -> tuple[Sequence[T], str | None]:
    """So many rows after those that were shown before, and the cursor for the next; None at the end.

    A cursor names the last row that was shown: rows that came or went before it shift nothing.
    """
    start = _after(rows, cursor, name_of) if cursor else offset
    shown = rows[start : start + limit]
    following = start + len(shown)
    if not shown or following >= len(rows):
        return shown, None
    said = f"{following} {name_of(shown[-1])}".encode("utf-8", "surrogatepass")
    return shown, base64.urlsafe_b64encode(said).decode().rstrip("=")


def _after(rows: Sequence[T], cursor: str, name_of: Callable[[T], str]) -> int:
    try:
        said = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("utf-8", "surrogatepass")
        number, _, name = said.partition(" ")
        place = int(number)
    except ValueError as error:
        raise PlainmindError("the cursor is not one of ours", hint="take `next` as it is") from error
    near = range(max(0, place - 1), len(rows))
    found = next(
        (at for at in (*near, *range(min(len(rows), max(0, place - 1)))) if name_of(rows[at]) == name), None
    )
    return min(place, len(rows)) if found is None else found + 1


@value
class Preview:
    """What would go: lines and entries, or a conversation."""

    chosen: Forgotten | None
    session: shapes.ForgottenSession | None


class Previews:
    """What was shown before it is forgotten, by the code that was given for it. Each works once."""

    def __init__(self) -> None:
        self._codes = Codes()
        self._lock = Lock()
        self._shown: dict[str, Preview] = {}

    def keep(self, caller: str, preview: Preview) -> str:
        """A code for what is shown to somebody now."""
        code = self._codes.make(caller)
        with self._lock:
            self._shown = dict([*self._shown.items()][1 - _MOST_WAITING :])
            self._shown[code] = preview
        return code

    def take(self, caller: str, code: str) -> Preview:
        """What a code stands for, which it does no longer. Raises Problem."""
        is_good = self._codes.take(code, caller)
        with self._lock:
            found = self._shown.pop(code.strip(), None) if is_good else None
        if found is None:
            raise Problem(
                "code",
                "this code was used already, is older than ten minutes, or was never given",
                "ask once more what would go",
            )
        return found


def _listed(workspace: Workspace, path: str) -> FoundFile | None:
    """A file that is new, if it counts as a note."""
    try:
        return workspace.locate(path)
    except (NotFound, PathNotAllowed):
        return None


class Files:
    """The files of the memory; only those are looked at again that may have changed."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = Lock()
        self._moment: int | None = None
        self._known: dict[str, FoundFile] = {}  # by path; never changed, only replaced
        self._newest: list[FoundFile] | None = None

    def now(self) -> Sequence[FoundFile]:
        """All of them by path, as they are now."""
        return list(self.by_path().values())

    def newest(self) -> Sequence[FoundFile]:
        """All of them, those that changed last first."""
        with self._lock:
            known = self._look()
            if self._newest is None:
                self._newest = sorted(known.values(), key=lambda one: -one.mtime_ns)
            return self._newest

    def by_path(self) -> Mapping[str, FoundFile]:
        """All of them; a file that is as it was is the same object as before."""
        with self._lock:
            return self._look()

    def _look(self) -> Mapping[str, FoundFile]:
        workspace = self._memory.notes.workspace
        since = workspace.changed_since(self._moment)
        if since is None or len(since.files) > _FEW_FILES:
            found = self._memory.look()
            self._known = {one.path: one for one in sorted(found.files, key=lambda one: one.path)}
            self._moment, self._newest = found.moment, None
            return self._known
        if since.files:
            known = dict(self._known)
            for path in since.files:
                again = workspace.look_at(path) if path in known else _listed(workspace, path)
                if again is None:
                    known.pop(path, None)
                else:
                    known[path] = again
            if not known.keys() <= self._known.keys():
                known = dict(sorted(known.items()))
            self._known, self._newest = known, None
        self._moment = since.moment
        return self._known


class Keeper:
    """What a server keeps between requests, shared by all of them."""

    def __init__(self, memory: Memory, callers: Callers, *, read_only: bool) -> None:
        self.files = Files(memory)
        self.callers = callers
        self.is_read_only = read_only
        self.previews = Previews()
        self.journal = Journal()
        self.nobody = SearchContext("", "", "")  # who has shown no token yet
        self._making = Lock()
        self._network: Network | None = None
        self._line_counts: LineCounts | None = None
        self._map: NoteMap | None = None
        self._rows: tuple[float, list[Listed]] = (0.0, [])

    @property
    def network(self) -> Network:
        """The notes by what they are called and where they lead."""
        from plainmind.guests.page.network import Network

        with self._making:
            self._network = self._network or Network()
            return self._network

    @property
    def line_counts(self) -> LineCounts:
        """How many lines the notes of a day have."""
        from plainmind.guests.page.days import LineCounts

        with self._making:
            self._line_counts = self._line_counts or LineCounts()
            return self._line_counts

    def map_of(self, call: Call) -> NoteMap:
        """The places of all notes."""
        from plainmind.guests.page.network import NoteMap

        memory = call.memory
        with self._making:
            self._map = self._map or NoteMap(memory.home, memory.workspace, memory.agent_id)
            return self._map

    def session_rows(self, call: Call) -> Sequence[Listed]:
        """The conversations as they were a moment ago: to list them, the end of each is read."""
        from plainmind.memory.session_pages import list_sessions

        until, rows = self._rows
        if time.monotonic() < until:
            return rows
        if not os.path.isdir(call.memory.conversations.folder):
            return []
        rows = list_sessions(call.memory.sessions, call.memory.redactor())
        self._rows = (time.monotonic() + _ROWS_SECONDS, rows)
        return rows

    def tell_forgotten(self, path: str) -> None:
        """Let those who listen know that lines of a file are gone for good."""
        self.journal.tell("note.forgotten", {"path": path})


# --- what happens, told as it happens ---


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

    def __init__(self, memory: Memory, journal: Journal, list_files: Callable[[], Listing]) -> None:
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

    def _files(self) -> Listing:
        try:
            return self._list_files()
        except PlainmindError:
            return {}  # it cannot be looked at just now

    def _watch(self, known: Listing) -> None:
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

    def _compare(self, known: Listing, now: Listing) -> None:
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
