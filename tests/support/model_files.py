"""Model files for tests: the real GGUF where there is one, and small made-up ones of both formats."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

_SHARED = Path(__file__).resolve().parents[3] / "shared" / "models" / "all-MiniLM-L6-v2.Q8_0.gguf"


def real_gguf() -> Path:
    """The model that PLAINMIND_TEST_GGUF names, or the one beside the repository; else the test is skipped."""
    path = Path(os.environ.get("PLAINMIND_TEST_GGUF") or _SHARED)
    if not path.is_file():
        pytest.skip("no GGUF model: set PLAINMIND_TEST_GGUF to all-MiniLM-L6-v2.Q8_0.gguf")
    return path


def need_llama() -> None:
    """Skip where llama.cpp is not installed."""
    if find_spec("xllamacpp") is None:
        pytest.skip("llama.cpp is not installed: `uv sync --extra local` brings it")


def need_onnxruntime() -> None:
    """Skip where onnxruntime is not installed."""
    if find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime is not installed: `uv sync --extra onnx` brings it")


def write_gguf(path: Path, facts: Mapping[str, object], *, tensor_bytes: int = 4096) -> Path:
    """A GGUF file with these facts and one tensor of zeros; enough for everything but loading it."""
    pairs = b"".join(_text(key) + _value(value) for key, value in facts.items())
    tensor = _text("w") + struct.pack("<IQIQ", 1, tensor_bytes // 4, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(facts)) + pairs + tensor
    path.write_bytes(head + bytes(-len(head) % 32) + bytes(tensor_bytes))
    return path


def encoder_facts(**changes: object) -> dict[str, object]:
    """What the header of a small encoder says."""
    facts: dict[str, object] = {
        "general.architecture": "bert",
        "general.name": "tiny",
        "bert.context_length": 512,
        "bert.embedding_length": 8,
        "bert.pooling_type": 1,
        "tokenizer.ggml.tokens": ["[PAD]", "a", "b"],
    }
    facts.update({key.replace("__", "."): value for key, value in changes.items()})
    return {key: value for key, value in facts.items() if value is not None}


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    assert isinstance(value, list)
    if value and isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
    return struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)


DIMS = 64
WORDS = (
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "gateway", "runs", "on", "a", "mac", "studio", "in",
    "cellar", "we", "bake", "sourdough", "bread", "every", "sunday", "morning", "backups", "of", "run",
    "at", "and", "go", "to", "hetzner", "where", "does", "query", "passage", "family", "words", "nul",
    "inside", "cat",
)  # fmt: skip


def write_onnx_folder(
    folder: Path,
    *,
    dims: int = DIMS,
    inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids"),
    positions: int = 64,
    pooling: str | None = "mean_tokens",
) -> Path:
    """A model that looks each token up in a table: real ONNX, a real tokenizer, and vectors one can compute."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(WordLevel({word: id_ for id_, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "model.onnx").write_bytes(onnx_lookup(table(dims), inputs))
    (folder / "config.json").write_text(
        json.dumps({"hidden_size": dims, "max_position_embeddings": positions, "model_type": "bert"})
    )
    if pooling is not None:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    return folder


def table(dims: int = DIMS) -> list[list[float]]:
    """One vector a word, the same in every run."""
    import random

    chance = random.Random(7)
    return [[chance.gauss(0, 1) for _ in range(dims)] for _ in WORDS]


def onnx_lookup(rows: Sequence[Sequence[float]], inputs: Sequence[str]) -> bytes:
    """An ONNX graph `last_hidden_state = rows[input_ids]`, written as the protocol buffer that it is."""
    weights = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    tensor = (
        _packed(1, len(rows))
        + _packed(1, len(rows[0]))
        + _packed(2, 1)
        + _field(8, b"rows")
        + _field(9, weights)
    )
    node = (
        _field(1, b"rows") + _field(1, b"input_ids") + _field(2, b"last_hidden_state") + _field(4, b"Gather")
    )
    graph = _field(1, node) + _field(2, b"lookup") + _field(5, tensor)
    for name in inputs:
        graph += _field(11, _declared(name, 7, ("batch", "length")))
    graph += _field(12, _declared("last_hidden_state", 1, ("batch", "length", len(rows[0]))))
    return _packed(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _packed(2, 13))


def _declared(name: str, element: int, shape: Sequence[str | int]) -> bytes:
    dims = b"".join(
        _field(1, _field(2, dim.encode()) if isinstance(dim, str) else _packed(1, dim)) for dim in shape
    )
    return _field(1, name.encode()) + _field(2, _field(1, _packed(1, element) + _field(2, dims)))


def _packed(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))
