"""Everything that one run has measured, as values and as JSON, and what should be reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Literal, TypeAlias

from plainmind.base.value import fields, value
from speed.others import ALL_WORDS, SEED, Contestant
from speed.timing import Bulk, Cold, Residency, Times

FEWEST_FOR_GROWTH = 10_000  # below, what a search does whatever the size hides how it grows
Verdict: TypeAlias = Literal["goal", "must", "missed", "not measured"]
_MB = 1_000_000
_NO_OP_FILES = 1_000
_FEWEST_FOR_SIZE = 10_000


@value
class SizeFigures:
    """What was measured at one number of chunks."""

    chunks: int
    files: int
    text_bytes: int
    index_bytes: int
    making_seconds: float  # spent on inventing the corpus
    store: Bulk
    searches: Mapping[str, Times]
    recall: float
    memory: Mapping[str, Times]
    cold: Cold
    resident: Residency
    others: tuple[Contestant, ...] = ()

    @property
    def index_over_text(self) -> float:
        """How many bytes of index a byte of text needs."""
        return self.index_bytes / self.text_bytes

    @property
    def times_faster_than_seed(self) -> float | None:
        """How many of our searches fit into one of the recipe's; at least so many where the recipe had fewer chunks.

        By the processor's time, which no other program on the machine can lengthen for one of the two alone.
        """
        for other in self.others:
            if (other.name, other.does) == (SEED, ALL_WORDS):
                return other.times.cpu_p50_ms / self.searches["hybrid"].cpu_p50_ms
        return None


@value
class SpeedFigures:
    """One run of the benchmark."""

    machine: Mapping[str, object]
    versions: Mapping[str, str]
    dims: int
    seed: int
    bytes_per_second: float  # that one core reads from memory
    markdown: Bulk  # real files through a first sync
    markdown_files: int
    nothing_to_do: Times
    sizes: tuple[SizeFigures, ...]
    first_tools: Times | None = None  # of a server for MCP, from its start to its end
    large_file: Residency | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def at(self, chunks: int) -> SizeFigures | None:
        """The figures of one size."""
        return next((size for size in self.sizes if size.chunks == chunks), None)

    def growth(self) -> Mapping[str, float]:
        """The exponents of N with which the processor's time of a search grows; empty for a single size."""
        kinds: dict[str, list[tuple[int, float]]] = {}
        for size in self._large_enough():
            for kind, times in size.searches.items():
                kinds.setdefault(kind, []).append((size.chunks, times.cpu_p50_ms))
            for other in size.others:
                if other.chunks == size.chunks:
                    kinds.setdefault(f"{other.name}: {other.does}", []).append(
                        (size.chunks, other.times.cpu_p50_ms)
                    )
        return {kind: exponent(points) for kind, points in kinds.items() if len(points) > 1}

    def _large_enough(self) -> Sequence[SizeFigures]:
        large = [size for size in self.sizes if size.chunks >= FEWEST_FOR_GROWTH]
        return large if len(large) > 1 else self.sizes


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """The slope of the straight line through points on logarithmic axes."""
    logs = [(math.log(x), math.log(max(y, 1e-9))) for x, y in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread if spread else 0.0


def as_json(value: Any) -> Any:
    """Values as JSON knows them: names in camel case, numbers to six digits."""
    if is_dataclass(value):
        return {_camel(field.name): as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@value
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


def _first_tools(figures: SpeedFigures) -> float | None:
    return None if figures.first_tools is None else figures.first_tools.cpu_p50_ms


def _index_over_text(figures: SpeedFigures) -> float | None:
    """Of the largest size, unless that is so small that an empty index would already be more than its text."""
    largest = figures.sizes[-1] if figures.sizes else None
    return largest.index_over_text if largest and largest.chunks >= _FEWEST_FOR_SIZE else None


TARGETS: tuple[Target, ...] = (
    Target(
        "cold `plainmind search`, 10,000 chunks, over an empty Python process",
        "×", 12, 7, _at(10_000, lambda size: size.cold.ratio),
    ),
    Target(
        "processor time of `plainmind mcp` for its first `tools/list`",
        "ms", 100, 60, _first_tools,
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
