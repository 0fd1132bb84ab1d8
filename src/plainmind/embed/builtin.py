"""The provider `builtin`: a static model in our own wheel, so vectors work offline from the first second.

A text's vector is the weighted mean of its tokens' vectors, brought to unit length. Every token counts as an
integer multiple of its int8 row, so sums are exact in float64 and the same whatever the order or the batch:
indexing a text twice gives the same bytes.
"""

from __future__ import annotations

import math
import sys
import threading
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.embed.settings import EmbeddingSettings
from plainmind.embed.static_model import BUNDLED, StaticModel, open_model, read_card

_FIXED_POINT = 2.0**24  # a row's factor becomes a whole number of at most some 20 bits
_SMALLEST_NORM = 1e-6
# So much text takes about as long in plain Python as importing numpy does.
_FEW_CHARACTERS = 20_000


class BuiltinEmbedder:
    """Embeds in this process without any network; opens the model on first use."""

    def __init__(self, model_dir: str | None = None) -> None:
        self._folder = model_dir or BUNDLED
        self._opening = threading.Lock()
        self._model: StaticModel | None = None
        self._pooling: _Pooling | None = None
        self._few_left = _FEW_CHARACTERS

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """The model's digest stands as endpoint: other weights make other vectors under the same name."""
        card = read_card(self._folder)
        return EmbedderIdentity("builtin", card.name, endpoint=card.digest, dims=card.dims)

    @property
    def sends_text_to(self) -> None:
        """Nobody: the text stays on this machine."""
        return

    def embed_query(self, text: str) -> Vector:
        """Embed a question."""
        vector = _pooled(self._opened(), text)
        if vector is None:
            raise EmbeddingError("nothing to embed: the query has no words")
        return vector

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts some thousands a second; a blank one has no vector."""
        if not texts:
            return []
        model = self._opened()
        pooling = self._pooling
        if pooling is None:
            self._few_left -= sum(map(len, texts))
            if self._few_left >= 0 and "numpy" not in sys.modules:
                return [_pooled(model, text) for text in texts]
            pooling = self._pooling = _Pooling(model)
        return [pooling.pooled(text) for text in texts]

    def close(self) -> None:
        """Let go of the model; its memory goes back when the last call that uses it has returned."""
        with self._opening:
            self._model = self._pooling = None

    def _opened(self) -> StaticModel:
        model = self._model
        if model is None:
            with self._opening:
                model = self._model = self._model or open_model(self._folder)
        return model


def _pooled(model: StaticModel, text: str) -> Vector | None:
    """Make one vector in plain Python, so that a question or an edit does not wait for numpy."""
    if _blank(text):
        return None
    dims, vectors, rows = model.card.dims, model.vectors, model.rows
    sums = [0.0] * dims
    for token, count in Counter(model.tokenizer.encode(text)).items():
        factor = count * float(round(rows[2 * token] * rows[2 * token + 1] * _FIXED_POINT))
        row = vectors[token * dims : (token + 1) * dims]
        sums = [total + factor * one for total, one in zip(sums, row, strict=True)]
    norm = math.hypot(*sums)
    if norm <= _SMALLEST_NORM * _FIXED_POINT:
        return None
    return array("f", [total / norm for total in sums])


class _Pooling:
    """The same vectors with numpy, many times as fast."""

    def __init__(self, model: StaticModel) -> None:
        import numpy as np

        self._np = np
        self._encode = model.tokenizer.encode
        self._vectors = np.asarray(model.vectors).reshape(-1, model.card.dims)
        rows = np.asarray(model.rows, dtype=np.float64).reshape(-1, 2)
        self._factors = np.rint(rows[:, 0] * rows[:, 1] * _FIXED_POINT)

    def pooled(self, text: str) -> Vector | None:
        """Make one unit vector, or None for a text without words."""
        if _blank(text):
            return None
        np = self._np
        tokens, counts = np.unique(np.frombuffer(self._encode(text), dtype=np.uint16), return_counts=True)
        # Not a matrix product: BLAS would start threads, which costs more than these few rows.
        sums = np.einsum("i,ij->j", self._factors[tokens] * counts, self._vectors[tokens])
        norm = math.hypot(*sums.tolist())  # rounded as in plain Python, so that the bytes are the same
        if norm <= _SMALLEST_NORM * _FIXED_POINT:
            return None
        return array("f", (sums / norm).astype(np.float32).tobytes())


def _blank(text: str) -> bool:
    return not text or text.isspace()


def create(settings: EmbeddingSettings) -> BuiltinEmbedder:
    """Make the provider from its settings."""
    embedder = BuiltinEmbedder()
    if settings.model not in (None, "", embedder.identity.model):
        raise ConfigError(
            f"the provider `builtin` has no model `{settings.model}`",
            key="model",
            hint=f"leave `model` out, or set it to `{embedder.identity.model}`",
        )
    return embedder
