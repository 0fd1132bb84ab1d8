"""Whether one run is better than another, or only luckier: paired differences with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plainmind.base.errors import PlainmindError
from plainmind.guests.evaluation.dataset import AskedWorkspace
from plainmind.guests.evaluation.results import Results
from plainmind.guests.evaluation.scoring import METRICS, scores_of

RESAMPLES = 4000


@dataclass(frozen=True, slots=True)
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
