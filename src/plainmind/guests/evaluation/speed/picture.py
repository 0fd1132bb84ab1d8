"""Search times against the number of chunks on logarithmic axes, as SVG, over the floor that memory sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from plainmind.guests.evaluation.speed.contestants import ALL_WORDS, SEED
from plainmind.guests.evaluation.speed.figures import SpeedFigures

_WIDTH, _HEIGHT = 760, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 210, 44, 48
_OURS: Mapping[str, tuple[str, str]] = {
    "hybrid": ("hybrid search", "#1b4f8a"),
    "keyword": ("keyword search", "#3b8f5a"),
    "vector": ("vector search", "#b0581e"),
}
_PALE = ("#7fb58f", "#d0a070", "#9a8fc0", "#c08f9a")  # one for each engine that is a limit


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
