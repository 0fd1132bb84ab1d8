"""Answers as JSON lines, one a question: what was shown is kept, scored again later, and compared with another run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.guests.evaluation.dataset import AskedWorkspace
from plainmind.guests.evaluation.scoring import METRICS, Answer, Shown, scores_of

# By workspace and question.
Results: TypeAlias = Mapping[tuple[str, str], tuple[Shown, ...]]


def write_results(file: str, answers: Iterable[Answer]) -> None:
    """Write one line an answer."""
    with open(os.path.expanduser(file), "w", encoding="utf-8") as opened:
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
    with open(os.path.expanduser(file), encoding="utf-8") as lines:
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
