"""What a process holds, written down again and again, and whether a line through it rises."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping, Sequence

from plainmind.base.value import value

WARM_UP = 0.4  # of the time: allocators, caches and the first conversation fill up


@value
class Kind:
    """Something that is measured, and how much a line through it may rise from its beginning to its end."""

    name: str
    unit: str
    share: float  # of what it is at the beginning
    slack: float  # and so much more

    def most(self, begin: float) -> float:
        """The rise that is still taken for noise."""
        return self.share * begin + self.slack


KINDS = {
    "memory": Kind("memory", "MB", 0.08, 4.0),
    "files": Kind("open files", "", 0.0, 3.0),
    "threads": Kind("threads", "", 0.0, 2.0),
    "index": Kind("index, bytes for each byte of text", "", 0.15, 0.1),
    "journals": Kind("journals, bytes for each operation", "B", 0.1, 64.0),
}


@value
class Curve:
    """One kind of figure of one process, or of the memory as a whole."""

    who: str
    kind: str
    points: tuple[tuple[float, float], ...]  # (seconds, figure)

    @property
    def warm(self) -> tuple[tuple[float, float], ...]:
        """The points behind the warm-up."""
        end = self.points[-1][0]
        return tuple(point for point in self.points if point[0] >= end * WARM_UP)

    @property
    def line(self) -> tuple[float, float]:
        """Where a straight line through the warm points begins and ends: the median of all slopes, as in Theil and Sen.

        One sample that is far off does not turn it.
        """
        warm = _thinned(self.warm)
        slopes = [
            (later[1] - earlier[1]) / (later[0] - earlier[0])
            for at, earlier in enumerate(warm)
            for later in warm[at + 1 :]
            if later[0] > earlier[0]
        ]
        slope = statistics.median(slopes) if slopes else 0.0
        begin = statistics.median(y - slope * x for x, y in warm)
        return begin + slope * warm[0][0], begin + slope * warm[-1][0]

    @property
    def fault(self) -> str | None:
        """What is wrong with it; None when it is flat."""
        begin, end = self.line
        kind = KINDS[self.kind]
        if end - begin <= kind.most(begin):
            return None
        return f"{self.who}: {kind.name} rises from {begin:,.1f} to {end:,.1f} {kind.unit}".rstrip()


def _thinned(points: Sequence[tuple[float, float]], most: int = 240) -> Sequence[tuple[float, float]]:
    return points[:: len(points) // most + 1]


class Notebook:
    """Takes samples of processes and folders, and gives them back as curves."""

    def __init__(self) -> None:
        self._points: dict[tuple[str, str], list[tuple[float, float]]] = {}

    def take_process(self, at: float, who: str, pid: int) -> None:
        """Write down what a process holds now."""
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            status = dict(line.split(":", 1) for line in file)
        self.take(at, who, "memory", int(status["VmRSS"].split()[0]) / 1024)
        self.take(at, who, "threads", int(status["Threads"]))
        self.take(at, who, "files", len(os.listdir(f"/proc/{pid}/fd")))

    def take(self, at: float, who: str, kind: str, figure: float) -> None:
        """Write one figure down."""
        self._points.setdefault((who, kind), []).append((round(at, 1), round(figure, 3)))

    def curves(self) -> Iterator[Curve]:
        """All of them, by process."""
        for (who, kind), points in sorted(self._points.items()):
            yield Curve(who, kind, tuple(points))


def size_of(folder: str, endings: tuple[str, ...] = ()) -> int:
    """The bytes of the files in a folder whose names end so; while others write there."""
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            if not endings or name.endswith(endings):
                try:
                    size += os.path.getsize(os.path.join(path, name))
                except FileNotFoundError:
                    continue
    return size


_WIDTH, _HEIGHT, _MARGIN = 640, 220, 56


def picture(curve: Curve) -> str:
    """Draw a curve as SVG, with the line through its warm points."""
    times, figures = [x for x, _ in curve.points], [y for _, y in curve.points]
    top = max(figures) * 1.1 or 1.0
    width, height, length = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN, max(times) or 1.0

    def place(point: tuple[float, float]) -> str:
        return f"{_MARGIN + width * point[0] / length:.1f},{_HEIGHT - _MARGIN - height * point[1] / top:.1f}"

    begin, end = curve.line
    warm = curve.warm
    kind = KINDS[curve.kind]
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
            ' font-size="12">'
        ),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="28" font-size="14">{curve.who}: {kind.name}</text>',
        f'<polyline fill="none" stroke="#3b6ea5" points="{" ".join(map(place, _thinned(curve.points, 600)))}"/>',
        (
            '<polyline fill="none" stroke="#b03a2e" stroke-dasharray="5 4" '
            f'points="{place((warm[0][0], begin))} {place((warm[-1][0], end))}"/>'
        ),
    ]
    for share in (0.0, 0.5, 1.0):
        y = _HEIGHT - _MARGIN - height * share
        parts.append(f'<text x="{_MARGIN - 8}" y="{y + 4:.0f}" text-anchor="end">{top * share:,.1f}</text>')
        x = _MARGIN + width * share
        minutes = length * share / 60
        parts.append(f'<text x="{x:.0f}" y="{_HEIGHT - 30}" text-anchor="middle">{minutes:,.1f} min</text>')
    return "\n".join([*parts, "</svg>", ""])


def report(
    title: str, curves: Sequence[Curve], counts: Mapping[str, int], pictures: Mapping[str, str]
) -> str:
    """The page that a run leaves: a table of the lines, then the pictures."""
    lines = [f"# {title}", "", ", ".join(f"{count:,} {name}" for name, count in counts.items()) + ".", ""]
    lines += ["| Process | Figure | after warm-up | at the end | |", "|---|---|---|---|---|"]
    for curve in curves:
        begin, end = curve.line
        verdict = "**rises**" if curve.fault else "flat"
        lines.append(f"| {curve.who} | {KINDS[curve.kind].name} | {begin:,.1f} | {end:,.1f} | {verdict} |")
    lines += ["", *(f"![{name}]({file})" for name, file in pictures.items()), ""]
    return "\n".join(lines)
