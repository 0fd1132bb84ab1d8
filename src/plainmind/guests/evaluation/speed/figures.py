"""Everything that one run has measured, as values and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from plainmind.guests.evaluation.speed.contestants import ALL_WORDS, SEED, Contestant
from plainmind.guests.evaluation.speed.processes import Cold, Residency
from plainmind.guests.evaluation.speed.timing import Bulk, Times

FEWEST_FOR_GROWTH = 10_000  # below, what a search does whatever the size hides how it grows


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
