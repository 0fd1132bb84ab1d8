"""The provider `none`: no vectors, keywords answer alone."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.embed.settings import EmbeddingSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class NoEmbedder:
    """Has no vector for any text; callers see `dims` 0 and do not ask for one."""

    identity = EmbedderIdentity("none", "", dims=0)
    sends_text_to = None

    def embed_query(self, text: str) -> NoReturn:  # noqa: ARG002
        """Refuse: there is nothing to compare a query with."""
        raise EmbeddingError(
            "the provider `none` makes no vectors", hint="set `provider` to `auto` to search by meaning too"
        )

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Answer None for each text: found by keywords only."""
        return [None] * len(texts)

    def close(self) -> None:
        """Nothing to let go of."""


def create(settings: EmbeddingSettings) -> NoEmbedder:  # noqa: ARG001
    """Make the provider; it has no settings."""
    return NoEmbedder()
