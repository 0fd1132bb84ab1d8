"""How well answers were found: scored, kept as JSON lines with what was shown, and compared with another run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.files.safe_open import expand_user
from plainmind.guests.evaluation.dataset import AskedWorkspace, Question

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


# By workspace and question.
Results: TypeAlias = Mapping[tuple[str, str], tuple[Shown, ...]]


def write_results(file: str, answers: Iterable[Answer]) -> None:
    """Write one line an answer."""
    with open(expand_user(file), "w", encoding="utf-8") as opened:
        opened.writelines(json.dumps(row_of(answer), ensure_ascii=False) + "\n" for answer in answers)


def row_of(answer: Answer) -> dict[str, Any]:
    """One answer, ready for JSON."""
    return {
        "ws": answer.workspace,
        "id": answer.question.id,
        "results": [
            {
                "path": shown.path,
                "startLine": shown.start_line,
                "endLine": shown.end_line,
                "chars": shown.chars,
                "score": round(shown.score, 4),
            }
            for shown in answer.shown
        ],
    }


def read_results(file: str) -> Results:
    """Read what `write_results` wrote. Raises PlainmindError for a line that is something else."""
    results: dict[tuple[str, str], tuple[Shown, ...]] = {}
    with open(expand_user(file), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                shown = tuple(_shown(result) for result in row["results"])
                results[row["ws"], row["id"]] = shown
            except (ValueError, KeyError, TypeError, RecursionError):
                raise PlainmindError(
                    f"{file}, line {number}: not a line of results",
                    hint="`plainmind bench eval --out FILE` writes such a file",
                ) from None
    return results


def _shown(result: Mapping[str, Any]) -> Shown:
    first, last = int(result["startLine"]), int(result["endLine"])
    return Shown(
        str(result["path"]), first, last, int(result.get("chars", 0)), float(result.get("score", 0.0))
    )


RESAMPLES = 4000


@value
class Difference:
    """The mean of a metric in both runs, and what the second gained; 95 % of resamples lie in low..high."""

    metric: str
    before: float
    after: float
    gain: float
    low: float
    high: float

    @property
    def is_certain(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def compare(
    workspaces: Sequence[AskedWorkspace], before: Results, after: Results, *, seed: int = 0
) -> tuple[int, tuple[Difference, ...]]:
    """Compare two runs question by question; how many there were, and the difference in every metric.

    A bootstrap over questions: the same questions are drawn for both runs, so that only what differs between
    the runs counts, not how hard the questions are. Raises PlainmindError when a run lacks answers.
    """
    import numpy as np

    asked = [
        ((workspace.name, question.id), question)
        for workspace in workspaces
        for question in workspace.questions
        if question.evidence
    ]
    if not asked:
        raise PlainmindError("no question has evidence to score", hint="name another dataset")
    for name, results in (("first", before), ("second", after)):
        missing = sum(key not in results for key, _ in asked)
        if missing:
            raise PlainmindError(
                f"the {name} file has no answer for {missing} of {len(asked)} questions",
                hint="both files must be of this dataset, run as a whole",
            )
    tables = [
        np.array([list(scores_of(question, results[key]).values()) for key, question in asked])
        for results in (before, after)
    ]
    gains = tables[1] - tables[0]
    chance = np.random.default_rng(seed)
    drawn = np.array(
        [gains[chance.integers(0, len(gains), len(gains))].mean(axis=0) for _ in range(RESAMPLES)]
    )
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    differences = (
        Difference(
            metric,
            float(tables[0][:, at].mean()),
            float(tables[1][:, at].mean()),
            float(gains[:, at].mean()),
            float(low[at]),
            float(high[at]),
        )
        for at, metric in enumerate(METRICS)
    )
    return len(asked), tuple(differences)
