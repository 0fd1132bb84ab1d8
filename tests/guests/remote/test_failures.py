"""What the memory is told of a failing provider, and when that one is asked again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.errors import EmbeddingError, TransientEmbeddingError
from plainmind.guests.net import failures as of_net
from plainmind.guests.net.failures import Abandoned, NetFailure
from plainmind.guests.remote import failures
from plainmind.guests.remote.failures import (
    BreakerPolicy,
    BreakerState,
    BudgetSpent,
    ProviderPaused,
    after_failure,
    after_success,
    during_trial,
    embedding_error,
    permission,
    waiting_s,
)

# These are our own decisions; whoever takes one says what to do about it.
OURS = (Abandoned, BudgetSpent, ProviderPaused)


def every_kind() -> list[type[NetFailure]]:
    found = {**vars(of_net), **vars(failures)}.values()
    return [kind for kind in found if isinstance(kind, type) and issubclass(kind, NetFailure)]


@pytest.mark.parametrize("kind", every_kind())
def test_every_failure_is_told_as_an_embedding_error_that_may_pass_or_not(kind: type[NetFailure]) -> None:
    told = embedding_error(kind("it failed"))

    assert str(told) == "it failed"
    assert isinstance(told, EmbeddingError)
    assert isinstance(told, TransientEmbeddingError) == kind.retryable
    assert told.hint or kind is NetFailure or kind in OURS


def test_a_hint_of_its_own_counts_more() -> None:
    assert embedding_error(of_net.KeyRefused("no key", hint="set one")).hint == "set one"


POLICY = BreakerPolicy()


def failed(
    state: BreakerState, now: float, *, terminal: bool = False, retry_after: float | None = None
) -> BreakerState:
    return after_failure(
        state, now, POLICY, terminal=terminal, retry_after=retry_after, reason="it is down", hint=None
    )


def asked_at(*, terminal: bool, seconds: int) -> list[int]:
    """When a provider that always fails is asked by somebody who wants to every second."""
    state, asked = BreakerState(), []
    for now in range(1_000, 1_000 + seconds):
        if permission(state, now, POLICY) != "wait":
            asked.append(now - 1_000)
            state = failed(state, now, terminal=terminal)
    return asked


def test_five_failures_in_a_row_pause_and_each_pause_is_twice_the_one_before() -> None:
    asked = asked_at(terminal=False, seconds=7200)

    assert asked[:5] == [0, 1, 2, 3, 4]
    pauses = [later - earlier for earlier, later in pairwise(asked[4:])]
    assert pauses[:5] == [60, 120, 240, 480, 900]
    assert set(pauses[5:]) == {900}


def test_a_terminal_failure_is_asked_three_times_in_any_hour_at_most() -> None:
    asked = asked_at(terminal=True, seconds=6 * 3600)

    assert asked[:3] == [0, 900, 2700]
    assert all(sum(1 for at in asked if start <= at < start + 3600) <= 3 for start in asked)


def test_a_success_between_failures_begins_the_count_anew() -> None:
    state = BreakerState()
    for now in range(20):
        state = failed(state, now) if now % 5 != 4 else after_success(state, now)

    assert permission(state, 20, POLICY) == "ask"


def test_after_a_pause_one_tries_and_the_others_wait() -> None:
    state = failed(BreakerState(), 100, terminal=True)
    assert permission(state, 100 + 899, POLICY) == "wait"
    assert permission(state, 100 + 900, POLICY) == "try"

    state = during_trial(state, 1000, POLICY)
    assert permission(state, 1001, POLICY) == "wait"
    assert 0 < waiting_s(state, 1001) <= POLICY.trial_s
    assert permission(after_success(state, 1002), 1002, POLICY) == "ask"
    assert permission(state, 1000 + POLICY.trial_s + 1, POLICY) == "try"  # who tried has died


def test_late_answers_to_old_requests_neither_end_nor_lengthen_a_pause() -> None:
    paused = failed(BreakerState(), 100, terminal=True)

    assert after_success(paused, 101) == paused
    assert failed(paused, 101).open_until == paused.open_until
    assert failed(paused, 101, terminal=True).open_until == paused.open_until


def test_a_provider_that_asks_for_a_longer_pause_gets_it_up_to_an_hour() -> None:
    state = BreakerState(failures=4)

    assert failed(state, 0, retry_after=300).open_until == 300
    assert failed(state, 0, retry_after=1e9).open_until == 3600


def test_a_clock_that_was_set_back_does_not_prolong_a_pause() -> None:
    paused = failed(BreakerState(), 1_000_000, terminal=True)

    assert permission(paused, 10, POLICY) == "try"


@given(st.lists(st.tuples(st.floats(0, 10_000), st.sampled_from(["fail", "end", "work"])), max_size=60))
def test_whatever_happens_somebody_may_ask_again_within_the_longest_pause(
    events: list[tuple[float, str]],
) -> None:
    state, now = BreakerState(), 1_000.0
    for passed, event in events:
        now += passed
        if permission(state, now, POLICY) == "try":
            state = during_trial(state, now, POLICY)
        state = after_success(state, now) if event == "work" else failed(state, now, terminal=event == "end")

    assert permission(state, now + 3601, POLICY) != "wait"
