"""Llama's byte-pair tokenizer, for the vocabulary of the builtin model.

A space is written `▁` and one stands before the text: `"a cat"` → `▁a` `▁cat`. Neighbours are joined as long
as the vocabulary knows the result, the piece with the lowest id first; unknown characters become bytes.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

_SPECIAL = {"<unk>": 0, "<s>": 1, "</s>": 2}
_FIRST_BYTE = 3  # ids 3 to 258 stand for the bytes 0 to 255
_FIRST_PIECE = 259
_LONGEST_RUN = 16  # of spaces in one piece

_SPECIALS = re.compile("(<unk>|<s>|</s>)")
# Cuts that no piece of the vocabulary reaches over, so nothing is ever joined across them: before a `▁`,
# between letters and signs, around digits, line ends and tabs.
# (`²` counts as a sign: it has pieces such as `²,`.)
_UNITS = re.compile(r"▁*[^\W\d_²]+|▁*(?:[^\w▁\n\t]|[_²])+|▁+|[\d\n\t]")

_REMEMBERED_UNITS = 65_536
_REMEMBERED_LENGTH = 32  # longer ones (links, hashes, unspaced scripts) seldom come again


class Tokenizer:
    """Turns text into token ids. Safe to share between threads."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._units = _Units(pieces)

    def encode(self, text: str) -> array[int]:
        """Ids of `text` as unsigned 16-bit numbers; the empty text has none."""
        ids = array("H")
        if "<" not in text:
            ids.frombytes(self._encoded(text))
            return ids
        for part in _SPECIALS.split(text):
            if part in _SPECIAL:
                ids.append(_SPECIAL[part])
            else:
                ids.frombytes(self._encoded(part))
        return ids

    def _encoded(self, text: str) -> bytes:
        if not text:
            return b""
        return b"".join(map(self._units.__getitem__, _UNITS.findall("▁" + text.replace(" ", "▁"))))


class _Units(dict[str, bytes]):
    """Remembers the ids of each run of characters between two cuts, as the bytes of an `array("H")`."""

    def __init__(self, pieces: Sequence[str]) -> None:
        super().__init__()
        self._size = len(pieces)
        # A piece's rank is its id, but runs of spaces are joined after everything else.
        self._ranks = dict(zip(pieces[_FIRST_PIECE:], range(_FIRST_PIECE, self._size), strict=True))
        for run in ("▁" * length for length in range(2, _LONGEST_RUN + 1)):
            if run in self._ranks:
                self._ranks[run] += self._size

    def __missing__(self, unit: str) -> bytes:
        rank = self._ranks.get(unit)
        if rank is not None:
            # Every piece of this vocabulary is what its own characters join to.
            ids = array("H", [rank % self._size]).tobytes()
        elif len(unit) == 1:
            ids = array("H", [_FIRST_BYTE + byte for byte in unit.encode("utf-8", "surrogatepass")]).tobytes()
        else:
            ids = b"".join(map(self.__getitem__, filter(None, self._joined(unit))))
        if len(unit) <= _REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_UNITS:
                self.clear()  # words in use come back at once; cheaper than keeping an order
            self[unit] = ids
        return ids

    def _joined(self, unit: str) -> list[str]:
        """Join neighbours by rank, then from left to right; what its left neighbour takes in becomes ''."""
        pieces = list(unit)
        count = len(pieces)
        rank_of = self._ranks.get
        pairs = [
            (rank, at, joined)
            for at in range(count - 1)
            if (rank := rank_of(joined := unit[at : at + 2])) is not None
        ]
        heapify(pairs)
        before, after = list(range(-1, count - 1)), list(range(1, count + 1))
        while pairs:
            _, at, joined = heappop(pairs)
            taken = after[at]
            if taken == count or not pieces[at] or pieces[at] + pieces[taken] != joined:
                continue  # one of the two was joined with its other neighbour meanwhile
            pieces[at], pieces[taken] = joined, ""
            after[at] = following = after[taken]
            if following < count:
                before[following] = at
                wider = joined + pieces[following]
                if (rank := rank_of(wider)) is not None:
                    heappush(pairs, (rank, at, wider))
            if (preceding := before[at]) >= 0:
                wider = pieces[preceding] + joined
                if (rank := rank_of(wider)) is not None:
                    heappush(pairs, (rank, preceding, wider))
        return pieces
