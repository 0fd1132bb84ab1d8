"""An encoder of the BERT family that lies in a package as ONNX in whole numbers, under the names of `canonical`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from training.transformer import canonical

_MATRIX = re.compile(r"/bert/(.+)/MatMul_quant$")
_BEND = 0.3  # of a score is left where the row before the last one bends it
_TABLE = re.compile(r"bert\.embeddings\.(\w+)\.weight_quantized$")


def read(file: Path) -> dict[str, np.ndarray]:
    """Matrices and rows as decimal numbers; what reads a score from the first place is one row, and straight."""
    graph = onnx.load(str(file)).graph
    found = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    arrays = {
        name.removeprefix("bert."): array
        for name, array in found.items()
        if name.startswith("bert.") and array.dtype == np.float32 and array.ndim
    }

    def numbers(name: str) -> np.ndarray:
        stem = name.removesuffix("_quantized")
        zero = found[f"{stem}_zero_point"].astype(np.float32)
        plain: np.ndarray = (found[name].astype(np.float32) - zero) * found[f"{stem}_scale"]
        return plain

    for name in found:
        if table := _TABLE.match(name):
            arrays[f"embeddings.{table[1]}.weight"] = numbers(name)
    for node in graph.node:
        if node.op_type == "MatMulInteger" and (matrix := _MATRIX.match(node.name)):
            arrays[f"{matrix[1].replace('/', '.')}.weight"] = numbers(node.input[1]).T
    pooler = numbers("bert.pooler.dense.weight_quantized").T
    last = numbers("classifier.weight_quantized").T
    bias = last @ found["bert.pooler.dense.bias"] + found["classifier.bias"]
    return {**canonical(arrays), "head.weight": _BEND * last @ pooler, "head.bias": _BEND * bias}
