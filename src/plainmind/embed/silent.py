"""Embedders that make no vectors: the provider `none`, and one that says why another must not be asked."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.embed.protocol import EmbeddingSettings, FullEmbedder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class NoEmbedder(FullEmbedder):
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


class Withheld(FullEmbedder):
    """Stands in for an embedder that is not to be asked: it has the identity of an index, and a reason to be silent."""

    sends_text_to = None

    def __init__(self, identity: EmbedderIdentity | None, refusal: EmbeddingError) -> None:
        self._identity = identity
        self.refusal = refusal

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors would be made. Raises EmbeddingError when not even that is known."""
        return self._identity or self._refuse()

    def embed_query(self, text: str) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Refuse, unless there is nothing to embed."""
        return self._refuse() if texts else []

    def _refuse(self) -> NoReturn:
        raise EmbeddingError(str(self.refusal), hint=self.refusal.hint)

    def close(self) -> None:
        """Nothing to let go of."""


def create(settings: EmbeddingSettings) -> NoEmbedder:  # noqa: ARG001
    """Make the provider `none`; it has no settings."""
    return NoEmbedder()
