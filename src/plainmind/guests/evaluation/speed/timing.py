"""Times of many runs: the middle one and the slow ones, by the clock on the wall and by that of the processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

Asked = TypeVar("Asked")


@dataclass(frozen=True, slots=True)
class Times:
    """What one piece of work took, over so many runs. The processor's time is of all threads together."""

    runs: int
    p50_ms: float
    p95_ms: float
    cpu_p50_ms: float


@dataclass(frozen=True, slots=True)
class Bulk:
    """A long piece of work on many chunks, done once."""

    chunks: int
    seconds: float
    cpu_seconds: float

    @property
    def chunks_per_second(self) -> float:
        """How many chunks went through in a second of waiting."""
        return self.chunks / self.seconds if self.seconds else 0.0


class Stopwatch:
    """Adds up the time that is spent inside its blocks."""

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self._since = (0.0, 0.0)

    def __enter__(self) -> Self:
        self._since = (time.perf_counter(), time.process_time())
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._since[0]
        self.cpu_seconds += time.process_time() - self._since[1]


def measure(
    work: Callable[[Asked], object], over: Iterable[Asked], *, budget_s: float, least: int = 3
) -> Times:
    """Time one run for each value, until the budget is spent and `least` runs are done."""
    laps: list[tuple[float, float]] = []
    deadline = time.perf_counter() + budget_s
    for value in over:
        if len(laps) >= least and time.perf_counter() > deadline:
            break
        with Stopwatch() as lap:
            work(value)
        laps.append((lap.seconds, lap.cpu_seconds))
    return summary([wall for wall, _ in laps], [cpu for _, cpu in laps])


def summary(seconds: Sequence[float], cpu_seconds: Sequence[float]) -> Times:
    """The percentiles of some laps."""
    return Times(
        runs=len(seconds),
        p50_ms=percentile(seconds, 0.5) * 1000,
        p95_ms=percentile(seconds, 0.95) * 1000,
        cpu_p50_ms=percentile(cpu_seconds, 0.5) * 1000,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lies, in between two where it falls between them."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
