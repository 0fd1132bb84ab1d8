"""An engine that may fail, and an index that answers in its place at once until it works again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from plainmind.base.errors import PlainmindError
from plainmind.base.model import SearchResult, SyncReport
from plainmind.base.value import replace
from plainmind.memory.backend import BackendBusy, BackendFailed, Initiative, MemoryBackend, Question
from plainmind.memory.backend_upkeep import Upkeep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any

    from plainmind.memory.backend_record import Record

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
        """Answer in time, whoever does it: `index` is asked the same, and takes next to no time."""
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
        except Exception as error:  # noqa: BLE001 (whatever it is, there is somebody else to ask)
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
            self._pause.failed(_reason(error), getattr(error, "hint", None))
        except PlainmindError as unwritten:  # a full disk: it is asked again each time
            log.warning("that %s failed could not be noted: %s", self.name, unwritten)


def _nothing_found(name: str, nothing: SearchResult, index: Callable[[], SearchResult]) -> SearchResult:
    """Ask the index too: an engine that wants every word of a question in one file finds few answers."""
    result = index()
    if not result.hits:
        return nothing
    note = f"{name} found nothing; this is from the built-in index"
    return replace(result, degraded=(*nothing.degraded, *result.degraded), notes=(*result.notes, note))


def _log() -> Logger:
    import logging

    return logging.getLogger(__name__)


def _reason(error: Exception) -> str:
    ours = isinstance(error, BackendFailed | PlainmindError | OSError)
    return str(error) if ours else f"{type(error).__name__}: {error}"
