"""What a sync would cost before anything is spent: estimated, shown, and refused or asked for where it is much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from plainmind.base.errors import StorageFailure
from plainmind.base.model import sha256_text
from plainmind.base.value import value
from plainmind.embed.succession import Provider
from plainmind.memory.providers import Confirm, Cost, Initiative, in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.embed.cache import SqliteEmbeddingCache

# What a question waits for: some eight seconds of a provider on another machine, or of a model on this one.
MOST_TOKENS_BEFORE_A_SEARCH = {"remote": 200_000, "here": 20_000}
# Less is neither shown nor worth a look into the cache.
WORTH_SHOWING_TOKENS = 50_000
_TOGETHER = 2_000


@value
class Purse:
    """Decides whether texts may be embedded now, for one provider and one sync."""

    provider: Provider
    cache: SqliteEmbeddingCache | None
    initiative: Initiative
    allowed_usd: float
    confirm: Confirm | None
    indexed_chunks: int  # about as many as there will be texts, when all of them are embedded again

    def refusal(self, size: int, texts: Callable[[], Iterator[str]]) -> str | None:
        """Say why texts of so many bytes must not be embedded; None when they may be."""
        most = size // 2  # tokens: two bytes each are fewer than any text has
        if most <= WORTH_SHOWING_TOKENS and self._cost(most).usd <= self.allowed_usd:
            return None
        if self.initiative == "search":
            return self._refusal_before_a_search(most, texts)
        if not self._cost(1_000_000).usd:
            return None
        if not self._cost(most).needs_yes:
            if self.confirm is not None and not self._known_count():
                self.confirm(self._cost(most // 2))  # for show: whoever asked has allowed as much
            return None
        cost = self._cost(self._tokens(texts()))
        agreed = not cost.needs_yes if self.confirm is None else self.confirm(cost)
        if agreed:
            return None
        return (
            f"{in_words(cost)} needs your yes, as `remote.confirmAboveUsd` is {cost.allowed_usd:.2f}:"
            " `plainmind sync --yes`"
        )

    def _refusal_before_a_search(self, most: int, texts: Callable[[], Iterator[str]]) -> str | None:
        allowed = MOST_TOKENS_BEFORE_A_SEARCH["here" if self.provider.remote is None else "remote"]
        tokens = most
        if tokens > allowed or self._cost(tokens).needs_yes:
            # Only where the cache knows about half of it can the rest be little; else reading it all is in vain.
            tokens = self._tokens(texts()) if self._is_known_by_half() else most // 2
        cost = self._cost(tokens)
        if tokens <= allowed and not cost.needs_yes:
            return None
        return f"{in_words(cost)} is too much before a search: `plainmind sync` does it"

    def _cost(self, tokens: int) -> Cost:
        provider = self.provider
        usd = provider.remote.cost_of(tokens) if provider.remote is not None else 0.0
        return Cost(provider.name, provider.model, provider.sends_text_to, tokens, usd, self.allowed_usd)

    def _is_known_by_half(self) -> bool:
        return self._known_count() * 2 >= max(1, self.indexed_chunks)

    def _known_count(self) -> int:
        if self.cache is None:
            return 0
        try:
            return self.cache.count(self.provider.identity)
        except StorageFailure:
            return 0

    def _tokens(self, texts: Iterable[str]) -> int:
        """Count the tokens, about, of texts whose vectors the cache does not know."""
        from plainmind.text.chunking import estimated_tokens

        total = 0
        for some in _portions(texts):
            by_hash = {sha256_text(text): text for text in some}
            known = self._known(list(by_hash))
            total += sum(estimated_tokens(text) for name, text in by_hash.items() if name not in known)
        return total

    def _known(self, hashes: list[str]) -> frozenset[str]:
        if self.cache is None:
            return frozenset()
        try:
            return frozenset(self.cache.lookup(self.provider.identity, hashes))
        except StorageFailure:
            return frozenset()


def _portions(texts: Iterable[str]) -> Iterator[list[str]]:
    some: list[str] = []
    for text in texts:
        some.append(text)
        if len(some) == _TOGETHER:
            yield some
            some = []
    if some:
        yield some
