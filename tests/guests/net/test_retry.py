"""When a request is sent again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.errors import BadVector, EmbeddingError
from plainmind.guests.net.failures import (
    AnswerUnreadable,
    KeyRefused,
    QuotaSpent,
    RateLimited,
    RequestRefused,
    RetryPolicy,
    ServerTrouble,
    TimedOut,
    Unreachable,
)

POLICY = RetryPolicy()


def pause(
    failure: EmbeddingError, attempt: int = 1, remaining_s: float = 1e9, chance: float = 1.0
) -> float | None:
    return POLICY.pause_s(failure, attempt=attempt, remaining_s=remaining_s, random=lambda: chance)


def test_three_times_and_each_pause_up_to_twice_the_one_before() -> None:
    assert [pause(ServerTrouble("x"), attempt) for attempt in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, None]
    assert RetryPolicy(retries=9).pause_s(
        ServerTrouble("x"), attempt=8, remaining_s=1e9, random=lambda: 1.0
    ) == 8.0  # fmt: skip


@given(st.floats(0, 1), st.integers(1, 3))
def test_the_pause_is_any_part_of_the_whole(chance: float, attempt: int) -> None:
    assert pause(Unreachable("x"), attempt, chance=chance) == pytest.approx(chance * 0.5 * 2 ** (attempt - 1))


@pytest.mark.parametrize(
    "failure",
    [
        KeyRefused("x"),
        QuotaSpent("x"),
        RequestRefused("x"),
        AnswerUnreadable("x"),
        BadVector("x"),
        EmbeddingError("x"),
    ],
)
def test_what_would_fail_again_is_not_sent_again(failure: EmbeddingError) -> None:
    assert pause(failure) is None


def test_a_provider_that_says_how_long_is_not_asked_sooner() -> None:
    assert pause(RateLimited("x", retry_after=7), chance=0.0) == 7
    assert pause(RateLimited("x", retry_after=61)) is None


def test_nobody_waits_for_a_deadline_to_pass() -> None:
    assert pause(RateLimited("x", retry_after=7), remaining_s=6) is None
    assert pause(TimedOut("x"), remaining_s=-0.1, chance=0.0) is None
