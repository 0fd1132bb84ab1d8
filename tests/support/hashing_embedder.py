"""An embedder for tests: 64 dimensions from the SHA-256 of each word, the same on every machine."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Sequence
from functools import lru_cache

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.embed.protocol import FullEmbedder

_WORD = re.compile(r"\w+")


class HashingEmbedder(FullEmbedder):
    """Texts that share words are near each other; `embedded` lists every text it was asked for."""

    identity = EmbedderIdentity("hashing", "sha256-words", dims=64)
    sends_text_to = None

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_query(self, text: str) -> Vector:
        vector = _vector(text)
        if vector is None:
            raise EmbeddingError("nothing to embed: the query has no words")
        return vector

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        self.embedded.extend(texts)
        return [_vector(text) for text in texts]

    def close(self) -> None:
        pass


class UnreliableEmbedder(HashingEmbedder):
    """A provider that may be down; `asked` counts how often it was asked for documents."""

    def __init__(self, *, is_down: bool = False) -> None:
        super().__init__()
        self.is_down = is_down
        self.asked = 0

    def embed_query(self, text: str) -> Vector:
        self._refuse()
        return super().embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        self.asked += 1
        self._refuse()
        return super().embed_documents(texts)

    def _refuse(self) -> None:
        if self.is_down:
            raise EmbeddingError("the provider is down")


def _vector(text: str) -> Vector | None:
    sums = [sum(column) for column in zip(*map(_shares, _WORD.findall(text.casefold())), strict=True)]
    norm = math.hypot(*sums)
    return array("f", [total / norm for total in sums]) if norm else None


@lru_cache(10_000)
def _shares(word: str) -> tuple[float, ...]:
    """What a word adds to each dimension."""
    digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
    return tuple(half - 7.5 for byte in digest for half in (byte >> 4, byte & 15))
