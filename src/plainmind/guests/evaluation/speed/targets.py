"""What we want to reach, as data: what must be, what is hoped for, and where in the figures it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from plainmind.guests.evaluation.speed.figures import SizeFigures, SpeedFigures

Verdict: TypeAlias = Literal["goal", "must", "missed", "not measured"]

_MB = 1_000_000
_NO_OP_FILES = 1_000
_FEWEST_FOR_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class Target:
    """A figure with its two bounds. `more` says that larger is better."""

    name: str
    unit: str
    must: float
    goal: float | None
    measured: Callable[[SpeedFigures], float | None]
    more: bool = False

    def verdict(self, figures: SpeedFigures) -> Verdict:
        """Which bound is kept; compared as precisely as it is shown."""
        value = self.measured(figures)
        if value is None:
            return "not measured"
        if self.goal is not None and self._keeps(value, self.goal):
            return "goal"
        return "must" if self._keeps(value, self.must) else "missed"

    def bound(self, value: float | None) -> str:
        """A bound in words: `≤ 4 ms`."""
        return "–" if value is None else f"{'≥' if self.more else '≤'} {in_words(value, self.unit)}"

    def _keeps(self, value: float, bound: float) -> bool:
        return value >= bound if self.more else value <= bound


def in_words(value: float, unit: str) -> str:
    """A figure with its unit, to three digits: `1,234 ms`, `0.998`, `12.3 ×`."""
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits} {unit}".rstrip()


def _at(chunks: int, read: Callable[[SizeFigures], float | None]) -> Callable[[SpeedFigures], float | None]:
    def measured(figures: SpeedFigures) -> float | None:
        size = figures.at(chunks)
        return None if size is None else read(size)

    return measured


def _hybrid(size: SizeFigures) -> float:
    return size.searches["hybrid"].p50_ms


def _no_op(figures: SpeedFigures) -> float | None:
    return figures.nothing_to_do.p50_ms if figures.markdown_files == _NO_OP_FILES else None


def _index_over_text(figures: SpeedFigures) -> float | None:
    """Of the largest size, unless that is so small that an empty index would already be more than its text."""
    largest = figures.sizes[-1] if figures.sizes else None
    return largest.index_over_text if largest and largest.chunks >= _FEWEST_FOR_SIZE else None


TARGETS: tuple[Target, ...] = (
    Target(
        "cold `plainmind search`, 10,000 chunks, over an empty Python process",
        "×", 12, 7, _at(10_000, lambda size: size.cold.ratio),
    ),
    Target("hybrid search p50, 10,000 chunks", "ms", 4, 1.5, _at(10_000, _hybrid)),
    Target("hybrid search p50, 100,000 chunks", "ms", 15, 5, _at(100_000, _hybrid)),
    Target(
        "times faster than the recipe's SQL, 100,000 chunks",
        "×", 50, None, _at(100_000, lambda size: size.times_faster_than_seed), more=True,
    ),
    Target("hybrid search p50, 1,000,000 chunks", "ms", 80, 25, _at(1_000_000, _hybrid)),
    Target(
        "recall@24 of the nearest chunks, worst size",
        "", 0.98, 0.99, lambda figures: min((size.recall for size in figures.sizes), default=None), more=True,
    ),
    Target("sync with nothing to do, 1,000 files", "ms", 60, 20, _no_op),
    Target(
        "one edited file until it is found, 100,000 chunks",
        "ms", 40, 10, _at(100_000, lambda size: size.memory["edit"].p50_ms),
    ),
    Target(
        "first sync with the builtin embedder",
        "chunks/s", 800, 3_000, lambda figures: figures.markdown.chunks_per_second, more=True,
    ),
    Target(
        "resident memory while searching 100,000 chunks",
        "MB", 250, 120, _at(100_000, lambda size: size.resident.peak / _MB),
    ),
    Target(
        "index over text, largest size",
        "×", 2.3, 1.3,
        _index_over_text,
    ),
    Target(
        "growth of hybrid search with N, exponent, 10,000 to 1,000,000",
        "", 0.9, 0.6,
        lambda figures: figures.growth().get("hybrid") if figures.at(1_000_000) and figures.at(10_000) else None,
    ),
)  # fmt: skip
