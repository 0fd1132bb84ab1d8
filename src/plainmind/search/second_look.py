"""A second look: a model has read the best results together with the question, and both opinions make the order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plainmind.base.model import SearchHit
from plainmind.base.value import replace
from plainmind.search.engine import OF_FIRST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

# The odds that a result holds evidence, from the odds of the first look and of the second: learned on conversations
# and manuals, and nearly the same on each of six sets.
_FIRST, _SECOND, _LEVEL = 1.0, 0.4, -0.75
_SUREST = 0.98  # a score of 0 or 1 has no odds
_PASSAGE_CHARS = 480  # about what is read of a snippet


class Reranker(Protocol):
    """Reads a question and a passage at once. Safe to share between threads."""

    def log_odds(self, question: str, passages: Sequence[str], *, seconds: float) -> list[float | None]:
        """How likely each passage answers, as log-odds; None for one that was not read in time, or not understood."""


def passage_of(hit: SearchHit) -> str:
    """The lines around the one that answers best, under their path of headings: the part that is worth reading."""
    lines = hit.snippet.split("\n")
    first = last = min(max(0, hit.best_line - hit.start_line), len(lines) - 1)
    room = _PASSAGE_CHARS - len(hit.headings) - len(lines[first])
    while True:
        grown = False
        if last + 1 < len(lines) and len(lines[last + 1]) < room:
            last += 1
            room -= len(lines[last]) + 1
            grown = True
        if first and len(lines[first - 1]) < room:
            first -= 1
            room -= len(lines[first]) + 1
            grown = True
        if not grown:
            break
    text = "\n".join(lines[first : last + 1])
    return f"{hit.headings}\n{text}" if hit.headings else text


def look_again(hits: Sequence[SearchHit], said: Sequence[float | None]) -> list[SearchHit]:
    """Results with what both looks make of them as score, best first; as they were when nothing was read."""
    read = [one for one in said if one is not None]
    if not read:
        return list(hits)
    usual = sum(read) / len(read)  # what was not read is neither lifted nor lowered
    seen = [
        replace(hit, score=_probability(hit.score, usual if one is None else one, came_first=not number))
        for number, (hit, one) in enumerate(zip(hits, said, strict=True))
    ]
    return sorted(seen, key=lambda hit: -hit.score)


def _probability(first: float, second: float, *, came_first: bool) -> float:
    sure = min(_SUREST, max(1 - _SUREST, first))
    # That it came first is what the second look is to find out.
    before = math.log(sure / (1 - sure)) - (OF_FIRST if came_first else 0.0)
    odds = _FIRST * before + _SECOND * second + _LEVEL
    return 1 / (1 + math.exp(-odds))
