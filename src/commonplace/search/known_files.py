"""What was read of a file, chunk by chunk, put together line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commonplace.model import Chunk
from commonplace.search.close_reading import ReadChunk
from commonplace.search.snippets import Lines
from commonplace.search.units import is_one_line, places_of, units_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Reads the chunks around a chunk.
Surroundings: TypeAlias = "Callable[[Chunk], Sequence[Chunk]]"
# A unit: its text, and the chunk that was read with its position there; None for a line that only fills up a snippet.
_Unit: TypeAlias = "tuple[str, ReadChunk | None, int]"


class KnownFile:
    """The chunks of one file that were read, best first."""

    __slots__ = ("_chunks", "_origins", "_surroundings", "_with_margin", "best")

    def __init__(self, surroundings: Surroundings) -> None:
        self.best = 0.0
        self._chunks: list[ReadChunk] = []
        self._with_margin: list[Chunk] = []
        self._surroundings = surroundings
        self._origins: list[tuple[ReadChunk | None, int]] = []

    def add(self, chunk: ReadChunk, *, with_margin: bool) -> None:
        """Take one more chunk; its margin are the lines around it, which may fill up a snippet at its edge."""
        self._chunks.append(chunk)
        self.best = max([self.best, *chunk.scores])
        if with_margin:
            self._with_margin.append(chunk.ranked.chunk)

    def origin(self, position: int) -> tuple[ReadChunk, int]:
        """The chunk that a line with a score is of, and which of its units it is."""
        chunk, unit = self._origins[position]
        assert chunk is not None
        return chunk, unit

    def lines(self) -> Lines:
        """All lines of the chunks and of their margins, in reading order."""
        units = self._margins()
        for chunk in self._chunks:
            for position, place in enumerate(places_of(chunk.ranked.chunk)):
                units[place] = chunk.page.units[position], chunk, position
        places = sorted(units)
        ordered = [units[place] for place in places]
        self._origins = [(chunk, position) for _, chunk, position in ordered]
        texts: list[str] = []
        scores: list[float] = []
        seeds: list[int] = []
        for at, (text, read, position) in enumerate(ordered):
            texts.append(text)
            if read is not None and text.strip():
                scores.append(read.scores[position])
                seeds.append(at)
            else:
                scores.append(0.0)
        return Lines([line for line, _ in places], texts, scores, seeds)

    def _margins(self) -> dict[tuple[int, int], _Unit]:
        """The units around the chunks that are worth it, by their places, without those that were read."""
        units: dict[tuple[int, int], _Unit] = {}
        known = {chunk.ranked.chunk.ordinal for chunk in self._chunks}
        for chunk in self._with_margin:
            for neighbour in self._surroundings(chunk):
                if neighbour.ordinal not in known:
                    known.add(neighbour.ordinal)
                    texts = units_of(neighbour.text, one_line=is_one_line(neighbour))
                    for place, text in zip(places_of(neighbour), texts, strict=True):
                        units.setdefault(place, (text, None, 0))
        return units
