"""The Universal Sentence Encoder (multilingual, 3) in JAX: a teacher that puts sixteen languages into one space.

It is a bag of pieces with three convolutions over neighbours and a few dense layers; weights are read from the package
that holds them, quantised to bytes, as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_BLOCKS = 17  # the table comes in as many parts, piece i in part i % 17
_ORDERS = ((2, 0), (3, 1), (5, 2))  # width of a convolution, and how far it reaches to the left
PADDING = -1


def read_weights(file: Path) -> dict[str, Any]:
    """Arrays by name, the table of pieces put together as `table`."""
    with np.load(file) as arrays:
        weights = {name: arrays[name] for name in arrays.files if not name.startswith("q")}
        blocks = [arrays[f"q{part + 1}"] for part in range(_BLOCKS)]
    table = np.empty((_BLOCKS * len(blocks[0]), blocks[0].shape[1]), np.float32)
    for part, block in enumerate(blocks):
        table[part::_BLOCKS] = block * weights["scale"][part] + weights["lo"][part]
    weights["table"] = table
    weights["eps"] = float(weights["eps"])
    return weights


def read_tokenizer(file: Path) -> Any:
    """The sentencepiece model."""
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=str(file))


def token_ids(tokenizer: Any, texts: Sequence[str], longest: int) -> list[list[int]]:
    """Ids of the pieces of texts with the marks of begin and end."""
    encoded = tokenizer.encode(list(texts), out_type=int, add_bos=True, add_eos=True, num_threads=16)
    return [ids[:longest] for ids in encoded]


def vectors(weights: dict[str, Any], tokens: jax.Array) -> jax.Array:
    """Unit vectors (texts × 512) of token ids padded with -1."""
    mask = (tokens != PADDING)[..., None]
    table = weights["table"]
    emb = jnp.where(mask, table[jnp.maximum(tokens, 0)], 0).astype(jnp.float32)
    parts = [emb]
    for order, left in _ORDERS:
        x = emb @ weights[f"proj{order}"] + weights[f"proj_b{order}"]
        x = _norm(x, weights[f"ln_g{order}"], weights[f"ln_b{order}"], weights["eps"]) * mask
        for step in ("1", "2"):
            wide = jnp.concatenate([_shift(x, at - left) for at in range(order)], axis=-1)
            x = (jax.nn.relu(wide @ weights[f"w{step}_{order}"] + weights[f"b{step}_{order}"]) + x) * mask
        parts.append(x)
    features = _norm(jnp.concatenate(parts, axis=-1), weights["ln_g"], weights["ln_b"], weights["eps"]) * mask
    count = mask.sum(1).astype(jnp.float32)
    mean = (features.sum(1) @ weights["cnn_W"] + count * weights["cnn_b"]) / jnp.sqrt(jnp.maximum(count, 1))
    y = jax.nn.relu(mean @ weights["p1"] + jax.nn.relu(mean @ weights["d0"]) @ weights["d1"])
    z = jnp.tanh(y @ weights["p3"] + jax.nn.relu(y @ weights["d2"]) @ weights["d3"])
    return z / jnp.sqrt(jnp.maximum((z * z).sum(-1, keepdims=True), weights["eps"]))


def _norm(x: jax.Array, gain: jax.Array, bias: jax.Array, epsilon: float) -> jax.Array:
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + epsilon) * gain + bias


def _shift(x: jax.Array, by: int) -> jax.Array:
    """Each place gets what stands `by` places to its right, or zeros."""
    if by == 0:
        return x
    rolled = jnp.roll(x, -by, axis=1)
    places = jnp.arange(x.shape[1])
    inside = (places + by >= 0) & (places + by < x.shape[1])
    return rolled * inside[None, :, None]
