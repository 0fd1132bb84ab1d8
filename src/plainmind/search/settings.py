"""What can be tuned about a search."""

from __future__ import annotations

from plainmind.base.value import field, replace, value
from plainmind.search.diversity import Diversity
from plainmind.search.recency import Recency
from plainmind.search.relevance import Weights

# How much of the weight of meaning is left where a small model knows the script only roughly.
SPACELESS_SHARE = 2 / 3


@value
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

    def mixed(self, *, is_spaceless: bool, with_vectors: bool) -> Weights:
        """The weights of the signals that a question can consult."""
        if is_spaceless and self.use_keywords and with_vectors:
            # What stands out is added to what the words say: it is too little to count for a share of the whole.
            words = self.weights.scaled(with_vectors=False, with_keywords=True)
            return replace(words, meaning=self.weights.meaning * SPACELESS_SHARE)
        return self.weights.scaled(with_vectors=with_vectors, with_keywords=self.use_keywords)
