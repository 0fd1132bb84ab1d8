"""The pause of a failing provider, kept in the ledger so that a second process does not ask again either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from plainmind.base.errors import EmbeddingError
from plainmind.guests.remote.breaker import (
    BreakerPolicy,
    BreakerState,
    after_failure,
    after_success,
    permission,
    trying,
    waiting_s,
)
from plainmind.guests.remote.failures import ProviderPaused

if TYPE_CHECKING:
    from plainmind.guests.remote.ledger import Ledger

_BREAKER = """
    SELECT failures, openings, open_until, trial_until, terminal, reason, hint
      FROM breakers
     WHERE name = :name AND credential = :credential
"""
_SET_BREAKER = """
    INSERT OR REPLACE INTO breakers
           (name, credential, failures, openings, open_until, trial_until, terminal, reason, hint)
    VALUES (:name, :credential, :failures, :openings, :open_until, :trial_until, :terminal, :reason, :hint)
"""
_DROP_BREAKER = "DELETE FROM breakers WHERE name = :name"


class Breaker:
    """Keeps a failing provider from being asked, by every process that shares the ledger."""

    def __init__(self, ledger: Ledger, name: str, credential: str, policy: BreakerPolicy) -> None:
        self._ledger = ledger
        self._row = {"name": name, "credential": credential}
        self._policy = policy

    def state(self) -> BreakerState:
        """What is known now."""
        return self._ledger.reading(self._read)

    def pause(self) -> ProviderPaused | None:
        """Why nobody may ask now, None when somebody may."""
        state, now = self.state(), self._ledger.now()
        return _paused(state, now) if permission(state, now, self._policy) == "wait" else None

    def enter(self) -> bool:
        """Say whether this request is the one that tries. Raises ProviderPaused when it must not be sent."""

        def work(connection: apsw.Connection) -> tuple[str, BreakerState]:
            state = self._read(connection)
            answer = permission(state, now, self._policy)
            if answer == "try":
                self._write(connection, trying(state, now, self._policy))
            return answer, state

        now = self._ledger.now()
        state = self.state()
        if permission(state, now, self._policy) == "ask":
            return False  # without a transaction: this is what nearly every request sees
        answer, state = self._ledger.writing(work)
        if answer == "wait":
            raise _paused(state, now)
        return answer == "try"

    def succeeded(self) -> None:
        """It works."""
        now = self._ledger.now()
        if self.state() != BreakerState():
            self._ledger.writing(
                lambda connection: self._write(connection, after_success(self._read(connection), now))
            )

    def failed(self, failure: EmbeddingError) -> None:
        """Count a failure, after its retries."""
        now = self._ledger.now()

        def work(connection: apsw.Connection) -> None:
            state = after_failure(
                self._read(connection),
                now,
                self._policy,
                terminal=getattr(failure, "terminal", False),
                retry_after=getattr(failure, "retry_after", None),
                reason=str(failure),
                hint=failure.hint,
            )
            self._write(connection, state)

        self._ledger.writing(work)

    def reset(self) -> None:
        """Ask again at once: somebody says that the cause is gone."""
        self._ledger.writing(
            lambda connection: connection.execute(_DROP_BREAKER, {"name": self._row["name"]})
        )

    def _read(self, connection: apsw.Connection) -> BreakerState:
        row = connection.execute(_BREAKER, self._row).fetchone()
        if row is None:
            return BreakerState()
        failures, openings, open_until, trial_until, terminal, reason, hint = row
        return BreakerState(failures, openings, open_until, trial_until, bool(terminal), reason, hint)

    def _write(self, connection: apsw.Connection, state: BreakerState) -> None:
        if state == BreakerState():
            connection.execute(_DROP_BREAKER, {"name": self._row["name"]})
            return
        row = {name: getattr(state, name) for name in BreakerState.__slots__}
        connection.execute(_SET_BREAKER, {**self._row, **row})


def _paused(state: BreakerState, now: float) -> ProviderPaused:
    seconds = waiting_s(state, now)
    when = f"for {seconds:.0f} s" if seconds < 120 else f"for {seconds / 60:.0f} min"
    return ProviderPaused(
        f"the provider is not asked {when} because {state.reason}", hint=state.hint, retry_after=seconds
    )
