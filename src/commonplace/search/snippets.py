"""Grow the best lines into snippets: what is cited is what is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heapreplace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

# Lines further apart than this are not neighbours: something that was not indexed lies between them.
NEAR_LINES = 3
ELLIPSIS = "…"
# Each further snippet of the same file is worth a little less: other files may know something else.
SAME_FILE = 0.95


class Lines:
    """The known lines of one file in reading order, or pieces of lines: those of one line have the same number."""

    __slots__ = ("numbers", "scores", "seeds", "texts")

    def __init__(
        self, numbers: Sequence[int], texts: Sequence[str], scores: Sequence[float], seeds: Sequence[int]
    ) -> None:
        self.numbers = numbers
        self.texts = texts
        self.scores = scores
        # The positions that may start a snippet, best first; the others only fill one up.
        self.seeds = sorted(seeds, key=scores.__getitem__, reverse=True)


class LinesOfFile(Protocol):
    """A file whose lines are put together only when one of them may be shown."""

    @property
    def best(self) -> float:
        """At least the score of its best line."""

    def lines(self) -> Lines:
        """All of it that is known."""


class Snippet:
    """A run of neighbouring lines that fits the budget, grown around its best line."""

    __slots__ = ("best", "end_line", "file", "score", "start_line", "text")

    def __init__(self, file: int, best: int, score: float, cited: tuple[int, int], text: str) -> None:
        self.file = file  # which of the files it is of
        self.best = best  # which of its lines it grew from
        self.score = score  # of its best line, less what its file has said already
        self.start_line, self.end_line = cited
        self.text = text


class _Source:
    """What is left of one file to make snippets of."""

    __slots__ = ("lines", "next_seed", "shown", "taken")

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.shown: set[int] = set()
        self.taken = 0
        self.next_seed = 0

    def worth(self) -> float | None:
        """What the next snippet is worth; None when every line is shown."""
        seeds = self.lines.seeds
        while self.next_seed < len(seeds) and seeds[self.next_seed] in self.shown:
            self.next_seed += 1
        if self.next_seed == len(seeds):
            return None
        return self.lines.scores[seeds[self.next_seed]] * SAME_FILE**self.taken


def grow_snippets(files: Sequence[LinesOfFile], *, budget: int) -> Iterator[Snippet]:
    """Yield snippets, best first; no line is shown twice.

    A generator: the first snippets are the same however many the caller takes.
    """
    # One entry a file: what its next snippet is worth, or at most is worth as long as it was not opened.
    waiting = [(-file.best, number) for number, file in enumerate(files)]
    heapify(waiting)
    opened: dict[int, _Source] = {}
    while waiting:
        worth, number = waiting[0]
        source = opened.get(number)
        if source is None:
            source = opened[number] = _Source(files[number].lines())
        else:
            lines, best = source.lines, source.lines.seeds[source.next_seed]
            first, last = _grow(lines, best, budget, source.shown)
            source.shown.update(range(first, last + 1))
            source.taken += 1
            cited = lines.numbers[first], lines.numbers[last]
            yield Snippet(number, best, -worth, cited, _shown(lines, first, last, budget))
        following = source.worth()
        if following is None:
            heappop(waiting)
        else:
            heapreplace(waiting, (-following, number))


def _grow(lines: Lines, position: int, budget: int, shown: AbstractSet[int]) -> tuple[int, int]:
    """Widen a range towards whichever neighbour is worth more, while it fits."""
    scores = lines.scores
    first = last = position
    left: float = budget - len(lines.texts[position])
    before, after = _step(lines, first, -1, shown), _step(lines, last, 1, shown)
    while True:
        before_fits, after_fits = before <= left, after <= left
        # Ties go to what follows: an answer comes after its question.
        if after_fits and not (before_fits and scores[first - 1] > scores[last + 1]):
            last += 1
            left -= after
            after = _step(lines, last, 1, shown)
        elif before_fits:
            first -= 1
            left -= before
            before = _step(lines, first, -1, shown)
        else:
            return first, last


def _step(lines: Lines, position: int, direction: int, shown: AbstractSet[int]) -> float:
    """What the line beside a line costs, with the line breaks between them; infinite when it must not be taken."""
    beside = position + direction
    if not 0 <= beside < len(lines.texts) or beside in shown:
        return float("inf")
    gap = abs(lines.numbers[beside] - lines.numbers[position])  # 0 between pieces of one line
    return len(lines.texts[beside]) + gap if gap <= NEAR_LINES else float("inf")


def _shown(lines: Lines, first: int, last: int, budget: int) -> str:
    """The text of a range, blank lines in between included; a line that is cut says so."""
    numbers, texts = lines.numbers, lines.texts
    parts = [texts[first]]
    for at in range(first + 1, last + 1):
        parts.append("\n" * (numbers[at] - numbers[at - 1]))
        parts.append(texts[at])
    text = "".join(parts)
    if first and numbers[first - 1] == numbers[first]:
        text = ELLIPSIS + text.lstrip()
    if last + 1 < len(texts) and numbers[last + 1] == numbers[last]:
        text = text.rstrip() + ELLIPSIS
    return text[:budget].strip("\n")
