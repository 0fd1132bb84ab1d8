"""The provider `onnx`: a sentence model in ONNX format, from a folder or a hub, run on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.extras import install_hint
from plainmind.base.model import EmbedderIdentity, ProgressCallback
from plainmind.base.value import value
from plainmind.embed.protocol import EmbeddingSettings, usable_cores
from plainmind.files.safe_open import expand_user
from plainmind.guests.local.model_files import (
    DEFAULT_CACHE_DIR,
    Hub,
    PromptedEmbedder,
    Prompts,
    fingerprint,
    is_hub_name,
    prompts_for,
)

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"
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
_ERRORS_ONLY = 3
_KNOWN_INPUTS = frozenset(("input_ids", "attention_mask", "token_type_ids", "position_ids"))


@value
class OnnxSettings:
    """Which model runs here: a folder, or a name on the hub. `threads` None: as many as there are cores."""

    model: str | None = None
    model_cache_dir: str = DEFAULT_CACHE_DIR
    threads: int | None = None


class OnnxEmbedder(PromptedEmbedder):
    """Embeds in this process; the model is downloaded and loaded when it is first asked for."""

    def __init__(
        self,
        settings: OnnxSettings,
        *,
        hub: Hub | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self._named = settings.model or DEFAULT_MODEL
        self._hub = hub or Hub(settings.model_cache_dir)
        self._progress = progress
        self._threads = settings.threads or usable_cores()
        self._opening = threading.Lock()
        self._model: OnnxModel | None = None
        written = expand_user(self._named)
        self._path = os.path.abspath(written) if os.path.isdir(written) else None
        if self._path is None and not is_hub_name(self._named):
            raise ConfigError(
                f"`{self._named}` is neither a folder nor the name of a model",
                key="model",
                hint=f"name a folder with model.onnx and tokenizer.json, or a model such as `{DEFAULT_MODEL}`",
            )

    @property
    def is_ready(self) -> bool:
        """The model is on this machine: nothing has to be downloaded."""
        return self._path is not None or self._hub.has_folder(self._named)

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """Fingerprints of the files, the pooling and the prompts stand as endpoint: others make other vectors."""
        folder = self._folder
        prints = "\0".join(fingerprint(path) for path in folder.weight_files())
        made_with = f"{prints}\0{folder.pooling}\0{folder.prompts.query}\0{folder.prompts.document}"
        return EmbedderIdentity(
            "onnx",
            os.path.basename(self._path) if self._path else self._named,
            endpoint=hashlib.sha256(made_with.encode()).hexdigest(),
            dims=folder.dims or len(self._open().embed("how many dimensions?")),
        )

    def describe(self) -> Mapping[str, object]:
        """Facts for `status`; none of them loads the model or downloads it."""
        folder = self._path or self._hub.folder_of(self._named)
        return {"model": self._named, "folder": folder, "ready": self.is_ready}

    def close(self) -> None:
        """Let go of the model; its memory goes back when the last call that uses it has returned."""
        with self._opening:
            self._model = None

    @cached_property
    def _folder(self) -> OnnxFolder:
        if self._path is not None:
            return read_folder(self._path)
        folder = self._hub.fetch_folder(
            self._named,
            required=(TOKENIZER_FILE,),
            optional=(*ADVICE_FILES, *WEIGHT_FILES),
            one_of=MODEL_FILES,
            progress=self._progress,
        )
        return read_folder(folder, (self._named,))

    @property
    def _prompts(self) -> Prompts:
        return self._folder.prompts

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        model = self._open()
        return [model.embed(text) for text in texts]

    def _open(self) -> OnnxModel:
        with self._opening:
            if self._model is None:
                self._model = OnnxModel(self._folder, threads=self._threads)
            return self._model


def create(settings: EmbeddingSettings) -> OnnxEmbedder:
    """Make the provider; `model` is a folder or a name on the hub."""
    folder = settings.model_cache_dir or DEFAULT_CACHE_DIR
    return OnnxEmbedder(OnnxSettings(settings.model or None, folder), progress=settings.downloading)


class OnnxModel:
    """One loaded model. A text is embedded alone, so that its vector does not depend on its company."""

    def __init__(self, folder: OnnxFolder, *, threads: int) -> None:
        runtime, tokenizers = _binding("onnxruntime"), _binding("tokenizers")
        runtime.set_default_logger_severity(_ERRORS_ONLY)
        runtime.disable_telemetry_events()
        self._np = import_module("numpy")
        self._pooling = folder.pooling
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(folder.tokenizer_file)
            self._tokenizer.enable_truncation(folder.window_tokens)
            self._tokenizer.no_padding()
        except Exception as error:  # tokenizers raises bare Exception
            raise EmbeddingError(
                f"the tokenizer {folder.tokenizer_file} cannot be read: {error}",
                hint="download the model again",
            ) from error
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = _ERRORS_ONLY
        try:
            self._session = runtime.InferenceSession(
                folder.model_file, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its exceptions share no class of their own
            raise EmbeddingError(
                f"onnxruntime cannot load {folder.model_file}: {_first_line(error)}",
                hint="the file may be damaged or incomplete: download the model again",
            ) from error
        self._inputs = frozenset(one.name for one in self._session.get_inputs())
        self._outputs = [one.name for one in self._session.get_outputs()]
        if not self._inputs <= _KNOWN_INPUTS:
            unknown = ", ".join(sorted(self._inputs - _KNOWN_INPUTS))
            raise EmbeddingError(
                f"{folder.model_file} is no text embedding model: it wants {unknown}",
                hint="choose a model for sentence embeddings",
            )

    def embed(self, text: str) -> list[float]:
        """Embed one text; the vector is as the model made it."""
        np = self._np
        # Lone surrogates are legal in Python's text and nowhere else.
        encoded = self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"))
        columns = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
            "position_ids": range(len(encoded.ids)),
        }
        given = {name: np.array([columns[name]], dtype=np.int64) for name in self._inputs}
        try:
            answers: dict[str, Any] = dict(zip(self._outputs, self._session.run(None, given), strict=True))
        except Exception as error:  # its exceptions share no class of their own
            raise EmbeddingError(
                f"onnxruntime failed: {_first_line(error)}", hint="choose another model, or another provider"
            ) from error
        answer = answers["sentence_embedding" if "sentence_embedding" in answers else self._outputs[0]][0]
        vector: list[float] = (self._pool(answer) if answer.ndim == 2 else answer).tolist()
        return vector

    def _pool(self, tokens: Any) -> Any:
        if self._pooling == "cls":
            return tokens[0]
        return tokens[-1] if self._pooling == "last" else tokens.mean(axis=0)


def _binding(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise EmbeddingError(
            f"the provider `onnx` needs the package {name}, which is not installed",
            hint=f"install it: {install_hint('onnx')}",
        ) from error
    except ImportError as error:
        raise EmbeddingError(
            f"the package {name} is installed but cannot be loaded: {error}",
            hint=f"reinstall it: {install_hint('onnx')}",
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0].replace(os.sep + os.sep, os.sep)[:200]


@value
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
