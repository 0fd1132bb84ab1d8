"""Whether and when to ask again after a failure: pure, chance is passed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plainmind.base.errors import EmbeddingError
from plainmind.guests.remote.failures import ProviderFailure


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Three more attempts, each after a random part of a pause that doubles from half a second to eight.

    A question gets one more: somebody waits for the answer, and words alone can give one.
    """

    retries: int = 3
    retries_of_question: int = 1
    first_pause_s: float = 0.5
    longest_pause_s: float = 8.0
    longest_asked_for_s: float = 60.0  # when the provider asks for more, we give up instead

    def pause_s(
        self,
        failure: EmbeddingError,
        *,
        attempt: int,
        remaining_s: float,
        random: Callable[[], float],
        is_question: bool = False,
    ) -> float | None:
        """Seconds to wait after failed attempt number `attempt` (from 1); None when it was the last.

        A provider that says how long to wait is not asked sooner. Time that ends before the pause is not waited for.
        """
        retries = self.retries_of_question if is_question else self.retries
        if not isinstance(failure, ProviderFailure) or not failure.retryable or attempt > retries:
            return None
        asked_for = failure.retry_after or 0.0
        if asked_for > self.longest_asked_for_s:
            return None
        pause = asked_for + random() * min(self.first_pause_s * 2 ** (attempt - 1), self.longest_pause_s)
        return pause if pause < remaining_s else None
