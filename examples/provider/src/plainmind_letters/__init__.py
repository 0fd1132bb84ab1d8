"""The provider `letters`: a text's vector counts its sequences of three letters, so misspelt words still match."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.embed.protocol import EmbeddingSettings, check_vectors

DIMS = 512


class LettersEmbedder:
    """Needs no model and no network. It has no state either, so threads may share it."""

    identity = EmbedderIdentity("letters", "trigrams-v1", dims=DIMS)
    sends_text_to = None  # a provider on another machine names its host here

    def embed_query(self, text: str) -> Vector:
        """Embed a question; one without words is an error, not a vector of zeros."""
        if not text.strip():
            raise EmbeddingError("nothing to embed: the query has no words")
        return self._vectors([text])[0]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts in their order; a blank one has no vector."""
        made = iter(self._vectors([text for text in texts if text.strip()]))
        return [next(made) if text.strip() else None for text in texts]

    def close(self) -> None:
        """There is nothing to let go of."""

    def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        counted = [counts(text) for text in texts]
        # The gate refuses wrong sizes, NaN and zeros, and brings everything to unit length.
        return check_vectors(counted, expected_count=len(texts), expected_dims=DIMS)


def counts(text: str) -> list[float]:
    """How often each sequence of three letters occurs, spread over the dimensions by a hash."""
    letters = f" {text.lower()} ".encode("utf-32-le", "surrogatepass")
    vector = [0.0] * DIMS
    for start in range(0, len(letters) - 8, 4):
        vector[crc32(letters[start : start + 12]) % DIMS] += 1
    return vector


def create(settings: EmbeddingSettings) -> LettersEmbedder:  # noqa: ARG001
    """Make the provider; `settings.model` is what the user wrote as `model`."""
    return LettersEmbedder()
