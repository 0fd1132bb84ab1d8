"""Failures of a provider: what the memory is told of them, and when a failing provider is asked again.

Inside this package a failure is a NetFailure; what leaves it is an EmbeddingError that says what to do. When to ask
again are pure decisions, which the ledger remembers for all processes.
"""

from __future__ import annotations

from typing import Literal

import apsw

from plainmind.base.errors import BadVector, EmbeddingError, TransientEmbeddingError
from plainmind.base.value import asdict, replace, value
from plainmind.guests.net.failures import (
    AddressRefused,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectionLost,
    KeyRefused,
    ModelUnknown,
    NetFailure,
    QuotaSpent,
    RateLimited,
    RedirectRefused,
    RequestRefused,
    ServerTrouble,
    TextTooLong,
    TimedOut,
    Unreachable,
    Untrusted,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.remote.ledger import Ledger


class TextRefused(RequestRefused):
    """The provider takes requests like this one, but not with this text."""

    terminal = False


class BudgetSpent(NetFailure):
    """Our own daily limit of tokens is reached."""


class ProviderPaused(NetFailure):
    """The provider has failed before and is not asked again until `retry_after` seconds have passed."""


class VectorsPending(EmbeddingError):
    """A batch job is making these vectors; a later sync finds them in the cache."""


_ASKED_AGAIN = "it is asked again by itself"
_IS_IT_AN_API = "check `remote.baseUrl`: is it the address of an embeddings API?"
_HINTS: dict[type[NetFailure], str] = {
    Unreachable: "check `remote.baseUrl`, `remote.proxy`, whether the server runs, and the network",
    ConnectionLost: _ASKED_AGAIN,
    TimedOut: "it may be overloaded; what is missing is asked for again at the next sync",
    ServerTrouble: _ASKED_AGAIN,
    RateLimited: f"{_ASKED_AGAIN}; lower `remote.concurrency` when this happens often",
    Untrusted: "check `remote.baseUrl` and the clock; a certificate of your own is named by SSL_CERT_FILE",
    AddressRefused: "check `remote.baseUrl`; an address of your own network must be set there by yourself, and "
    "others need https",
    RedirectRefused: "set `remote.baseUrl` to the address that the API really has",
    KeyRefused: "check `remote.apiKey` or the provider's environment variable",
    QuotaSpent: "add credit to the account, or choose another provider; keywords answer meanwhile",
    ModelUnknown: "check `model` and `remote.baseUrl`",
    RequestRefused: "check `model`, `remote.baseUrl` and `outputDimensionality`",
    TextTooLong: "choose a model with a longer context, or smaller chunks (`chunking.tokens`)",
    AnswerTooLarge: _IS_IT_AN_API,
    AnswerUnreadable: _IS_IT_AN_API,
}


def hint_for(failure: NetFailure) -> str | None:
    """What a user can do about it."""
    kinds = (kind for kind in type(failure).__mro__ if kind in _HINTS)
    return failure.hint or _HINTS.get(next(kinds, NetFailure))


def embedding_error(failure: NetFailure) -> EmbeddingError:
    """Say it to the memory; the failure itself is to be its cause."""
    kind = TransientEmbeddingError if failure.retryable else EmbeddingError
    return kind(str(failure), hint=hint_for(failure))


# --- when a failing provider is asked again ---


_LONGEST_ASKED_FOR_S = 3600.0

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


@value
class BreakerPolicy:
    """How many failures in a row pause a provider, and for how long; each pause is twice the one before.

    A terminal failure pauses at once, and longer: with these figures it is asked three times an hour at most.
    """

    failures: int = 5
    first_pause_s: float = 60.0
    longest_pause_s: float = 900.0
    terminal_pause_s: float = 900.0
    longest_terminal_pause_s: float = 3600.0
    trial_s: float = 180.0  # how long one request may try whether it works again


@value
class BreakerState:
    """What is remembered about a provider; the empty state means: ask."""

    failures: int = 0
    openings: int = 0
    open_until: float = 0.0
    trial_until: float = 0.0
    terminal: bool = False
    reason: str = ""
    hint: str | None = None


def permission(state: BreakerState, now: float, policy: BreakerPolicy) -> Literal["ask", "try", "wait"]:
    """Say whether to ask, to try with one request, or not to ask yet."""
    if not state.open_until:
        return "ask"
    # A clock that was set back must not make a pause longer than any pause is.
    longest = max(policy.longest_pause_s, policy.longest_terminal_pause_s, _LONGEST_ASKED_FOR_S)
    if now < state.open_until <= now + longest:
        return "wait"
    return "wait" if now < state.trial_until <= now + policy.trial_s else "try"


def waiting_s(state: BreakerState, now: float) -> float:
    """How long it is before the provider may be asked."""
    return max(0.0, (state.open_until if state.open_until > now else state.trial_until) - now)


def during_trial(state: BreakerState, now: float, policy: BreakerPolicy) -> BreakerState:
    """One request is on its way to try; no other is sent meanwhile."""
    return replace(state, trial_until=now + policy.trial_s)


def after_success(state: BreakerState, now: float) -> BreakerState:
    """It works; but an answer to a request from before the pause does not end the pause."""
    return state if now < state.open_until else BreakerState()


def after_failure(
    state: BreakerState,
    now: float,
    policy: BreakerPolicy,
    *,
    terminal: bool,
    retry_after: float | None,
    reason: str,
    hint: str | None,
) -> BreakerState:
    """Count a failure, and pause when it was one too many, a terminal one, or the one that tried."""
    counted = replace(state, failures=state.failures + 1, trial_until=0.0, reason=reason, hint=hint)
    if now < state.open_until and not (terminal and not state.terminal):
        return replace(state, failures=counted.failures)  # a late answer to a request from before the pause
    if not (terminal or state.openings or counted.failures >= policy.failures):
        return counted
    openings = (state.openings if terminal == state.terminal else 0) + 1
    first = policy.terminal_pause_s if terminal else policy.first_pause_s
    longest = policy.longest_terminal_pause_s if terminal else policy.longest_pause_s
    pause = min(first * 2 ** min(openings - 1, 20), longest)
    asked_for = min(retry_after or 0.0, _LONGEST_ASKED_FOR_S)
    return replace(counted, openings=openings, terminal=terminal, open_until=now + max(pause, asked_for))


class Breaker:
    """Keeps a failing provider from being asked, by every process that shares the ledger."""

    def __init__(self, ledger: Ledger, name: str, credential: str, policy: BreakerPolicy) -> None:
        self._ledger = ledger
        self._row = {"name": name, "credential": credential}
        self._policy = policy

    def state(self) -> BreakerState:
        """What is known now."""
        return self._ledger.read(self._read)

    def pause(self) -> ProviderPaused | None:
        """Why the provider may not be asked now, None when it may."""
        state, now = self.state(), self._ledger.now()
        return _pause_of(state, now) if permission(state, now, self._policy) == "wait" else None

    def enter(self) -> bool:
        """Say whether this request is the one that tries. Raises ProviderPaused when it must not be sent."""

        def work(connection: apsw.Connection) -> tuple[str, BreakerState]:
            state = self._read(connection)
            answer = permission(state, now, self._policy)
            if answer == "try":
                self._write(connection, during_trial(state, now, self._policy))
            return answer, state

        now = self._ledger.now()
        state = self.state()
        if permission(state, now, self._policy) == "ask":
            return False  # without a transaction: this is what nearly every request sees
        answer, state = self._ledger.write(work)
        if answer == "wait":
            raise _pause_of(state, now)
        return answer == "try"

    def count_success(self) -> None:
        """It works."""
        now = self._ledger.now()
        if self.state() != BreakerState():
            self._ledger.write(
                lambda connection: self._write(connection, after_success(self._read(connection), now))
            )

    def count_failure(self, failure: NetFailure | BadVector) -> None:
        """Count a failure, after its retries."""
        now = self._ledger.now()

        def work(connection: apsw.Connection) -> None:
            state = after_failure(
                self._read(connection),
                now,
                self._policy,
                terminal=isinstance(failure, NetFailure) and failure.terminal,
                retry_after=failure.retry_after if isinstance(failure, NetFailure) else None,
                reason=str(failure),
                hint=hint_for(failure) if isinstance(failure, NetFailure) else failure.hint,
            )
            self._write(connection, state)

        self._ledger.write(work)

    def reset(self) -> None:
        """Ask again at once: a person says that the cause is gone."""
        self._ledger.write(lambda connection: connection.execute(_DROP_BREAKER, {"name": self._row["name"]}))

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
        connection.execute(_SET_BREAKER, {**self._row, **asdict(state)})


def _pause_of(state: BreakerState, now: float) -> ProviderPaused:
    seconds = waiting_s(state, now)
    when = f"for {seconds:.0f} s" if seconds < 120 else f"for {seconds / 60:.0f} min"
    return ProviderPaused(
        f"the provider is not asked {when} because {state.reason}", hint=state.hint, retry_after=seconds
    )
