"""What turns text into vectors must promise this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plainmind.base.model import EmbedderIdentity, Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object


class Embedder(Protocol):
    """Text in, unit-length float32 vectors out. Safe to share between threads."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Who makes the vectors; `dims` 0 means that there are none and keywords answer alone."""

    @property
    def sends_text_to(self) -> str | None:
        """The host that sees the text, or None when it stays on this machine."""

    def embed_query(self, text: str) -> Vector:
        """Embed a question. Raises EmbeddingError."""

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts, one vector each, in their order; None for a text without any known word.

        Raises EmbeddingError and returns nothing when a single vector is bad.
        """

    def close(self) -> None:
        """Let go of models and connections."""


class EmbeddingCache(Protocol):
    """Remembers vectors by who made them and the SHA-256 of the text."""

    def lookup(self, identity: EmbedderIdentity, hashes: Sequence[str]) -> Mapping[str, Vector]:
        """The known vectors among `hashes`; looking one up makes it recently used."""

    def insert(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors, dropping the least recently used beyond the caps."""

    def forget(self, hashes: Sequence[str]) -> None:
        """Erase vectors of these texts, whoever made them."""

    def describe(self) -> Mapping[str, int]:
        """Facts for `status`: entries, bytes, maxEntries."""

    def close(self) -> None:
        """Let go of the file."""
