"""Maximal marginal relevance: prefer what says something new over a near copy of what is already chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Diversity:
    """Off unless asked for. `trade_off` 1 is relevance alone, 0 novelty alone."""

    enabled: bool = False
    trade_off: float = 0.7

    def reorder(self, scored: Sequence[tuple[T, float, frozenset[str]]]) -> list[T]:
        """Order items, given as (item, score, words), so that each one adds the most."""
        if not self.enabled:
            return [item for item, _, _ in scored]
        left = list(scored)
        chosen: list[tuple[T, float, frozenset[str]]] = []
        while left:
            position = max(range(len(left)), key=lambda at: (self._worth(left[at], chosen), -at))
            chosen.append(left.pop(position))
        return [item for item, _, _ in chosen]

    def _worth(
        self, item: tuple[T, float, frozenset[str]], chosen: Sequence[tuple[T, float, frozenset[str]]]
    ) -> float:
        _, score, words = item
        closest = max((jaccard(words, other) for _, _, other in chosen), default=0.0)
        return self.trade_off * score - (1.0 - self.trade_off) * closest


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that two texts have in common."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
