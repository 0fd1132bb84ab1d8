"""The pieces of a tokenizer and their ranks: the few of a question are searched for, many are looked up."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

_FIRST_PIECE = 259  # before it stand the special pieces and those of single bytes, which nothing is joined to
_LONGEST_RUN = 16  # of spaces in one piece
# A search takes some 50 µs, the dictionary of all pieces 4 ms.
_FEW = 48
_BLOCK = 8_192  # bytes, whose lines are counted once


class Vocabulary:
    """Knows every piece of a file that has one a line, in the order of their ids. Safe to share between threads."""

    def __init__(self, data: bytes) -> None:
        self._lines = b"\n%b\n" % data
        self._few_left = _FEW
        self._few: dict[str, int | None] = {}  # that were searched for
        self._ranks: dict[str, int] = {}
        starts = range(0, len(self._lines), _BLOCK)
        counts = [self._lines.count(b"\n", start, start + _BLOCK) for start in starts]
        self._lines_before = list(accumulate(counts, initial=0))  # by block
        self.size = self._lines_before[-1] - 1
        self.rank_of: Callable[[str], int | None] = self._searched

    def _searched(self, piece: str) -> int | None:
        few = self._few
        if piece not in few:
            if not self._few_left:
                return self._looked_up(piece)
            self._few_left -= 1
            few[piece] = self._search(piece)
        return few[piece]

    def _search(self, piece: str) -> int | None:
        if "\n" in piece:
            return None
        at = self._lines.find(b"\n%b\n" % piece.encode("utf-8", "surrogatepass"))
        if at < 0:
            return None
        id_ = self._id_at(at)
        return self._rank(piece, id_) if id_ >= _FIRST_PIECE else None

    def _id_at(self, line_end: int) -> int:
        block = line_end // _BLOCK
        return self._lines_before[block] + self._lines.count(b"\n", block * _BLOCK, line_end)

    def _looked_up(self, piece: str) -> int | None:
        if not self._ranks:
            pieces = self._lines.decode().split("\n")[1 + _FIRST_PIECE : -1]
            self._ranks = {known: self._rank(known, id_) for id_, known in enumerate(pieces, _FIRST_PIECE)}
            self.rank_of = self._ranks.get
        return self._ranks.get(piece)

    def _rank(self, piece: str, id_: int) -> int:
        """A piece's rank is its id, but runs of spaces are joined after everything else."""
        return id_ + self.size if piece in _RUNS else id_


_RUNS = frozenset("▁" * length for length in range(2, _LONGEST_RUN + 1))
