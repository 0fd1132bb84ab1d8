"""What may be spent: nothing large before a search, nothing dear without a yes, and what is cached costs nothing."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector, sha256_text
from plainmind.embed.cache import SqliteEmbeddingCache
from plainmind.embed.succession import Provider
from plainmind.guests.remote.provider_sync import Cost, Purse, in_words

IDENTITY = EmbedderIdentity("openai", "large", "e", dims=2)
VECTOR: Vector = array("f", [1.0, 0.0])
TEXTS = [f"{number} " + "abcd" * 100 for number in range(1000)]  # some 101 tokens each
SIZE = sum(map(len, TEXTS))


class Priced:
    """A provider whose tokens cost a dollar a million."""

    identity = IDENTITY
    sends_text_to = "api.example"

    def __init__(self, usd: float = 1.0) -> None:
        self.usd = usd

    def cost_of(self, tokens: int) -> float:
        return tokens * self.usd / 1e6

    def pause(self) -> EmbeddingError | None:
        return None

    def probe(self, *, anyway: bool = False) -> int:
        return 2

    def embed_query(self, text: str) -> Vector:
        return VECTOR

    def embed_documents(self, texts: object) -> list[Vector | None]:
        return []

    def close(self) -> None:
        pass


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[SqliteEmbeddingCache]:
    made = SqliteEmbeddingCache(str(tmp_path / "cache.sqlite"))
    yield made
    made.close()


def purse(initiative: str, cache: SqliteEmbeddingCache | None = None, **changes: object) -> Purse:
    priced = Priced(changes.pop("price", 1.0))  # type: ignore[arg-type]
    remote = None if changes.pop("here", False) else priced
    facts = {"allowed_usd": 0.05, "confirm": None, "indexed_chunks": len(TEXTS)} | changes
    provider = Provider("openai", "large", priced, bare=priced, remote=remote)
    return Purse(provider, cache, initiative=initiative, **facts)  # type: ignore[arg-type]


def read() -> Iterator[str]:
    return iter(TEXTS)


def unread() -> Iterator[str]:
    raise AssertionError("nothing needs to be read for this")


def test_a_little_is_always_allowed_and_not_even_counted() -> None:
    for initiative in ("search", "background", "asked"):
        assert purse(initiative).refusal(20_000, unread) is None


def test_what_costs_more_than_allowed_is_refused_with_what_to_type() -> None:
    refusal = purse("asked").refusal(SIZE, read)

    assert refusal == (
        "embedding about 100,000 tokens with openai large, for about $0.10, needs your yes,"
        " as `remote.confirmAboveUsd` is 0.05: `plainmind sync --yes`"
    )


def test_whoever_is_asked_sees_the_cost_and_decides() -> None:
    shown: list[Cost] = []

    def confirm(cost: Cost) -> bool:
        shown.append(cost)
        return len(shown) > 1

    asked = purse("asked", confirm=confirm)
    assert asked.refusal(SIZE, read) is not None
    assert asked.refusal(SIZE, read) is None
    assert shown[0].needs_yes
    assert (shown[0].provider, shown[0].host) == ("openai", "api.example")
    assert shown[0].usd == pytest.approx(shown[0].tokens / 1e6)


def test_what_is_allowed_is_shown_before_the_first_time_without_being_read() -> None:
    shown: list[Cost] = []
    asked = purse("asked", allowed_usd=10.0, confirm=lambda cost: bool(shown.append(cost)))

    assert asked.refusal(SIZE, unread) is None
    assert [cost.needs_yes for cost in shown] == [False]


def test_what_the_cache_knows_costs_nothing(cache: SqliteEmbeddingCache) -> None:
    cache.insert(IDENTITY, {sha256_text(text): VECTOR for text in TEXTS[100:]})

    assert purse("background", cache).refusal(SIZE, read) is None
    assert purse("background", cache, allowed_usd=0.001).refusal(SIZE, read) is not None


def test_a_provider_without_a_price_is_not_asked_about() -> None:
    assert purse("asked", price=0.0).refusal(10**9, unread) is None
    assert purse("background", here=True).refusal(10**9, unread) is None


def test_a_search_does_not_wait_for_much_whatever_it_costs() -> None:
    free = purse("search", price=0.0)

    assert free.refusal(300_000, unread) is None
    refusal = free.refusal(2_000_000, unread)
    assert refusal == (
        "embedding about 500,000 tokens with openai large is too much before a search: `plainmind sync` does it"
    )
    assert purse("search", here=True).refusal(300_000, unread) is not None


def test_a_search_counts_closely_only_where_the_cache_may_know_most_of_it(
    cache: SqliteEmbeddingCache,
) -> None:
    searching = purse("search", cache, price=0.0)
    cache.insert(IDENTITY, {sha256_text(text): VECTOR for text in TEXTS[:400]})
    assert searching.refusal(10 * SIZE, unread) is not None

    cache.insert(IDENTITY, {sha256_text(text): VECTOR for text in TEXTS})
    assert searching.refusal(10 * SIZE, read) is None


def test_a_cache_that_cannot_be_used_knows_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache.sqlite").mkdir()
    broken = SqliteEmbeddingCache(str(tmp_path / "cache.sqlite"))

    assert purse("background", broken).refusal(SIZE, read) is not None
    assert purse("search", broken, price=0.0).refusal(2_000_000, unread) is not None


def test_a_cost_in_words_is_rounded_as_an_estimate_should_be() -> None:
    assert in_words(Cost("openai", "m", None, 1_234_567, 0.024, 1.0)) == (
        "embedding about 1,200,000 tokens with openai m, for about $0.02,"
    )
    assert in_words(Cost("openai", "m", None, 7, 0.0, 1.0)) == "embedding about 7 tokens with openai m"
