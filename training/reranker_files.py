"""The reranker as the files of its package.

    model.onnx   the encoder with its matrices as whole numbers, for onnxruntime on any processor
    pieces.txt   the word pieces, a line each; the number of the line is the number of the piece
    model.json   name, layers, the longest pair, and a digest of the two files above

Matrices have seven bits and a sign with one scale a column: eight would overflow on processors without instructions
for them. Rows that no text can reach (the vocabulary has a thousand empty places) are left out. The last layer is
computed for the first place alone, from which the score is read.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from training.transformer import MOST

NAME = "plainmind-reranker-3"
LONGEST = 192
_OPSET = 17
_OURS = (
    "com.microsoft"  # operators that onnxruntime has beside the standard ones, each several of those in one
)
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


class _Graph:
    """Nodes and weights in the order in which they are computed."""

    def __init__(self, parameters: dict[str, np.ndarray], heads: int, epsilon: float) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._parameters = parameters
        self._heads = heads
        self._epsilon = epsilon

    def constant(self, name: str, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def floats(self, name: str) -> str:
        return self.constant(name, self._parameters[name].astype(np.float32))

    def dense(self, name: str, x: str) -> str:
        """A matrix product in whole numbers: what comes in is cut into 256 steps on the way."""
        matrix = self._parameters[f"{name}.weight"].astype(np.float32).T
        scale = np.maximum(np.abs(matrix).max(0), 1e-12) / MOST
        rounded = np.rint(matrix / scale).astype(np.int8)
        inputs = [
            x,
            self.constant(f"{name}.rounded", rounded),
            self.constant(f"{name}.scale", scale.astype(np.float32)),
            self.constant(f"{name}.zero", np.zeros(len(scale), np.int8)),
            self.floats(f"{name}.bias"),
        ]
        return self.node("DynamicQuantizeMatMul", inputs, f"{name}.out", domain=_OURS)

    def norm(self, name: str, x: str, beside: str, output: str) -> str:
        inputs = [x, beside, self.floats(f"{name}.weight"), self.floats(f"{name}.bias")]
        return self.node("SkipLayerNormalization", inputs, output, domain=_OURS, epsilon=self._epsilon)

    def layer(self, at: int, x: str, mask: str, *, is_last: bool) -> str:
        keys, values = self.dense(f"{at}.k", x), self.dense(f"{at}.v", x)
        if is_last:
            x = self.node("Slice", [x, "zero", "one", "one"], f"{at}.first")
        queries = self.dense(f"{at}.q", x)
        mixed = self.node(
            "MultiHeadAttention", [queries, keys, values, "", mask], f"{at}.mixed", domain=_OURS,
            num_heads=self._heads, mask_filter_value=-1e4,
        )  # fmt: skip
        x = self.norm(f"{at}.norm1", self.dense(f"{at}.o", mixed), x, f"{at}.attended")
        inner = self.node("Gelu", [self.dense(f"{at}.up", x)], f"{at}.inner", domain=_OURS)
        return self.norm(f"{at}.norm2", self.dense(f"{at}.down", inner), x, f"{at}.done")


def make_model(parameters: dict[str, np.ndarray], heads: int, epsilon: float = 1e-12) -> onnx.ModelProto:
    """Tokens, kinds (0 in the question, 1 in the passage) and mask in, one number a pair out."""
    graph = _Graph(parameters, heads, epsilon)
    graph.constant("zero", np.array([0], np.int64))
    graph.constant("one", np.array([1], np.int64))
    words = parameters["word_embeddings.weight"].astype(np.float32)
    scale = np.maximum(np.abs(words).max(1), 1e-12) / 127
    graph.constant("words", np.rint(words / scale[:, None]).astype(np.int8))
    graph.constant("words.scale", scale.astype(np.float32)[:, None])
    rounded = graph.node("Gather", ["words", "tokens"], "words.rounded")
    x = graph.node("Cast", [rounded], "words.float", to=TensorProto.FLOAT)
    x = graph.node("Mul", [x, graph.node("Gather", ["words.scale", "tokens"], "words.scales")], "words.here")
    places = graph.constant(
        "places.all", parameters["position_embeddings.weight"][:LONGEST].astype(np.float32)
    )
    length = graph.node("Shape", ["tokens"], "length", start=1, end=2)
    x = graph.node("Add", [x, graph.node("Slice", [places, "zero", length, "zero"], "places.here")], "placed")
    kinds = graph.node("Gather", [graph.floats("token_type_embeddings.weight"), "kinds"], "kinds.here")
    x = graph.norm("LayerNorm", x, kinds, "embedded")
    layers = sum(name.endswith(".q.weight") for name in parameters)
    for at in range(layers):
        x = graph.layer(at, x, "mask", is_last=at == layers - 1)
    graph.constant("head.column", parameters["head.weight"].astype(np.float32).T)
    graph.node(
        "Add", [graph.node("MatMul", [x, "head.column"], "head.product"), graph.floats("head.bias")], "head"
    )
    graph.node("Reshape", ["head", graph.constant("flat", np.array([-1], np.int64))], "scores")
    pairs = [
        helper.make_tensor_value_info(name, TensorProto.INT32, ["pairs", "places"])
        for name in ("tokens", "kinds", "mask")
    ]
    scores = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["pairs"])]
    made = helper.make_graph(graph.nodes, NAME, pairs, scores, graph.weights)
    operators = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_OURS, 1)]
    return helper.make_model(made, opset_imports=operators, ir_version=8, producer_name="plainmind")


def reachable(pieces: list[str]) -> list[int]:
    """The numbers of the pieces that a text can be cut into, marks first."""
    kept = [pieces.index(mark) for mark in _SPECIAL]
    return kept + [
        at
        for at, piece in enumerate(pieces)
        if not (piece.startswith("[") and piece.endswith("]")) or len(piece) == 1
    ]


def write(folder: Path, parameters: dict[str, np.ndarray], pieces: list[str], heads: int) -> None:
    """Write all files; the card comes last."""
    kept = reachable(pieces)
    parameters = {
        **parameters, "word_embeddings.weight": parameters["word_embeddings.weight"][kept]
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "model.onnx": make_model(parameters, heads).SerializeToString(),
        "pieces.txt": "".join(f"{pieces[at]}\n" for at in kept).encode(),
    }
    digest = hashlib.sha256()
    for name, data in contents.items():
        (folder / name).write_bytes(data)
        digest.update(data)
    card = {"name": NAME, "longest": LONGEST, "digest": digest.hexdigest()}
    (folder / "model.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def read(folder: Path, numbers: dict[str, int]) -> dict[str, np.ndarray]:
    """The parameters of a model that `write` wrote, for a student that goes on from it; words by their `numbers`."""
    model = onnx.load(str(folder / "model.onnx"))
    found = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    parameters = {}
    for name, array in found.items():
        if name.endswith(".rounded"):
            stem = name.removesuffix(".rounded")
            parameters[f"{stem}.weight"] = (array.astype(np.float32) * found[f"{stem}.scale"]).T
        elif name.endswith((".bias", ".weight")):
            parameters[name] = array.astype(np.float32)
    parameters["position_embeddings.weight"] = found["places.all"]
    parameters["head.weight"] = found["head.column"].T
    words = found["words"].astype(np.float32) * found["words.scale"]
    every = np.zeros((max(numbers.values()) + 1, words.shape[1]), np.float32)
    pieces = (folder / "pieces.txt").read_text(encoding="utf-8").split("\n")[:-1]
    every[[numbers[piece] for piece in pieces]] = words
    parameters["word_embeddings.weight"] = every
    return parameters
