"""Llama's byte-pair tokenizer, for the vocabulary of the builtin model.

A space is written `▁` and one stands before the text: `"a cat"` → `▁a` `▁cat`. Neighbours are joined as long
as the vocabulary knows the result, the piece with the lowest id first; unknown characters become bytes.
"""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush

from plainmind.base.pattern import pattern
from plainmind.embed.vocabulary import Vocabulary

_SPECIAL = {"<unk>": 0, "<s>": 1, "</s>": 2}
_FIRST_BYTE = 3  # ids 3 to 258 stand for the bytes 0 to 255

_SPECIALS = pattern("(<unk>|<s>|</s>)")
# Cuts that no piece of the vocabulary reaches over, so nothing is ever joined across them: before a `▁`,
# between letters and signs, around digits, line ends and tabs.
# (`²` counts as a sign: it has pieces such as `²,`.)
_UNITS = pattern(r"▁*[^\W\d_²]+|▁*(?:[^\w▁\n\t]|[_²])+|▁+|[\d\n\t]")

# No piece joins one of these with anything: characters of Chinese, Japanese and Korean stand for themselves.
_ALL_SINGLE = pattern("▁?[⺀-鿿가-힣豈-﫿]+")
_FIRST_SINGLE = "⺀"

_REMEMBERED_UNITS = 65_536
_REMEMBERED_LENGTH = 32  # longer ones (links, hashes, unspaced scripts) seldom come again


class Tokenizer:
    """Turns text into token ids. Safe to share between threads."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._units = _Units(vocabulary)
        self._words = _Words(self._units, "▁")
        self._first_words = _Words(self._units, "")

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
        if "▁" in text:  # it may stand beside a space, and then belongs to the same run
            return self._units.of("▁" + text.replace(" ", "▁"))
        return self._units["\n"].join(map(self._encoded_line, f" {text}".split("\n")))

    def _encoded_line(self, line: str) -> bytes:
        """Look up whole words: to cut each one anew takes four times as long."""
        if "  " in line:
            return self._units.of(line.replace(" ", "▁"))
        first, *others = line.split(" ")
        return self._first_words[first] + b"".join(map(self._words.__getitem__, others))


class _Words(dict[str, bytes]):
    """Remembers the ids of what stands between two spaces or ends of lines; `before` is what it begins with."""

    def __init__(self, units: _Units, before: str) -> None:
        super().__init__()
        self._units = units
        self._before = before

    def __missing__(self, word: str) -> bytes:
        ids = self._units.of(self._before + word)
        if len(word) <= _REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_UNITS:
                self.clear()  # words in use come back at once; cheaper than keeping an order
            self[word] = ids
        return ids


class _Units(dict[str, bytes]):
    """Remembers the ids of each run of characters between two cuts, as the bytes of an `array("H")`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def of(self, text: str) -> bytes:
        """Cut a text, in which spaces are written `▁`, and give the ids of all that comes of it."""
        return b"".join(map(self.__getitem__, _UNITS.findall(text)))

    def __missing__(self, unit: str) -> bytes:
        rank = self._vocabulary.rank_of(unit)
        if rank is not None:
            # Every piece of this vocabulary is what its own characters join to.
            ids = array("H", [rank % self._vocabulary.size]).tobytes()
        elif len(unit) == 1:
            ids = array("H", [_FIRST_BYTE + byte for byte in unit.encode("utf-8", "surrogatepass")]).tobytes()
        else:
            # Only a unit that ends with such a character is worth the pattern, which takes 2 ms to compile.
            is_all_single = unit[-1] >= _FIRST_SINGLE and _ALL_SINGLE.fullmatch(unit)
            pieces = unit if is_all_single else filter(None, self._joined(unit))
            ids = b"".join(map(self.__getitem__, pieces))
        if len(unit) <= _REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_UNITS:
                self.clear()
            self[unit] = ids
        return ids

    def _joined(self, unit: str) -> list[str]:
        """Join neighbours by rank, then from left to right; what its left neighbour takes in becomes ''."""
        pieces = list(unit)
        count = len(pieces)
        rank_of = self._vocabulary.rank_of
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
