"""What the files beside an ONNX model say about using it: pooling, window, prompts, dimensions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plainmind.base.errors import EmbeddingError
from plainmind.embed.prompts import Prompts, prompts_for

MODEL_FILES = ("onnx/model.onnx", "model.onnx")
TOKENIZER_FILE = "tokenizer.json"
ADVICE_FILES = (
    "config.json",
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
WEIGHT_FILES = ("onnx/model.onnx_data", "model.onnx_data")  # models over 2 GB keep their weights apart
_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "last",
}
_DIMS_KEYS = ("hidden_size", "d_model", "dim", "n_embd")
_WINDOW_KEYS = ("max_position_embeddings", "n_positions")
_LARGEST_WINDOW = 2048


@dataclass(frozen=True, slots=True)
class OnnxFolder:
    """A model's files and how it wants to be used. `dims` None: no file says."""

    model_file: str
    tokenizer_file: str
    pooling: str
    window_tokens: int
    dims: int | None
    prompts: Prompts

    def weight_files(self) -> Iterator[str]:
        """The files that make the vectors what they are."""
        yield self.model_file
        yield self.tokenizer_file
        if os.path.exists(self.model_file + "_data"):
            yield self.model_file + "_data"


def read_folder(folder: str, names: Sequence[str] = ()) -> OnnxFolder:
    """Find the model and read what is said about it; `names` are what else the model is called."""
    model_file = next(
        (path for file in MODEL_FILES if os.path.isfile(path := os.path.join(folder, file))), None
    )
    tokenizer_file = os.path.join(folder, TOKENIZER_FILE)
    if model_file is None or not os.path.isfile(tokenizer_file):
        missing = TOKENIZER_FILE if model_file else "model.onnx"
        raise EmbeddingError(
            f"there is no {missing} in {folder}",
            hint="a model's folder holds model.onnx (or onnx/model.onnx) and tokenizer.json",
        )
    config = _read(folder, "config.json")
    _refuse_unknown_layers(folder)
    known_as = (*names, str(config.get("_name_or_path", "")), os.path.basename(folder))
    return OnnxFolder(
        model_file=model_file,
        tokenizer_file=tokenizer_file,
        pooling=_pooling(folder),
        window_tokens=_window(folder, config),
        dims=_number(config, _DIMS_KEYS),
        prompts=_prompts(folder) or prompts_for(known_as),
    )


def _pooling(folder: str) -> str:
    settings = _read(folder, "1_Pooling/config.json")
    return next((name for key, name in _POOLINGS.items() if settings.get(key) is True), "mean")


def _window(folder: str, config: Mapping[str, object]) -> int:
    said = _number(_read(folder, "sentence_bert_config.json"), ("max_seq_length",))
    positions = _number(config, _WINDOW_KEYS)
    if positions is not None and config.get("model_type") in {"roberta", "xlm-roberta", "camembert"}:
        positions -= 2  # these count positions from 2
    return min(said or positions or 512, positions or _LARGEST_WINDOW, _LARGEST_WINDOW)


def _prompts(folder: str) -> Prompts | None:
    prompts = _read(folder, "config_sentence_transformers.json").get("prompts")
    if not isinstance(prompts, dict):
        return None
    query = prompts.get("query") or ""
    document = prompts.get("document") or prompts.get("passage") or ""
    return Prompts(str(query), str(document)) if query or document else None


def _refuse_unknown_layers(folder: str) -> None:
    """A dense layer behind the pooling is not in model.onnx: without it the vectors would be others."""
    modules = _read_any(folder, "modules.json")
    kinds = [str(module.get("type", "")) for module in modules] if isinstance(modules, list) else []
    if any(kind.endswith(".Dense") for kind in kinds):
        raise EmbeddingError(
            f"the model in {folder} has a dense layer behind its pooling, which its model.onnx does not hold",
            hint="use it as GGUF with the provider `local`, or choose another model",
        )


def _number(facts: Mapping[str, object], keys: Sequence[str]) -> int | None:
    found = (facts.get(key) for key in keys)
    return next((value for value in found if isinstance(value, int) and value > 0), None)


def _read(folder: str, name: str) -> Mapping[str, object]:
    facts = _read_any(folder, name)
    return facts if isinstance(facts, dict) else {}


def _read_any(folder: str, name: str) -> object:
    path = os.path.join(folder, *name.split("/"))
    try:
        with open(path, "rb") as file:
            return json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"{path} cannot be read: {error}", hint="download the model again") from error
