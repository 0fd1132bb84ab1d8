"""Pages that are read again and again, each with an index of its words."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache

from plainmind.base.model import Chunk
from plainmind.search.page import Page, WordIndex
from plainmind.search.units import is_one_line
from plainmind.text.terms import document_terms

WORTH_AN_INDEX = 8  # readings
MOST_BYTES = 8 * 1024 * 1024
# After so many pages that were not on the shelf, others may be worth keeping: it is cleared.
MOST_MISSES = 20_000
# Measured, beside the text itself. English terms are shared with what `document_terms` remembers, pairs are not.
UNIT_BYTES = 150
TERM_BYTES = 40
FOREIGN_TERM_BYTES = 90


class Shelf:
    """Keeps the first pages that are asked for again and again, as many as fit. Safe to share between threads.

    An index takes as long as reading a page some eight times. So none is made before a page was read as often, and
    none is thrown away for another: where the same few thousand pages come round, all would be made again.
    """

    def __init__(
        self,
        *,
        worth_an_index: int = WORTH_AN_INDEX,
        most_bytes: int = MOST_BYTES,
        most_misses: int = MOST_MISSES,
    ) -> None:
        self.size_bytes = 0
        self._worth_an_index = worth_an_index
        self._most_bytes = most_bytes
        self._most_misses = most_misses
        self._misses = 0
        self._pages: dict[tuple[str, bool], Page] = {}
        self._readings: dict[int, int] = {}
        self._lock = threading.Lock()

    def page(self, chunk: Chunk) -> Page:
        """The page of a chunk, with an index if it is worth one."""
        key = chunk.text, is_one_line(chunk)
        page = self._pages.get(key)
        if page is None:
            page = Page(chunk)
            if self._is_worth_keeping(hash(key)):
                page.put_in_order(index_of(page.units))
                self._keep(key, page)
        return page

    def _is_worth_keeping(self, name: int) -> bool:
        with self._lock:
            self._misses += 1
            if self._misses > self._most_misses:
                self._misses = self.size_bytes = 0
                self._pages.clear()
                self._readings.clear()
            readings = self._readings[name] = self._readings.get(name, 0) + 1
            return readings >= self._worth_an_index and self.size_bytes < self._most_bytes

    def _keep(self, key: tuple[str, bool], page: Page) -> None:
        with self._lock:
            if key not in self._pages:  # or another thread was faster
                self._pages[key] = page
                self.size_bytes += bytes_of(page)


def index_of(units: Sequence[str]) -> WordIndex:
    """By term: in which units it stands, and how often."""
    index: dict[str, dict[int, int]] = {}
    for position, unit in enumerate(units):
        for term in document_terms(unit):
            counts = index.setdefault(term, {})
            counts[position] = counts.get(position, 0) + 1
    return {term: _shared(tuple(counts.items())) for term, counts in index.items()}


# Most terms stand in one unit, once: they share what says so.
@lru_cache(maxsize=1024)
def _shared(counts: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    return counts


def bytes_of(page: Page) -> int:
    """About how much memory an indexed page takes."""
    of_term = FOREIGN_TERM_BYTES if page.is_foreign else TERM_BYTES
    return page.ends[-1] + UNIT_BYTES * len(page.units) + of_term * len(page.index or ())
