"""Grow the best lines into snippets: what is cited is what is shown."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heapreplace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from plainmind.search.close_reading import ReadChunk
    from plainmind.search.units import Place
else:
    Protocol = object

# Lines further apart than this are not neighbours: something that was not indexed lies between them.
NEAR_LINES = 3
ELLIPSIS = "…"
# Each further snippet of the same file is worth a little less: other files may know something else.
SAME_FILE = 0.95
# Stands for all of a chunk that was not read, before any place in it.
_UNREAD = (0, 0)


class Lines:
    """The known lines of one file in reading order, or pieces of lines: those of one line have the same number."""

    __slots__ = ("chunks", "places", "texts", "units")

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.texts: list[str] = []
        # The chunk that each is of and its position there; no chunk when it only fills up a snippet.
        self.chunks: list[ReadChunk | None] = []
        self.units: list[int] = []

    def add(
        self,
        places: Iterable[Place],
        texts: Iterable[str],
        chunks: Iterable[ReadChunk | None],
        units: Iterable[int],
    ) -> None:
        """Take more lines that come after all others."""
        self.places += places
        self.texts += texts
        self.chunks += chunks
        self.units += units

    def score(self, position: int) -> float:
        """What a line is worth; nothing when it is blank or only fills up."""
        chunk = self.chunks[position]
        return chunk.scores[self.units[position]] if chunk and self.texts[position].strip() else 0.0


class LinesOfFile(Protocol):
    """A file whose lines are put together only when one of them may be shown."""

    @property
    def chunks(self) -> Sequence[ReadChunk]:
        """What its snippets may grow from."""

    @property
    def most(self) -> float:
        """At least the score of its best line."""

    def lines(self) -> Lines:
        """The lines of its chunks."""

    def wider(self, first: int, last: int) -> Lines | None:
        """The same lines and more, if there may be more around or between the first and the last of a snippet."""


class Snippet:
    """A run of neighbouring lines that fits the budget, grown around its best line."""

    __slots__ = ("best", "end_line", "file", "score", "start_line", "text")

    def __init__(
        self, file: int, best: tuple[ReadChunk, int], cited: tuple[int, int], text: str, *, score: float
    ) -> None:
        self.file = file  # which of the files it is of
        self.best = best  # the chunk and the unit that it grew from
        self.score = score  # of its best line, less what its file has said already
        self.start_line, self.end_line = cited
        self.text = text


class _Source:
    """What is left of one file to make snippets of."""

    __slots__ = ("_file", "_left", "_lines", "_seeds", "_shown", "_taken")

    def __init__(self, file: LinesOfFile) -> None:
        self._file = file
        self._lines: Lines | None = None
        self._shown: set[Place] = set()
        self._taken = 0
        # By chunk, once it was read: its units, best first.
        self._left: dict[int, Iterator[tuple[float, Place]]] = {}
        # One entry a chunk: its best unit that is left, or what any of its units is worth at most.
        self._seeds = [(-chunk.most, _UNREAD, number) for number, chunk in enumerate(file.chunks)]
        heapify(self._seeds)

    def most(self) -> float | None:
        """What the next snippet is worth at most; None when every line is shown."""
        return -self._seeds[0][0] * SAME_FILE**self._taken if self._seeds else None

    def read_on(self) -> bool:
        """Look closer at what may start the next snippet; False when it does."""
        _, place, number = self._seeds[0]
        chunk = self._file.chunks[number]
        if chunk.may_be_less:
            chunk.look()
            heapreplace(self._seeds, (-chunk.most, _UNREAD, number))
            return True
        if place is _UNREAD:
            self._left[number] = _best_first(chunk)
        elif place not in self._shown:
            if self._lines is None:
                self._lines = self._file.lines()
            if self._lines.chunks[bisect_left(self._lines.places, place)] is chunk:
                return False  # or else another chunk has the same line
        for worth, following in self._left[number]:
            if following not in self._shown:
                heapreplace(self._seeds, (worth, following, number))
                return True
        heappop(self._seeds)
        return True

    def grown(self, budget: int) -> tuple[tuple[ReadChunk, int], tuple[int, int], str]:
        """Take the next snippet: what it grew from, the lines to cite, and its text."""
        lines = self._lines
        assert lines is not None
        _, place, number = self._seeds[0]
        first, last = _grow(lines, place, budget, self._shown)
        wider = self._file.wider(first, last)
        if wider is not None:
            lines = self._lines = wider
            first, last = _grow(lines, place, budget, self._shown)
        self._shown.update(lines.places[first : last + 1])
        self._taken += 1
        unit = lines.units[bisect_left(lines.places, place)]
        cited = lines.places[first][0], lines.places[last][0]
        return (self._file.chunks[number], unit), cited, _shown(lines, first, last, budget)


def _best_first(chunk: ReadChunk) -> Iterator[tuple[float, Place]]:
    """The units of a chunk that may start a snippet: what they are worth, negative, and their places."""
    scores, places, texts = chunk.scores, chunk.places, chunk.page.units
    for unit in sorted(range(len(scores)), key=scores.__getitem__, reverse=True):
        if texts[unit].strip():
            yield -scores[unit], places[unit]


def grow_snippets(files: Sequence[LinesOfFile], *, budget: int) -> Iterator[Snippet]:
    """Yield snippets, best first; no line is shown twice.

    A generator: the first snippets are the same however many the caller takes. What cannot be among them is not read.
    """
    # One entry a file: what its next snippet is worth at most, and exactly once its best chunk was read.
    waiting = [(-file.most, number) for number, file in enumerate(files)]
    heapify(waiting)
    opened: dict[int, _Source] = {}
    while waiting:
        worth, number = waiting[0]
        source = opened.get(number)
        if source is None:
            source = opened[number] = _Source(files[number])
        elif not source.read_on():
            yield Snippet(number, *source.grown(budget), score=-worth)
        following = source.most()
        if following is None:
            heappop(waiting)
        else:
            heapreplace(waiting, (-following, number))


def _grow(lines: Lines, best: Place, budget: int, shown: AbstractSet[Place]) -> tuple[int, int]:
    """Widen a range towards whichever neighbour is worth more, while it fits."""
    score = lines.score
    first = last = bisect_left(lines.places, best)
    left: float = budget - len(lines.texts[first])
    before, after = _step(lines, first, -1, shown), _step(lines, last, 1, shown)
    while True:
        before_fits, after_fits = before <= left, after <= left
        # Ties go to what follows: an answer comes after its question.
        if after_fits and not (before_fits and score(first - 1) > score(last + 1)):
            last += 1
            left -= after
            after = _step(lines, last, 1, shown)
        elif before_fits:
            first -= 1
            left -= before
            before = _step(lines, first, -1, shown)
        else:
            return first, last


def _step(lines: Lines, position: int, direction: int, shown: AbstractSet[Place]) -> float:
    """What the line beside a line costs, with the line breaks between them; infinite when it must not be taken."""
    beside = position + direction
    places = lines.places
    if not 0 <= beside < len(places) or places[beside] in shown:
        return float("inf")
    gap = abs(places[beside][0] - places[position][0])  # 0 between pieces of one line
    return len(lines.texts[beside]) + gap if gap <= NEAR_LINES else float("inf")


def _shown(lines: Lines, first: int, last: int, budget: int) -> str:
    """The text of a range, blank lines in between included; a line that is cut says so."""
    places, texts = lines.places, lines.texts
    parts = [texts[first]]
    for at in range(first + 1, last + 1):
        parts.append("\n" * (places[at][0] - places[at - 1][0]))
        parts.append(texts[at])
    text = "".join(parts)
    if first and places[first - 1][0] == places[first][0]:
        text = ELLIPSIS + text.lstrip()
    if last + 1 < len(places) and places[last + 1][0] == places[last][0]:
        text = text.rstrip() + ELLIPSIS
    return text[:budget].strip("\n")
