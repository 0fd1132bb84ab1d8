"""A model in ONNX format with its tokenizer, run by onnxruntime: text in, one pooled vector out."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from plainmind.base.errors import EmbeddingError
from plainmind.guests.local.onnx_folder import OnnxFolder

_INSTALL = 'install it with `pip install "plainmind[onnx]"`, or `uv tool install "plainmind[onnx]"`'
_ERRORS_ONLY = 3
_KNOWN_INPUTS = frozenset(("input_ids", "attention_mask", "token_type_ids", "position_ids"))


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
        vector: list[float] = (self._pooled(answer) if answer.ndim == 2 else answer).tolist()
        return vector

    def _pooled(self, tokens: Any) -> Any:
        if self._pooling == "cls":
            return tokens[0]
        return tokens[-1] if self._pooling == "last" else tokens.mean(axis=0)


def _binding(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise EmbeddingError(
            f"the provider `onnx` needs the package {name}, which is not installed", hint=_INSTALL
        ) from error
    except ImportError as error:
        raise EmbeddingError(
            f"the package {name} is installed but cannot be loaded: {error}", hint=f"reinstall it: {_INSTALL}"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0].replace(os.sep + os.sep, os.sep)[:200]
