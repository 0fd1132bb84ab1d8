"""What is known of a file, chunk by chunk, put together line by line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import itemgetter

from plainmind.base.model import Chunk
from plainmind.search.close_reading import ReadChunk
from plainmind.search.snippets import Lines
from plainmind.search.units import Place, is_one_line, places_of, units_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Fetches the chunks of a file that share a line with a range.
Between: TypeAlias = "Callable[[int, int], Sequence[Chunk]]"
# The ordinal of a chunk, where its units stand, their texts, and the chunk itself if it may start a snippet.
Stretch: TypeAlias = "tuple[int, Sequence[Place], Sequence[str], ReadChunk | None]"

# How far the chunks around the best ones are read, to fill up snippets at the edge of a chunk.
MARGIN_LINES = 12


class KnownFile:
    """The chunks of one file that are worth reading, best first."""

    __slots__ = ("_between", "_brinks", "_ordinals", "_with_margin", "chunks", "most")

    def __init__(self, between: Between) -> None:
        self.most = 0.0
        self.chunks: list[ReadChunk] = []
        self._ordinals: set[int] = set()
        self._with_margin: list[Chunk] = []
        self._between = between
        self._brinks: list[int]

    def add(self, read: ReadChunk, *, with_margin: bool) -> None:
        """Take one more chunk; its margin are the lines around it, which may fill up a snippet at its edge."""
        chunk = read.ranked.chunk
        self.chunks.append(read)
        self._ordinals.add(chunk.ordinal)
        self.most = max(self.most, read.most)
        if with_margin:
            self._with_margin.append(chunk)

    def lines(self) -> Lines:
        """All lines of the chunks in reading order."""
        lines = put_together(self._stretches())
        if self._with_margin:
            self._brinks = self._brinks_of(lines)
        return lines

    def wider(self, first: int, last: int) -> Lines | None:
        """The lines together with the margins, if a snippet of these lines may touch one; None if they stay the same.

        Two snippets in three touch none, and a margin takes as long to fetch as a chunk to read.
        """
        if not self._with_margin or self._encloses(first, last):
            return None
        margins = self._margins()
        self._with_margin.clear()
        if not margins:
            return None
        return put_together([*margins, *self._stretches()])

    def _stretches(self) -> list[Stretch]:
        return [(read.ranked.chunk.ordinal, read.places, read.page.units, read) for read in self.chunks]

    def _encloses(self, first: int, last: int) -> bool:
        """Whether all that can stand around and between these lines is known."""
        brinks = self._brinks
        return brinks[bisect_left(brinks, first - 1)] > last

    def _brinks_of(self, lines: Lines) -> list[int]:
        """The positions after which something may stand that is not known, in order; -1 is before all lines."""
        ordered = in_order(self._stretches())
        if overlap(ordered):
            return list(range(-1, len(lines.places)))
        brinks = []
        at = -1
        for ordinal, places, _, _ in ordered:
            if ordinal and ordinal - 1 not in self._ordinals:
                # What is before may end with pieces of the line with which this begins.
                brinks += [at, at + sum([line == places[0][0] for line, _ in places])]
            at += len(places)
            if ordinal + 1 not in self._ordinals:
                brinks.append(at)
        return brinks

    def _margins(self) -> list[Stretch]:
        """The chunks around those that are worth it, without those that are known, the last one first."""
        found = {
            chunk.ordinal: chunk
            for first, last in joined(self._with_margin)
            for chunk in self._between(first, last)
            if chunk.ordinal not in self._ordinals
        }
        margins: list[Stretch] = []
        for ordinal, chunk in sorted(found.items(), reverse=True):
            texts = units_of(chunk.text, one_line=is_one_line(chunk))
            margins.append((ordinal, places_of(chunk, texts), texts, None))
        return margins


def put_together(stretches: Sequence[Stretch]) -> Lines:
    """Put the units of chunks in reading order. Where chunks have the same line, that of the last one counts."""
    lines = Lines()
    ordered = in_order(stretches)
    if not overlap(ordered):
        for _, places, texts, read in ordered:
            lines.add(places, texts, [read] * len(texts), range(len(texts)))
        return lines
    units = {
        place: (text, read, unit)
        for _, places, texts, read in stretches
        for unit, (place, text) in enumerate(zip(places, texts, strict=True))
    }
    for place in sorted(units):
        text, read, unit = units[place]
        lines.add([place], [text], [read], [unit])
    return lines


def in_order(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Those that have any units, by their ordinals."""
    return sorted([stretch for stretch in stretches if stretch[1]], key=itemgetter(0))


def overlap(ordered: Sequence[Stretch]) -> bool:
    """Whether chunks have lines in common, as overlapping chunks and pieces of one line do."""
    return any(after[1][0] <= before[1][-1] for before, after in pairwise(ordered))


def joined(chunks: Iterable[Chunk]) -> list[tuple[int, int]]:
    """The lines of chunks with their margins, in order; those that overlap are one range."""
    ranges: list[tuple[int, int]] = []
    for start, end in sorted((chunk.start_line, chunk.end_line) for chunk in chunks):
        first, last = max(1, start - MARGIN_LINES), end + MARGIN_LINES
        if ranges and first <= ranges[-1][1]:
            before, after = ranges.pop()
            first, last = before, max(after, last)
        ranges.append((first, last))
    return ranges
