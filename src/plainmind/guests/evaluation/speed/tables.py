"""The figures as rows of text, for a terminal and for a page alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from plainmind.guests.evaluation.speed.contestants import SEED, Contestant
from plainmind.guests.evaluation.speed.figures import SizeFigures, SpeedFigures
from plainmind.guests.evaluation.speed.targets import TARGETS, in_words
from plainmind.guests.evaluation.speed.timing import Bulk, Times

Row: TypeAlias = tuple[str, ...]

_MB = 1_000_000
_SEARCHES: Mapping[str, str] = {
    "hybrid": "hybrid search",
    "keyword": "keyword search",
    "vector": "vector search",
    "keywordLookup": "  looking up words alone",
    "vectorLookup": "  looking up vectors alone",
}
TIMES = "p50 / p95 (CPU p50), ms"


def target_rows(figures: SpeedFigures, *, with_unmeasured: bool = False) -> Iterator[Row]:
    """Every target with its bounds, what was measured, and which bound that keeps."""
    yield ("figure", "measured", "must", "goal", "reached")
    for target in TARGETS:
        value, verdict = target.measured(figures), target.verdict(figures)
        if value is not None or with_unmeasured:
            shown = "–" if value is None else in_words(value, target.unit)
            yield (target.name, shown, target.bound(target.must), target.bound(target.goal), verdict)


def size_rows(figures: SpeedFigures) -> Iterator[Row]:
    """One column a size: first the times of searches, then everything else, then the others."""
    sizes = figures.sizes
    yield ("chunks", *(f"{size.chunks:,}" for size in sizes))

    def row(name: str, cell: Callable[[SizeFigures], str]) -> Row:
        return (name, *(cell(size) for size in sizes))

    for kind, name in _SEARCHES.items():
        yield row(name, lambda size, kind=kind: times(size.searches[kind]))  # type: ignore[misc]
    yield row("recall@24", lambda size: f"{size.recall:.4f}")
    yield row("`Memory.search`, looking for changed files", lambda size: times(size.memory["search"]))
    yield row("one edited file until it is found", lambda size: times(size.memory["edit"]))
    yield row("`plainmind search`, a new process", lambda size: times(size.cold.search))
    yield row("an empty Python process", lambda size: times(size.cold.bare))
    yield row("  the one over the other", lambda size: in_words(size.cold.ratio, "×"))
    yield row("store alone, first build, chunks/s (by CPU)", lambda size: _rate(size.store))
    yield row("resident memory, peak", lambda size: f"{size.resident.peak / _MB:.0f} MB")
    yield row("  of its own, mapped from files", _parts_of_memory)
    yield row("files", lambda size: f"{size.files:,}")
    yield row("text", lambda size: f"{size.text_bytes / _MB:,.1f} MB")
    yield row("index", lambda size: f"{size.index_bytes / _MB:,.1f} MB ({size.index_over_text:.2f} ×)")
    for key in _others(figures):
        yield row(_name(key), lambda size, key=key: _of_other(size, key))  # type: ignore[misc]
    if any(size.times_faster_than_seed for size in sizes):
        yield row("times faster than the seed's SQL", _faster)


def once_rows(figures: SpeedFigures) -> Iterator[Row]:
    """What does not depend on the number of chunks."""
    bulk = figures.markdown
    yield (
        f"first sync, {figures.markdown_files:,} Markdown files, {bulk.chunks:,} chunks, builtin embedder",
        f"{bulk.seconds:.2f} s: {_rate(bulk)} chunks/s (by CPU)",
    )
    yield (f"sync with nothing to do, {figures.markdown_files:,} files", times(figures.nothing_to_do) + " ms")
    yield ("memory bandwidth, one core reading", f"{figures.bytes_per_second / 1e9:.1f} GB/s")
    if figures.large_file is not None:
        facts = figures.large_file.facts
        done = (
            f"{facts['chunks']:,} chunks" if facts["files"] else f"left out: {'; '.join(facts['left_out'])}"
        )
        yield ("memory while indexing one large file", f"{figures.large_file.peak / _MB:,.0f} MB ({done})")


def growth_rows(figures: SpeedFigures) -> Iterator[Row]:
    """How searches grow with the number of chunks."""
    yield ("search", "exponent of N, CPU p50")
    for kind, value in figures.growth().items():
        yield (_SEARCHES.get(kind, kind).strip(), f"{value:.2f}")


def times(measured: Times) -> str:
    """`1.23 / 2.34 (1.2)`, in milliseconds."""
    return f"{_ms(measured.p50_ms)} / {_ms(measured.p95_ms)} ({_ms(measured.cpu_p50_ms)})"


def _rate(bulk: Bulk) -> str:
    return (
        f"{bulk.chunks_per_second:,.0f} ({bulk.chunks / bulk.cpu_seconds if bulk.cpu_seconds else 0.0:,.0f})"
    )


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _parts_of_memory(size: SizeFigures) -> str:
    own, mapped = size.resident.anonymous, size.resident.mapped
    return "–" if own is None or mapped is None else f"{own / _MB:.0f} + {mapped / _MB:.0f} MB"


def _others(figures: SpeedFigures) -> list[tuple[str, str]]:
    return list(dict.fromkeys((other.name, other.does) for size in figures.sizes for other in size.others))


def _name(key: tuple[str, str]) -> str:
    name, does = key
    return f"the seed's SQL: {does}" if name == SEED else f"limit: {name}, {does}"


def _of_other(size: SizeFigures, key: tuple[str, str]) -> str:
    for other in size.others:
        if (other.name, other.does) == key:
            return times(other.times) + _remarks(other, size)
    return "–"


def _remarks(other: Contestant, size: SizeFigures) -> str:
    capped = f" at {other.chunks:,}" if other.chunks != size.chunks else ""
    recalled = f" recall {other.recall:.3f}" if other.recall is not None and other.name != SEED else ""
    return capped + recalled


def _faster(size: SizeFigures) -> str:
    ratio = size.times_faster_than_seed
    if ratio is None:
        return "–"
    capped = any(other.name == SEED and other.chunks < size.chunks for other in size.others)
    return f"{'over ' if capped else ''}{in_words(ratio, '×')}"
