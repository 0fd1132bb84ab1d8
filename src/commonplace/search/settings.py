"""What can be tuned about a search."""

from __future__ import annotations

from dataclasses import dataclass, field

from commonplace.search.diversity import Diversity
from commonplace.search.recency import Recency
from commonplace.search.relevance import Weights


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Defaults are the measured best; docs/decisions tells what was tried."""

    max_results: int = 6
    min_score: float = 0.35
    snippet_chars: int = 700
    use_vectors: bool = True
    use_keywords: bool = True
    weights: Weights = field(default_factory=Weights)
    recency: Recency = field(default_factory=Recency)
    diversity: Diversity = field(default_factory=Diversity)
    # How many chunks each side proposes, and how many of them are read line by line. Neither depends on
    # max_results, so that the first answer of 6 is the first answer of 20.
    proposals: int = 48
    read_closely: int = 32
