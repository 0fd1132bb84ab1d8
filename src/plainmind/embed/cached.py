"""Remembers what an embedder said: a decorator for providers that are slow or cost money.

The builtin model is not wrapped: it computes faster than a lookup.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from plainmind.base.errors import StorageFailure
from plainmind.base.model import EmbedderIdentity, Vector, sha256_text
from plainmind.embed.protocol import Embedder, EmbeddingCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Keep: TypeAlias = "Callable[[Mapping[str, Vector]], None]"
Eager: TypeAlias = "Callable[[Sequence[str], Keep], list[Vector | None]]"

# Every insertion looks for what has to go, so a few requests share one.
_TOGETHER = 256


class CachedEmbedder:
    """Asks the embedder only for texts that the cache does not know, each once."""

    def __init__(self, embedder: Embedder, cache: EmbeddingCache) -> None:
        self._embedder = embedder
        self._cache = cache
        self.trouble: str | None = None  # why the cache was last not used, for `status`

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors these are."""
        return self._embedder.identity

    @property
    def sends_text_to(self) -> str | None:
        """The host that sees texts the cache does not know."""
        return self._embedder.sends_text_to

    def embed_query(self, text: str) -> Vector:
        """Pass the question on: some providers embed questions and documents differently."""
        return self._embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed each distinct unknown text once; the answers come in the order of `texts`."""
        hashes = [sha256_text(text) for text in texts]
        text_by_hash = dict(zip(hashes, texts, strict=True))
        vectors: dict[str, Vector | None] = dict(self._known(list(text_by_hash)))
        missing = {name: text for name, text in text_by_hash.items() if name not in vectors}
        if missing:
            vectors.update(self._made(missing))
        return [vectors[name] for name in hashes]

    def close(self) -> None:
        """Let go of the embedder and of the cache."""
        try:
            self._embedder.close()
        finally:
            self._cache.close()

    def _made(self, missing: Mapping[str, str]) -> Mapping[str, Vector | None]:
        """Have texts embedded, and keep what was made: what one request has brought even when another one fails."""
        texts = list(missing.values())
        eager: Eager | None = getattr(self._embedder, "embed_keeping", None)
        if eager is None:
            fresh = dict(zip(missing, self._embedder.embed_documents(texts), strict=True))
            self._keep({name: vector for name, vector in fresh.items() if vector is not None})
            return fresh
        names = {text: name for name, text in missing.items()}
        waiting = _Waiting(self._keep)
        try:
            made = eager(
                texts, lambda some: waiting.add({names[text]: vector for text, vector in some.items()})
            )
        finally:
            waiting.flush()
        return dict(zip(missing, made, strict=True))

    def _known(self, hashes: Sequence[str]) -> dict[str, Vector]:
        try:
            return dict(self._cache.lookup(self.identity, hashes))
        except StorageFailure as error:
            # Without its cache a provider is slower, not wrong: go on, and let `status` tell.
            self.trouble = str(error)
            return {}

    def _keep(self, vectors: dict[str, Vector]) -> None:
        try:
            self._cache.insert(self.identity, vectors)
        except StorageFailure as error:
            self.trouble = str(error)


class _Waiting:
    """Vectors on their way into the cache, from several threads at once."""

    def __init__(self, keep: Callable[[dict[str, Vector]], None]) -> None:
        self._keep = keep
        self._turn = threading.Lock()
        self._vectors: dict[str, Vector] = {}

    def add(self, vectors: Mapping[str, Vector]) -> None:
        """Take some; enough of them go to the cache."""
        with self._turn:
            self._vectors.update(vectors)
            if len(self._vectors) < _TOGETHER:
                return
            ready, self._vectors = self._vectors, {}
        self._keep(ready)

    def flush(self) -> None:
        """Send the rest."""
        with self._turn:
            ready, self._vectors = self._vectors, {}
        if ready:
            self._keep(ready)
