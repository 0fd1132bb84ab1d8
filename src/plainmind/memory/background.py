"""A memory that stays open, kept up to date beside its work: a question finds everything done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from plainmind.base.errors import PlainmindError
from plainmind.base.model import SyncReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from plainmind.memory.index import Index
    from plainmind.memory.translation import UpkeepValues

# A process that has just begun is busy with the first question.
BEGINS_AFTER_S = 2.0
_MINUTE_S = 60.0
_LONGEST_FAREWELL_S = 5.0


class BackgroundSync:
    """Syncs in a thread of its own while a block runs: first of all, after changes, and by the clock (`sync.*`)."""

    def __init__(
        self,
        values: UpkeepValues,
        open_index: Callable[[], Index],
        tell: Callable[[str], None],
        *,
        begins_after_s: float = BEGINS_AFTER_S,
        minute_s: float = _MINUTE_S,
    ) -> None:
        """`open_index` is called when there is something to do: loading what an index needs takes its time.

        `tell` is given each new problem, once; a search that follows tells of it too.
        """
        self._values = values
        self._open_index = open_index
        self._tell = tell
        self._begins_after_s = begins_after_s
        self._minute_s = minute_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begin, if the settings ask for anything."""
        values = self._values
        if values.at_start or values.watches or values.interval_minutes:
            self._thread = threading.Thread(target=self._run, name="plainmind-fresh", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self.close()

    @property
    def is_running(self) -> bool:
        """Whether there is, or will be, anything to do."""
        return self._thread is not None and self._thread.is_alive()

    def close(self) -> bool:
        """End, and say whether it has: a sync that takes long is left to itself, and no file is harmed by its end."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_FAREWELL_S)
        return not self.is_running

    def _run(self) -> None:
        if self._stop.wait(self._begins_after_s):
            return
        told: frozenset[str] = frozenset()
        try:
            for report in self._reports():
                problems = frozenset(report.degraded)
                for problem in sorted(problems - told):
                    self._tell(problem)
                told = problems
        except Exception:
            # What is closed under a sync that took too long may fail in any way. Nothing is lost: what was not indexed
            # is found to be new by the next sync.
            if not self._stop.is_set():
                raise

    def _reports(self) -> Iterator[SyncReport]:
        values = self._values
        try:
            index = self._open_index()
        except PlainmindError as error:
            yield SyncReport(degraded=(str(error),))
            return
        if values.watches:
            yield from index.watch(self._stop)  # which looks at all files to begin with
            return
        if values.at_start:
            yield _sync(index)
        while values.interval_minutes and not self._stop.wait(self._minute_s * values.interval_minutes):
            yield _sync(index)


def _sync(index: Index) -> SyncReport:
    try:
        return index.sync_in_background()
    except PlainmindError as error:
        return SyncReport(degraded=(str(error),))
