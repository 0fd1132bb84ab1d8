"""One sync at a time: callers who come while one is running share the next."""

from __future__ import annotations

import threading

from plainmind.base.model import ProgressCallback, SyncReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Sync(Protocol):
        """Brings an index up to date."""

        def __call__(
            self, *, force: bool = False, progress: ProgressCallback | None = None, thorough: bool = True
        ) -> SyncReport:
            """Do it, and say what was done. Unless `thorough`, the system's word on what has changed is enough."""


class SharedSync:
    """Runs a sync for many threads.

    A caller must see its own writes, so a run that began before the call does not count: it may have passed the
    file already. Whoever gets the lock first runs; the others who were waiting by then take that run's report.
    """

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._lock = threading.Lock()
        self._guard = threading.Lock()
        self._arrived = 0
        self._served = 0  # every caller up to this number arrived before the last run began
        self._was_thorough = True
        self._report = SyncReport()

    def run(
        self,
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
        thorough: bool = True,
        sync: Sync | None = None,
    ) -> SyncReport:
        """Return the report of a run that began after this call, and that was as thorough as asked for.

        With a `sync` of its own a caller gets a run of its own; others who wait may share it.
        """
        with self._guard:
            self._arrived += 1
            mine = self._arrived
        with self._lock:
            is_anybodys = not force and sync is None
            if self._served >= mine and is_anybodys and self._was_thorough >= thorough:
                return self._report
            with self._guard:
                covers = self._arrived
            report = (sync or self._sync)(force=force, progress=progress, thorough=thorough)
            # Only a run that succeeded counts for those who waited: after a failure each tries for itself.
            self._report, self._served, self._was_thorough = report, covers, thorough
            return report
