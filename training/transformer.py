"""Encoders of the BERT family in JAX: MiniLM and mpnet as bi-encoders and as cross-encoders.

Parameters are a flat dictionary by the names that the published weights have. Matrices may come as int8 with one scale
a row, which halves what has to be carried about twice and changes no figure that was measured.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Parameters = dict[str, Any]


class Shape(NamedTuple):
    """What distinguishes one encoder of the family from another."""

    kind: str  # "bert" or "mpnet"
    heads: int
    first_position: int
    padding: int
    begin: int
    between: tuple[int, ...]
    end: int
    epsilon: float


MINILM = Shape("bert", 12, 0, 0, 101, (102,), 102, 1e-12)
MPNET = Shape("mpnet", 12, 2, 1, 0, (2, 2), 2, 1e-5)
MOST = 63  # whole numbers of a matrix that a model is shipped as: seven bits and a sign
_BUCKETS, _FARTHEST = 32, 128


def read_safetensors(file: Path) -> dict[str, np.ndarray]:
    """The float32 arrays of a `.safetensors` file."""
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = entry["data_offsets"]
            raw = data[8 + length + start : 8 + length + end]
            arrays[name] = np.frombuffer(raw, np.float32).reshape(entry["shape"])
    return arrays


def pack(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices as int8 with a scale a row (`name#q`, `name#s`), the rest as it is."""
    packed: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if array.ndim == 2 and array.size > 10_000:
            scale = np.maximum(np.abs(array).max(1), 1e-12) / 127
            packed[f"{name}#q"] = np.rint(array / scale[:, None]).astype(np.int8)
            packed[f"{name}#s"] = scale.astype(np.float32)
        else:
            packed[name] = array.astype(np.float32)
    return packed


def pack_small(arrays: Mapping[str, np.ndarray], steps: float) -> dict[str, np.ndarray]:
    """As `pack`, but with so many steps to a row's spread: four, and xz makes four bits of a number of that."""
    packed: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if array.ndim == 2 and array.size > 10_000:
            scale = np.maximum(array.std(1) / steps, np.abs(array).max(1) / 127) + 1e-12
            packed[f"{name}#q"] = np.rint(array / scale[:, None]).astype(np.int8)
            packed[f"{name}#s"] = scale.astype(np.float32)
        else:
            packed[name] = array.astype(np.float32)
    return packed


def unpack(packed: Mapping[str, np.ndarray]) -> Parameters:
    """The float32 arrays of what `pack` made."""
    arrays: Parameters = {}
    for name in packed:
        if name.endswith("#q"):
            scale = packed[f"{name[:-2]}#s"]
            arrays[name[:-2]] = packed[name].astype(np.float32) * scale[:, None]
        elif not name.endswith("#s"):
            arrays[name] = packed[name]
    return arrays


def canonical(arrays: Mapping[str, np.ndarray]) -> Parameters:
    """One set of names for both kinds, without what is not used (poolers, position ids)."""
    renames = (
        ("attention.self.query", "q"), ("attention.self.key", "k"), ("attention.self.value", "v"),
        ("attention.output.dense", "o"), ("attention.output.LayerNorm", "norm1"),
        ("attention.attn.q", "q"), ("attention.attn.k", "k"), ("attention.attn.v", "v"),
        ("attention.attn.o", "o"), ("attention.LayerNorm", "norm1"),
        ("intermediate.dense", "up"), ("output.dense", "down"), ("output.LayerNorm", "norm2"),
    )  # fmt: skip
    parameters: Parameters = {}
    for name, array in arrays.items():
        if name.startswith(("pooler", "embeddings.position_ids")):
            continue
        short = name.replace("encoder.layer.", "").replace("encoder.", "").replace("embeddings.", "", 1)
        for old, new in renames:
            if f".{old}." in short:
                short = short.replace(old, new)
                break
        parameters[short] = np.asarray(array)
    return parameters


def every_second(parameters: Mapping[str, Any]) -> Parameters:
    """An encoder with half the layers: the second, the fourth and so on."""
    kept: Parameters = {}
    for name, array in parameters.items():
        layer, _, rest = name.partition(".")
        if not layer.isdigit():
            kept[name] = array
        elif int(layer) % 2:
            kept[f"{int(layer) // 2}.{rest}"] = array
    return kept


def round_weight(weight: jax.Array, most: int) -> jax.Array:
    """A matrix in whole numbers up to `most`, one scale a row; what is learned passes through as if it were not."""
    scale = jnp.maximum(jnp.abs(weight).max(1, keepdims=True), 1e-12) / most
    return weight + jax.lax.stop_gradient(jnp.rint(weight / scale) * scale - weight)


def _round_text(x: jax.Array) -> jax.Array:
    """What comes into a matrix product, cut into 256 steps from the least to the most of its text."""
    wide = jax.lax.stop_gradient(x.astype(jnp.float32))
    least = jnp.minimum(wide.min((1, 2), keepdims=True), 0.0)
    step = (jnp.maximum(wide.max((1, 2), keepdims=True), 0.0) - least) / 255 + 1e-12
    return x + (jnp.rint(wide / step) * step - wide).astype(x.dtype)


