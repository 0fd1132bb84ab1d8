"""Maximal marginal relevance: prefer what says something new over a near copy of what is already chosen."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")


@value
class Diversity:
    """Off unless asked for. `trade_off` 1 is relevance alone, 0 novelty alone."""

    enabled: bool = False
    trade_off: float = 0.7

    def reorder(self, scored: Sequence[tuple[T, float, frozenset[str]]]) -> list[T]:
        """Order items, given as (item, score, words), so that each one adds the most."""
        if not self.enabled:
            return [item for item, _, _ in scored]
        left = list(scored)
        closest = [0.0] * len(left)  # how much each has in common with the nearest of the chosen
        chosen: list[T] = []
        while left:
            worths = [
                self.trade_off * score - (1.0 - self.trade_off) * near
                for (_, score, _), near in zip(left, closest, strict=True)
            ]
            position = worths.index(max(worths))
            item, _, words = left.pop(position)
            del closest[position]
            chosen.append(item)
            closest = [
                max(near, jaccard(words, other)) for (_, _, other), near in zip(left, closest, strict=True)
            ]
        return chosen


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that two texts have in common."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
