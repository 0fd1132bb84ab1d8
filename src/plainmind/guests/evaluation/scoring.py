"""How much of the evidence an answer shows, how early, and at what price: pure arithmetic on line numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from plainmind.base.value import value
from plainmind.guests.evaluation.dataset import Question

SHOWN_AT_ONCE = 6  # what an agent gets when it does not ask for more
DEPTH = 10  # how far down a rank still counts
BUDGET_TOKENS = 2400
CHARACTERS_PER_TOKEN = 4
METRICS = ("recall6", "full6", "hit1", "hit6", "mrr10", "ndcg10", "tok6", "rB2400")

# One thing to be found: any of these lines proves it.
_Piece: TypeAlias = "frozenset[tuple[str, int]]"


@value
class Shown:
    """A result as an agent sees it: which lines its snippet shows, and how long it is."""

    path: str
    start_line: int
    end_line: int
    chars: int
    score: float = 0.0

    @property
    def tokens(self) -> float:
        """What an agent pays for it, about."""
        return self.chars / CHARACTERS_PER_TOKEN


@value
class Answer:
    """What was shown for one question, and how long it took."""

    workspace: str
    question: Question
    shown: tuple[Shown, ...]
    milliseconds: float


def scores_of(question: Question, shown: Sequence[Shown]) -> dict[str, float]:
    """Score one answer by every metric. The question must have evidence."""
    pieces = pieces_of(question)
    ranks = [_rank(piece, shown[:DEPTH]) for piece in pieces]
    found = [rank for rank in ranks if rank]
    early = sum(rank <= SHOWN_AT_ONCE for rank in found)
    return {
        "recall6": early / len(pieces),
        "full6": float(early == len(pieces)),
        "hit1": float(1 in found),
        "hit6": float(early > 0),
        "mrr10": 1 / min(found) if found else 0.0,
        "ndcg10": min(1.0, _gain(found) / _gain(range(1, min(len(pieces), DEPTH) + 1))),
        "tok6": sum(result.chars for result in shown[:SHOWN_AT_ONCE]) / CHARACTERS_PER_TOKEN,
        "rB2400": _found_within_budget(pieces, shown) / len(pieces),
    }


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each metric to four places."""
    return {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in METRICS}


def pieces_of(question: Question) -> list[_Piece]:
    """Take evidence apart into lines, each once; where one line proves an item, or all of them, that is one piece."""
    items = [
        [(item.path, line) for line in range(item.first_line, item.last_line + 1)]
        for item in question.evidence
    ]
    if question.one_piece:
        return [frozenset(line for lines in items for line in lines)]
    if question.any_line:
        return [frozenset(lines) for lines in items]
    return [frozenset([line]) for line in dict.fromkeys(line for lines in items for line in lines)]


def proves(result: Shown, piece: _Piece) -> bool:
    """Whether a result shows a line that proves a piece of evidence."""
    return any(path == result.path and result.start_line <= line <= result.end_line for path, line in piece)


def _rank(piece: _Piece, shown: Sequence[Shown]) -> int:
    """Where the first result that proves a piece stands, from 1; 0 when none does."""
    return next((rank for rank, result in enumerate(shown, 1) if proves(result, piece)), 0)


def _gain(ranks: Sequence[int]) -> float:
    return sum(1 / math.log2(rank + 1) for rank in ranks)


def _found_within_budget(pieces: Sequence[_Piece], shown: Sequence[Shown]) -> int:
    """Count what is found by reading in order until the budget is spent; the first result is always read."""
    spent = 0.0
    found: set[int] = set()
    for result in shown:
        if spent and spent + result.tokens > BUDGET_TOKENS:
            break
        spent += result.tokens
        found |= {number for number, piece in enumerate(pieces) if proves(result, piece)}
    return len(found)
