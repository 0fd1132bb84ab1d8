"""An engine that indexes and searches the memory by itself: its protocol, its upkeep, and what answers in its place."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from plainmind.base.errors import ConfigError, PlainmindError
from plainmind.base.lazy import find_by_name, offers
from plainmind.base.model import SearchResult, Source, SyncReport
from plainmind.base.value import field, replace, value
from plainmind.files.atomic import write_atomically
from plainmind.notes.discovery import mounts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any, Literal, Protocol, TypeAlias

    from plainmind.config.settings import Settings
    from plainmind.files.system import Erasures
    from plainmind.memory.memory import Memory
    from plainmind.memory.translation import EngineValues
    from plainmind.notes.discovery import Mount
    from plainmind.notes.workspace import Workspace
    from plainmind.sessions.transcripts import Transcripts

    class Keepable(Protocol):
        """What can be kept up to date."""

        def sync(self, initiative: Initiative) -> SyncReport:
            """Bring it up to date. Never raises."""

        def seconds_until_due(self, *, changed: bool) -> float:
            """How long until there is something to do."""

else:
    Protocol = object


# Who wants the engine to catch up: a person who waits for it, a search that has little time, or a timer.
Initiative: TypeAlias = "Literal['asked', 'search', 'background']"


class BackendFailed(PlainmindError):
    """The engine did not answer, or not in a way that can be used."""


class BackendBusy(BackendFailed):
    """The engine is at work on something else: no reason to think that it does not work."""


@value
class Question:
    """What is asked, for whom, and how long there is to answer it."""

    query: str
    scopes: frozenset[str]
    timeout_s: float
    sources: tuple[Source, ...] | None = None  # None: all that there are
    max_results: int = 6
    min_score: float | None = None  # None: whatever the engine finds good enough
    snippet_chars: int = 700
    explain: bool = False


@value
class Place:
    """A folder or file whose notes an engine is to know."""

    mount: Mount
    pattern: str  # which files of a folder, relative to it


@value
class Surroundings:
    """All that an engine may know about the memory it works for."""

    agent_id: str
    folder: str  # its own, for this agent and this workspace; it need not exist yet
    workspace: Workspace
    places: tuple[Place, ...]
    transcripts: Transcripts | None  # None: it is not to know conversations
    sources: tuple[Source, ...]  # what is searched when a question does not say
    erasures: Erasures  # nothing that was read before an erasure may be kept after it
    environ: Mapping[str, str] = field(repr=False)
    settings: Settings | None = field(default=None, repr=False)  # an engine translates its own section


class MemoryBackend(Protocol):
    """Indexes and searches the files of a memory. Safe to share between threads."""

    @property
    def name(self) -> str:
        """How it is called in settings and in answers."""

    def search(self, question: Question) -> SearchResult:
        """Find the lines that answer a question, within its time and its scopes. Raises BackendFailed.

        Every hit is cut from the file as it is now: text that an engine still knows, and the file does not, is none.
        """

    def sync(self, initiative: Initiative, *, force: bool = False) -> SyncReport:
        """Bring the engine up to date, if that is due. Raises BackendFailed."""

    def seconds_until_due(self, *, changed: bool) -> float:
        """How long until a sync in the background has something to do; `changed`: the files are to be looked at."""

    def describe(self, *, deep: bool) -> Mapping[str, Any]:
        """Facts for `status`: `name`, `version`, `healthy`, and what else there is to know; `deep` may ask it."""

    def erase(self) -> None:
        """Drop every copy of text; the next sync makes what is needed anew."""

    def close(self) -> None:
        """Stop what runs, and leave nothing behind. Closing twice is fine."""


class Record:
    """Facts by name. A file that is missing or cannot be read has none: all of them can be found out again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._facts: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Give a fact, None when it is not known."""
        return self.facts().get(name)

    def number(self, name: str) -> float:
        """Give a fact that is a number, 0 when it is not known."""
        found = self[name]
        usable = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < 1e15
        return float(found) if usable else 0.0

    def facts(self) -> Mapping[str, Any]:
        """All facts, as the process that wrote last has left them."""
        with self._lock:
            return self._read()

    def update(self, **facts: Any) -> None:
        """Learn some facts; the others stay, also those that another process learns now. Raises PlainmindError."""
        import json

        from plainmind.files.system import hold_lock

        with self._lock, hold_lock(f"{self._path}.lock", operation="note facts about an engine"):
            known = self._read()
            if {**known, **facts} == known:
                return
            self._facts = {**known, **facts}
            write_atomically(self._path, json.dumps(self._facts, indent=1, sort_keys=True).encode())
            self._seen = self._look()

    def _read(self) -> dict[str, Any]:
        seen = self._look()
        if seen != self._seen or seen is None:
            self._facts = _facts_in(self._path)
            self._seen = seen
        return self._facts

    def _look(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino)


def _facts_in(path: str) -> dict[str, Any]:
    import json

    from plainmind.files.system import read_file

    try:
        found = json.loads(read_file(path, most=1 << 20))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# A command that asks one question has ended by then, and no engine was started in vain.
BEGINS_AFTER_S = 5.0
_LEAST_WAIT_S = 1.0  # an engine that is due again at once must not keep a core busy
_LONGEST_WAIT_S = 3600.0
_LONGEST_FAREWELL_S = 10.0


class Upkeep:
    """Syncs an engine whenever that is due, in a thread of its own that starts with the first notice."""

    def __init__(self, backend: Keepable, *, begins_after_s: float = BEGINS_AFTER_S) -> None:
        self._backend = backend
        self._begins_after_s = begins_after_s
        self._woken = threading.Event()
        self._begun = threading.Event()
        self._starting = threading.Lock()
        self._is_over = False
        self._thread: threading.Thread | None = None

    def notice(self) -> None:
        """Say that files may have changed."""
        self._woken.set()
        with self._starting:
            if self._thread is None and not self._is_over:
                self._thread = threading.Thread(target=self._run, name="plainmind-engine", daemon=True)
                self._thread.start()

    def begin(self) -> None:
        """Say that the process will live on, so that there is nothing to wait for."""
        self._begun.set()
        self.notice()

    def end(self) -> None:
        """Begin nothing any more; a sync that runs just now ends with the engine, which is closed next."""
        with self._starting:
            self._is_over = True
        self._begun.set()
        self._woken.set()

    def close(self) -> None:
        """End, and see the thread end too; an engine that hangs is left behind after a while."""
        self.end()
        if self._thread is not None:
            self._thread.join(_LONGEST_FAREWELL_S)

    def _run(self) -> None:
        self._begun.wait(self._begins_after_s)
        while True:
            changed = self._woken.is_set()
            self._woken.clear()
            if self._is_over:  # looked at only now: what was cleared may have been the last call to wake up
                return
            wait = self._backend.seconds_until_due(changed=changed)
            if wait <= 0:
                self._backend.sync("background")
                wait = self._backend.seconds_until_due(changed=False)
            self._woken.wait(min(max(wait, _LEAST_WAIT_S), _LONGEST_WAIT_S))


FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 900.0
_RESERVED_SHARE = 0.25  # of the time for an answer, kept for the index to answer in
_MOST_RESERVED_S = 1.0
_LEAST_TIME_S = 0.05  # in less, nothing could be started


class Pause:
    """How long an engine that failed is left alone: longer each time, and for every process that asks it."""

    def __init__(self, record: Record, now: Callable[[], float] = time.time, *, program: str = "") -> None:
        """`program` is what the settings name: when they name another one, what failed before does not count."""
        self._record = record
        self._now = now
        self._program = program

    @property
    def reason(self) -> str | None:
        """Why it failed last; None when it works, as far as is known."""
        return str(self._record["reason"] or "it failed") if self._failures else None

    @property
    def hint(self) -> str | None:
        """What to do about it, as far as is known."""
        return str(self._record["hint"]) if self._failures and self._record["hint"] else None

    @property
    def seconds_left(self) -> float:
        """How long it is still left alone; a clock that was set back does not make that longer."""
        if self.reason is None:
            return 0.0
        return max(0.0, min(self._record.number("until") - self._now(), LONGEST_PAUSE_S))

    def failed(self, reason: str, hint: str | None = None) -> None:
        """Leave it alone for a while, twice as long as last time."""
        failures = self._failures + 1
        pause = min(FIRST_PAUSE_S * 2 ** min(failures - 1, 20), LONGEST_PAUSE_S)
        self._record.update(
            failures=failures, until=self._now() + pause, reason=reason, hint=hint, program=self._program
        )

    def worked(self) -> None:
        """Trust it again."""
        if self.reason is not None:
            self._record.update(failures=0, until=0, reason=None, hint=None)

    @property
    def _failures(self) -> int:
        is_the_same = (self._record["program"] or "") == self._program
        return int(self._record.number("failures")) if is_the_same else 0


class FallbackBackend:
    """Asks the engine first, as long as it works; an index answers when it does not, or finds nothing."""

    def __init__(self, first: MemoryBackend, pause: Pause) -> None:
        self._first = first
        self._pause = pause
        self.upkeep = Upkeep(self)

    @property
    def name(self) -> str:
        """The name of the engine."""
        return self._first.name

    def search(self, question: Question, index: Callable[[], SearchResult]) -> SearchResult:
        """Answer in time, the engine or not: `index` is asked the same, and takes next to no time."""
        try:
            return self._answer(question, index)
        finally:
            self.upkeep.notice()

    def _answer(self, question: Question, index: Callable[[], SearchResult]) -> SearchResult:
        left = self._pause.seconds_left
        if left:
            return self._in_its_place(index, f"{self._pause.reason}; it is asked again in {left:.0f} s")
        reserved = min(question.timeout_s * _RESERVED_SHARE, _MOST_RESERVED_S)
        if question.timeout_s < _LEAST_TIME_S:
            return self._in_its_place(index, "there was no time left to ask it")
        try:
            result = self._first.search(replace(question, timeout_s=question.timeout_s - reserved))
        except BackendBusy as error:
            return self._in_its_place(index, str(error))
        except Exception as error:  # noqa: BLE001 (whatever it is, the index can be asked)
            self._note_failure(error)
            return self._in_its_place(index, _reason(error))
        self._note_success()
        return result if result.hits else _nothing_found(self.name, result, index)

    def sync(self, initiative: Initiative, *, force: bool = False) -> SyncReport:
        """Bring the engine up to date; when that fails, the report says so. In the background a pause is kept."""
        if initiative != "asked" and self._pause.seconds_left:
            return SyncReport()
        try:
            report = self._first.sync(initiative, force=force)
        except BackendBusy as error:
            return SyncReport(notes=(f"{self.name} catches up next time: {error}",))
        except Exception as error:  # noqa: BLE001 (the index is up to date, and answers)
            self._note_failure(error)
            return SyncReport(degraded=(f"{self.name} is not up to date: {_reason(error)}",))
        self._note_success()
        return report

    def seconds_until_due(self, *, changed: bool) -> float:
        """How long until it is worth trying. Never raises: who asks is a thread that must not end."""
        try:
            due = self._first.seconds_until_due(changed=changed)
        except Exception as error:  # noqa: BLE001 (whatever it is, the next time may be better)
            self._note_failure(error)
            due = FIRST_PAUSE_S
        return max(self._pause.seconds_left, due)

    def describe(self, *, deep: bool) -> Mapping[str, Any]:
        """What is known about the engine, and whether it is being left alone."""
        facts = dict(self._first.describe(deep=deep))
        if reason := self._pause.reason:
            facts |= {"healthy": False, "problem": reason, "askedAgainInS": round(self._pause.seconds_left)}
            facts |= {"hint": self._pause.hint} if self._pause.hint else {}
        return facts

    @property
    def fallback(self) -> Mapping[str, str] | None:
        """Who answers in whose place, and why; None while the engine works."""
        reason = self._pause.reason
        return None if reason is None else self._standing_in(reason)

    def erase(self) -> None:
        """Drop what the engine has copied."""
        self._first.erase()

    def close(self) -> None:
        """Stop the engine."""
        self.upkeep.end()
        self._first.close()
        self.upkeep.close()

    def _standing_in(self, reason: str) -> dict[str, str]:
        return {"from": self.name, "to": "builtin", "reason": reason}

    def _in_its_place(self, index: Callable[[], SearchResult], reason: str) -> SearchResult:
        return replace(index(), fallback=self._standing_in(reason))

    def _note_success(self) -> None:
        try:
            self._pause.worked()
        except PlainmindError as unwritten:
            _log().warning("that %s works again could not be noted: %s", self.name, unwritten)

    def _note_failure(self, error: Exception) -> None:
        log = _log()
        if isinstance(error, PlainmindError | OSError):
            log.info("%s failed: %s", self.name, error)  # the answer tells, and `status`
        else:
            log.error("%s failed", self.name, exc_info=error)
        try:
            self._pause.failed(_reason(error), error.hint if isinstance(error, PlainmindError) else None)
        except PlainmindError as unwritten:  # a full disk: it is asked again each time
            log.warning("that %s failed could not be noted: %s", self.name, unwritten)


def _nothing_found(name: str, nothing: SearchResult, index: Callable[[], SearchResult]) -> SearchResult:
    """Ask the index too: an engine that wants every word of a question in one file finds few answers."""
    result = index()
    if not result.is_certain:  # what is merely nearest is no better than nothing
        return nothing
    note = f"{name} found nothing; this is from the built-in index"
    return replace(result, degraded=(*nothing.degraded, *result.degraded), notes=(*result.notes, note))


def _log() -> Logger:
    import logging

    return logging.getLogger(__name__)


def _reason(error: Exception) -> str:
    ours = isinstance(error, BackendFailed | PlainmindError | OSError)
    return str(error) if ours else f"{type(error).__name__}: {error}"


ENTRY_POINTS = "plainmind.backends"

_BUILT_IN: Mapping[str, str] = {"qmd": "plainmind.guests.qmd.backend:open_qmd"}
# What deletes the copies that an engine keeps in a folder of its own, whether it is in use or not.
_ERASERS: Mapping[str, str] = {"qmd": "plainmind.guests.qmd.territory:erase_folder"}


def open_backend(name: str, surroundings: Surroundings) -> MemoryBackend:
    """Make an engine by its name, or by "module:factory". Raises ConfigError."""
    return _factory(name)(surroundings)


def _factory(name: str) -> Callable[[Surroundings], MemoryBackend]:
    target = _BUILT_IN.get(name) or (name if ":" in name else offers(ENTRY_POINTS).get(name))
    if target is None:
        known = ", ".join(sorted({"builtin", *_BUILT_IN, *offers(ENTRY_POINTS)}))
        raise ConfigError(f"unknown back end: `{name}`", key="backend", hint=f"use one of {known}")
    try:
        found: Callable[[Surroundings], MemoryBackend] = find_by_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"the back end `{name}` cannot be loaded: {error}",
            key="backend",
            hint=f"`{target}` must name a module and a factory in it",
        ) from error
    return found


def make_backend(memory: Memory, values: EngineValues) -> FallbackBackend:
    """Make the engine that the settings name, for a memory. Starts nothing. Raises ConfigError."""
    paths = memory.notes.values.extra_paths
    mounts = mounts_of(memory.notes.workspace.root, paths)
    surroundings = Surroundings(
        agent_id=values.agent_id,
        folder=values.folder,
        workspace=memory.notes.workspace,
        places=tuple(Place(mount, path.pattern) for mount, path in zip(mounts, paths, strict=True)),
        transcripts=memory.conversations.transcripts if values.knows_sessions else None,
        sources=values.sources,
        erasures=memory.notes.erasures,
        environ=memory.environ,
        settings=memory.settings,
    )
    engine = open_backend(values.name, surroundings)
    pause = Pause(Record(os.path.join(values.folder, "pause.json")), program=values.program)
    return FallbackBackend(engine, pause)


def erase_in_engines(memory: Memory, *, of_every_agent: bool) -> None:
    """Delete the copies of this workspace, or with `of_every_agent` false those of this agent's conversations.

    An engine has no way to forget a text for good; its index is made anew from the files. Engines and agents that are
    not in use now have copies too.
    """
    if memory.index.backend is not None:
        memory.index.backend.erase()
    for name, erase in _ERASERS.items():
        for folder in _engine_folders(memory, name, of_every_agent=of_every_agent):
            find_by_name(erase)(folder)


def _engine_folders(memory: Memory, engine: str, *, of_every_agent: bool) -> Iterator[str]:
    agents = os.path.join(memory.home, "agents")
    workspace = os.path.basename(memory.places.index)
    if of_every_agent:
        candidates = [os.path.join(agents, agent, engine, workspace) for agent in names_in(agents)]
    else:
        of_agent = os.path.join(agents, memory.agent_id, engine)
        candidates = [os.path.join(of_agent, name) for name in names_in(of_agent)]
    return (folder for folder in candidates if os.path.isdir(folder))


def names_in(folder: str) -> list[str]:
    """What a folder holds, in order; nothing where there is none."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
