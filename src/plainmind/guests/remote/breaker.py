"""When a failing provider is asked again: pure decisions, the ledger remembers them for all processes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

_LONGEST_ASKED_FOR_S = 3600.0


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    """How long it is before somebody may ask."""
    return max(0.0, (state.open_until if state.open_until > now else state.trial_until) - now)


def trying(state: BreakerState, now: float, policy: BreakerPolicy) -> BreakerState:
    """One request is on its way to try; nobody else asks meanwhile."""
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
    told = replace(state, failures=state.failures + 1, trial_until=0.0, reason=reason, hint=hint)
    if now < state.open_until and not (terminal and not state.terminal):
        return replace(state, failures=told.failures)  # a late answer to a request from before the pause
    if not (terminal or state.openings or told.failures >= policy.failures):
        return told
    openings = (state.openings if terminal == state.terminal else 0) + 1
    first = policy.terminal_pause_s if terminal else policy.first_pause_s
    longest = policy.longest_terminal_pause_s if terminal else policy.longest_pause_s
    pause = min(first * 2 ** min(openings - 1, 20), longest)
    asked_for = min(retry_after or 0.0, _LONGEST_ASKED_FOR_S)
    return replace(told, openings=openings, terminal=terminal, open_until=now + max(pause, asked_for))
