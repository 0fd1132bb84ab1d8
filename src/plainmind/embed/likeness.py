"""How near the words of texts are to those of a question, each to its nearest one: a sum of vectors cannot tell.

Pieces of words are compared by the signs of their vectors: of two numbers of as many bits as there are dimensions, the
bits that differ are counted. That is the angle between them, nearly, and exact arithmetic that plain Python does fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from plainmind.embed.builtin import StaticModel

# What says little is left out: pieces of less than this share of what the question's pieces weigh together.
_LEAST_SHARE = 0.08
_MOST_KNOWN = 1 << 15  # codes are kept, some 90 bytes each
_SIGNS = bytes([ord("1") if 0 < number < 128 else ord("0") for number in range(256)])


class Codes(dict[int, int]):
    """The signs of a model's rows as numbers, made when they are first asked for. Safe to share between threads."""

    def __init__(self, model: StaticModel) -> None:
        super().__init__()
        self.model = model
        dims = model.card.dims
        self.cosines = [math.cos(math.pi * different / dims) for different in range(dims + 1)]

    def __missing__(self, row: int) -> int:
        if len(self) >= _MOST_KNOWN:
            self.clear()
        code = self[row] = int(bytes(self.vector(row)).translate(_SIGNS), 2)
        return code

    def vector(self, row: int) -> memoryview[int]:
        """The numbers of a row."""
        dims = self.model.card.dims
        return self.model.vectors[row * dims : (row + 1) * dims]

    def weight(self, row: int) -> float:
        """The square of a row's length: rare words are long, and words that say little are short."""
        return float(self.model.scales[row] ** 2 * sum([number * number for number in self.vector(row)]))


def likeness_to(question: str, codes: Codes) -> Callable[[Sequence[str]], list[float]]:
    """What tells of texts, from -1 to 1, how near their words are to those of a question."""
    encode = codes.model.tokenizer.encode
    weights = {row: codes.weight(row) for row in sorted(set(encode(question)))}
    least = _LEAST_SHARE * sum(weights.values())
    asked = [(weight, codes[row]) for row, weight in weights.items() if weight >= least]
    total = sum([weight for weight, _ in asked])

    def likenesses(texts: Sequence[str]) -> list[float]:
        rows_of = [set(encode(text)) for text in texts]
        rows = list(set().union(*rows_of))
        known = [codes[row] for row in rows]
        found = [0.0] * len(texts)
        for weight, wanted in asked:
            different = dict(
                zip(rows, [(wanted ^ code).bit_count() for code in known], strict=True)
            ).__getitem__
            for at, these in enumerate(rows_of):
                if these:
                    found[at] += weight * codes.cosines[min(map(different, these))]
        return [each / total for each in found] if total else found

    return likenesses
