"""Grow the best lines into snippets: what is cited is what is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from commonplace.model import Source
from commonplace.search.relevance import Signals
from commonplace.search.units import Unit

# Lines further apart than this are not neighbours: something that was not indexed lies between them.
NEAR_LINES = 3
ELLIPSIS = "…"
# Each further snippet of the same file is worth a little less: other files may know something else.
SAME_FILE = 0.95


@dataclass(frozen=True, slots=True)
class ScoredUnit:
    """A line with what it is worth; lines with a score of None only fill up a snippet, they never start one."""

    source: Source
    path: str
    unit: Unit
    score: float | None
    signals: Signals | None = None
    day: str | None = None


@dataclass(frozen=True, slots=True)
class Snippet:
    """A run of neighbouring lines that fits the budget, grown around its best line."""

    best: ScoredUnit
    score: float  # of its best line, less what its file has said already
    start_line: int
    end_line: int
    text: str


def grow_snippets(files: Sequence[Sequence[ScoredUnit]], *, budget: int) -> Iterator[Snippet]:
    """Yield snippets, best first; no line is shown twice. Each inner sequence is one file, in reading order.

    A generator: the first snippets are the same however many the caller takes.
    """
    seeds = [
        (-unit.score, number, position, 0)
        for number, file in enumerate(files)
        for position, unit in enumerate(file)
        if unit.score is not None
    ]
    heapify(seeds)
    shown: list[set[int]] = [set() for _ in files]
    taken = [0] * len(files)
    while seeds:
        worth, number, position, known = heappop(seeds)
        if position in shown[number]:
            continue
        file = files[number]
        if taken[number] > known:
            # The file has given snippets since this line was weighed: weigh it again.
            score = file[position].score or 0.0
            heappush(seeds, (-score * SAME_FILE ** taken[number], number, position, taken[number]))
            continue
        first, last = _grow(file, position, budget, shown[number])
        shown[number].update(range(first, last + 1))
        taken[number] += 1
        yield Snippet(
            best=file[position],
            score=-worth,
            start_line=file[first].unit.line,
            end_line=file[last].unit.line,
            text=_shown(file, first, last, budget),
        )


def _grow(file: Sequence[ScoredUnit], position: int, budget: int, shown: AbstractSet[int]) -> tuple[int, int]:
    """Widen a range towards whichever neighbour is worth more, while it fits."""
    first = last = position
    size = len(file[position].unit.text)
    while True:
        options = []
        for at, beside in ((first - 1, first), (last + 1, last)):
            if (
                not 0 <= at < len(file)
                or at in shown
                or not _are_neighbours(file[at].unit, file[beside].unit)
            ):
                continue
            cost = len(file[at].unit.text) + _gap(file[min(at, beside)].unit, file[max(at, beside)].unit)
            if size + cost <= budget:
                # Ties go to what follows: an answer comes after its question.
                options.append((file[at].score or 0.0, at > position, at, cost))
        if not options:
            return first, last
        _, _, at, cost = max(options)
        size += cost
        first, last = min(first, at), max(last, at)


def _are_neighbours(one: Unit, other: Unit) -> bool:
    return abs(one.line - other.line) <= NEAR_LINES


def _gap(before: Unit, after: Unit) -> int:
    """How many line breaks stand between two units: none between pieces of one line."""
    return after.line - before.line


def _shown(file: Sequence[ScoredUnit], first: int, last: int, budget: int) -> str:
    """The text of a range, blank lines in between included; a line that is cut says so."""
    parts = [file[first].unit.text]
    for at in range(first + 1, last + 1):
        parts.append("\n" * _gap(file[at - 1].unit, file[at].unit))
        parts.append(file[at].unit.text)
    text = "".join(parts)
    if first and file[first - 1].unit.line == file[first].unit.line:
        text = ELLIPSIS + text.lstrip()
    if last + 1 < len(file) and file[last + 1].unit.line == file[last].unit.line:
        text = text.rstrip() + ELLIPSIS
    return text[:budget].strip("\n")
