"""Keeping an engine up to date in a process that lives on: after changes have settled, and by its interval."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from plainmind.base.model import SyncReport
    from plainmind.memory.backend import Initiative

    class Keepable(Protocol):
        """What can be kept up to date."""

        def sync(self, initiative: Initiative) -> SyncReport:
            """Bring it up to date. Never raises."""

        def seconds_until_due(self, *, changed: bool) -> float:
            """How long until there is something to do."""


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
