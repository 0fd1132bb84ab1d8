"""The figures as rows of text and as a picture, for a terminal and for a page alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import TypeAlias

from plainmind.base.value import value
from speed.figures import TARGETS, SizeFigures, SpeedFigures, in_words
from speed.others import ALL_WORDS, SEED, Contestant
from speed.timing import Bulk, Times

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
_WIDTH, _HEIGHT = 760, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 210, 44, 48
_OURS: Mapping[str, tuple[str, str]] = {
    "hybrid": ("hybrid search", "#1b4f8a"),
    "keyword": ("keyword search", "#3b8f5a"),
    "vector": ("vector search", "#b0581e"),
}
_PALE = ("#7fb58f", "#d0a070", "#9a8fc0", "#c08f9a")  # one for each engine that is a limit


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
    if figures.first_tools is not None:
        yield ("`plainmind mcp` from its start to its first `tools/list`", times(figures.first_tools) + " ms")
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
    for kind, slope in figures.growth().items():
        yield (_SEARCHES.get(kind, kind).strip(), f"{slope:.2f}")


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


@value
class Line:
    """Points (chunks, milliseconds) with a name."""

    name: str
    colour: str
    points: Sequence[tuple[int, float]]
    dashes: str = ""
    width: float = 1.5


def lines_of(figures: SpeedFigures) -> list[Line]:
    """Ours, the recipe's, the single engines', and two floors."""
    lines = [
        Line(name, colour, [(size.chunks, size.searches[kind].p50_ms) for size in figures.sizes], width=2.5)
        for kind, (name, colour) in _OURS.items()
    ]
    others: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for size in figures.sizes:
        for other in size.others:
            if other.chunks == size.chunks:
                others.setdefault((other.name, other.does), []).append((size.chunks, other.times.p50_ms))
    pale = cycle(_PALE)
    for (name, does), points in others.items():
        if name == SEED:
            wanted = does == ALL_WORDS
            lines += [Line("the seed's SQL", "#a02020", points, width=2.5)] if wanted else []
        else:
            lines.append(Line(f"{name}, {does}", next(pale), points, "5 3"))
    for name, bytes_each in (("floor: 32 bits a number", 4.0), ("floor: 1 bit a number", 1 / 8)):
        points = [
            (size.chunks, size.chunks * figures.dims * bytes_each / figures.bytes_per_second * 1000)
            for size in figures.sizes
        ]
        lines.append(Line(name, "#000000", points, "1 3"))
    return lines


def picture(figures: SpeedFigures) -> str:
    """Draw the lines, each with its name at its right end."""
    lines = lines_of(figures)
    axes = _Axes.around([point for line in lines for point in line.points])
    head = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    title = f"Search time by number of chunks, {figures.dims} dimensions (median, both axes logarithmic)"
    parts = [
        f'<svg {head} font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="14">{title}</text>',
        *_grid(axes),
        *(_drawn(line, axes) for line in lines),
        *_names(lines, axes),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


@value
class _Axes:
    """Decades from which to which, on both axes."""

    least_x: float
    most_x: float
    least_y: int
    most_y: int

    @classmethod
    def around(cls, points: Sequence[tuple[int, float]]) -> _Axes:
        xs = [math.log10(x) for x, _ in points]
        ys = [math.log10(max(y, 1e-6)) for _, y in points]
        # A single size is a column of points; it gets half a decade on each side.
        beside = 0.5 if max(xs) == min(xs) else 0.0
        return cls(min(xs) - beside, max(xs) + beside, math.floor(min(ys)), math.ceil(max(ys) + 1e-9))

    def x(self, chunks: float) -> float:
        share = (math.log10(chunks) - self.least_x) / (self.most_x - self.least_x)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, milliseconds: float) -> float:
        share = (math.log10(max(milliseconds, 1e-6)) - self.least_y) / max(1, self.most_y - self.least_y)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _grid(axes: _Axes) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for decade in range(axes.least_y, axes.most_y + 1):
        y = axes.y(10.0**decade)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_in_units(decade)}</text>'
    for decade in range(math.ceil(axes.least_x), math.floor(axes.most_x) + 1):
        x = axes.x(10.0**decade)
        yield f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#dddddd"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{10**decade:,}</text>'
    yield f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 10}" text-anchor="middle">chunks</text>'


def _in_units(decade: int) -> str:
    if decade < 0:
        return f"{10 ** (decade + 3):g} µs"
    return f"{10**decade} ms" if decade < 3 else f"{10 ** (decade - 3):,} s"


def _drawn(line: Line, axes: _Axes) -> str:
    places = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in line.points)
    dashes = f' stroke-dasharray="{line.dashes}"' if line.dashes else ""
    path = f'<polyline points="{places}" fill="none" stroke="{line.colour}" stroke-width="{line.width}"{dashes}/>'
    dots = "".join(
        f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="3" fill="{line.colour}"/>'
        for x, y in line.points
    )
    return path + dots


def _names(lines: Sequence[Line], axes: _Axes) -> Iterator[str]:
    """Names in the order of the lines' ends, moved apart where two ends are close."""
    lowest = _TOP
    for line in sorted(lines, key=lambda line: axes.y(line.points[-1][1])):
        lowest = max(lowest + 15, int(axes.y(line.points[-1][1])))
        x = _WIDTH - _RIGHT + 12
        yield f'<text x="{x}" y="{lowest + 4}" fill="{line.colour}">{line.name}</text>'
