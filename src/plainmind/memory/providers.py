"""What a guest promises that embeds with providers: which take long, cost money, or fail and are stood in for."""

from __future__ import annotations

from collections.abc import Callable

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Literal, Protocol, TypeAlias

    from plainmind.base.model import EmbedderIdentity, IndexFingerprint, ProgressCallback, SyncReport
    from plainmind.embed.cache import SqliteEmbeddingCache
    from plainmind.embed.protocol import Embedder
    from plainmind.index.plan import Patience
    from plainmind.memory.doctor import Check
    from plainmind.memory.index import Index
else:
    Protocol = object

# Who wants the sync: a question that waits for it, something in the background, or a person who asked for it.
Initiative: TypeAlias = "Literal['search', 'background', 'asked']"


@value
class Cost:
    """What a sync is about to spend: tokens and dollars, both about. `needs_yes`: more than the user has allowed."""

    provider: str
    model: str
    host: str | None
    tokens: int
    usd: float
    allowed_usd: float

    @property
    def needs_yes(self) -> bool:
        """Whether the user has to agree first."""
        return self.usd > self.allowed_usd


# Shows the cost, and says whether to go on.
Confirm: TypeAlias = Callable[[Cost], bool]


@value
class Asked:
    """How a sync was asked for. `wait` for batch jobs: None as the settings say; who does not ask does not wait."""

    initiative: Initiative = "asked"
    force: bool = False
    thorough: bool = True
    wait: bool | None = None
    confirm: Confirm | None = None
    progress: ProgressCallback | None = None
    patience: Patience | None = None  # with conversations that grow


@value
class EmbeddingStatus:
    """What is known about the embedder. `identity` is that of who answers questions now."""

    identity: EmbedderIdentity
    rebuild: str | None  # why the index has to be made anew
    facts: dict[str, Any]
    leaves: list[dict[str, str]]  # which source is sent where
    fallback: dict[str, str] | None


class Providers(Protocol):
    """Makes embedders when they are first needed, and says who embeds and why."""

    @property
    def chosen(self) -> Embedder:
        """The provider that was chosen, whether it works or not."""

    @property
    def used_cache(self) -> SqliteEmbeddingCache | None:
        """The cache of vectors, where the chosen provider uses it."""

    def answering(self, made: EmbedderIdentity | None) -> Embedder:
        """Who answers questions to an index that was made with an embedder: vectors of two models never meet."""

    def standing_in(self, made: EmbedderIdentity | None) -> Mapping[str, str] | None:
        """Say who embeds in whose place, and why, when an index was made by the fallback."""

    def sync(self, index: Index, asked: Asked) -> SyncReport:
        """Bring the index up to date. A failing provider never costs an index that works."""

    def status(self, index: Index, made: IndexFingerprint | None, *, deep: bool) -> EmbeddingStatus:
        """Facts for `status`. Asks a provider on another machine only when `deep`, for one vector."""

    def examine(self) -> Iterator[Check]:
        """What `doctor` says of the provider: it is asked for one vector, though it may be paused."""

    def forget_uploads(self, hashes: Sequence[str]) -> None:
        """Have the provider delete what was uploaded to it. Raises EmbeddingError while that is not sure."""

    def close(self) -> None:
        """Let go of everything that was opened."""


def in_words(cost: Cost) -> str:
    """`embedding about 2,100,000 tokens with openai text-embedding-3-small, for about $0.04,`."""
    price = f", for about ${cost.usd:,.2f}," if cost.usd >= 0.005 else ""
    return f"embedding about {_round(cost.tokens):,} tokens with {cost.provider} {cost.model}{price}"


def _round(tokens: int) -> int:
    """Two digits are as much as an estimate knows."""
    digits = max(0, len(str(tokens)) - 2)
    return round(tokens, -digits)