def _dense(parameters: Parameters, layer: str, part: str, x: jax.Array, *, whole: bool) -> jax.Array:
    weight = parameters[f"{layer}.{part}.weight"]
    if whole:
        weight, x = round_weight(weight, MOST), _round_text(x)
    weight = weight.astype(x.dtype)
    found: jax.Array = x @ weight.T + parameters[f"{layer}.{part}.bias"].astype(x.dtype)
    return found


def _norm(parameters: Parameters, name: str, x: jax.Array, epsilon: float) -> jax.Array:
    wide = x.astype(jnp.float32)
    wide = wide - wide.mean(-1, keepdims=True)
    wide = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + epsilon)
    found: jax.Array = (wide * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]).astype(x.dtype)
    return found


def _relative_buckets(length: int) -> np.ndarray:
    """Distances between two places, near ones each for themselves, far ones together."""
    distance = np.arange(length)[None, :] - np.arange(length)[:, None]
    half = _BUCKETS // 2
    bucket = (distance > 0) * half
    distance = np.abs(distance)
    near = half // 2
    far = near + np.log(np.maximum(distance, 1) / near) / math.log(_FARTHEST / near) * (half - near)
    found: np.ndarray = bucket + np.where(distance < near, distance, np.minimum(far.astype(int), half - 1))
    return found


def encode(
    parameters: Parameters,
    shape: Shape,
    tokens: jax.Array,
    kinds: jax.Array | None = None,
    *,
    whole: bool = False,
) -> jax.Array:
    """Hidden states (texts × places × width) of padded token ids; `whole`: as matrices in whole numbers give them."""
    dtype = jnp.bfloat16 if jax.default_backend() == "gpu" else jnp.float32
    mask = tokens != shape.padding
    length = tokens.shape[1]
    words = parameters["word_embeddings.weight"]
    x = (round_weight(words, 127) if whole else words)[tokens]
    x = x + parameters["position_embeddings.weight"][shape.first_position : shape.first_position + length]
    if shape.kind == "bert":
        types = parameters["token_type_embeddings.weight"]
        x = x + (types[0] if kinds is None else types[kinds])
    x = _norm(parameters, "LayerNorm", x, shape.epsilon).astype(dtype)
    bias = jnp.where(mask[:, None, None, :], 0.0, -1e9)
    if shape.kind == "mpnet":
        table = parameters["relative_attention_bias.weight"][_relative_buckets(length)]
        bias = bias + table.transpose(2, 0, 1)[None]
    layer = 0
    while f"{layer}.q.weight" in parameters:
        x = _layer(parameters, shape, str(layer), x, bias, whole=whole)
        layer += 1
    return x


def _layer(
    parameters: Parameters, shape: Shape, name: str, x: jax.Array, bias: jax.Array, *, whole: bool
) -> jax.Array:
    texts, length, width = x.shape
    size = width // shape.heads
    dense = partial(_dense, parameters, name, whole=whole)

    def heads(part: str) -> jax.Array:
        return dense(part, x).reshape(texts, length, shape.heads, size)

    scores = jnp.einsum("bqhd,bkhd->bhqk", heads("q"), heads("k")) / math.sqrt(size)
    weights = jax.nn.softmax(scores.astype(jnp.float32) + bias, axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, heads("v")).reshape(texts, length, width)
    x = _norm(parameters, f"{name}.norm1", x + dense("o", mixed), shape.epsilon)
    inner = jax.nn.gelu(dense("up", x), approximate=False)
    return _norm(parameters, f"{name}.norm2", x + dense("down", inner), shape.epsilon)


def mean_vectors(parameters: Parameters, shape: Shape, tokens: jax.Array) -> jax.Array:
    """Unit vectors of texts: the mean over their places."""
    hidden = encode(parameters, shape, tokens).astype(jnp.float32)
    mask = (tokens != shape.padding)[..., None]
    total = (hidden * mask).sum(1)
    vectors: jax.Array = total / jnp.linalg.norm(total, axis=-1, keepdims=True)
    return vectors


def pair_scores(
    parameters: Parameters, shape: Shape, tokens: jax.Array, kinds: jax.Array, *, whole: bool = False
) -> jax.Array:
    """How well each passage answers its question: one number a pair, from the first place."""
    first = encode(parameters, shape, tokens, kinds, whole=whole)[:, 0].astype(jnp.float32)
    scores: jax.Array = first @ parameters["head.weight"][0] + parameters["head.bias"][0]
    return scores


def join_pair(
    shape: Shape, question: np.ndarray, passage: np.ndarray, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and kinds of a question with a passage, both cut to fit into `length`."""
    question = question[: length // 3]
    room = length - len(question) - 2 - len(shape.between)
    passage = passage[:room]
    tokens = np.full(length, shape.padding, np.int32)
    kinds = np.zeros(length, np.int32)
    ids = [shape.begin, *question, *shape.between, *passage, shape.end]
    tokens[: len(ids)] = ids
    kinds[1 + len(question) + len(shape.between) : len(ids)] = 1
    return tokens, kinds
