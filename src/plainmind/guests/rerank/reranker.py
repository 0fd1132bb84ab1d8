"""The reranker: reads a question and a passage at once, and says how likely the one answers the other."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from plainmind.base.errors import PlainmindError
from plainmind.base.extras import weights_hint
from plainmind.embed.protocol import usable_cores
from plainmind.guests.rerank.word_pieces import WordPieces

PACKAGE = "plainmind_reranker"  # a distribution of its own, made from this repository: its weights are 23 MB
_LONGEST_QUESTION = 48
_LONGEST_PAIR = 128
_READ_ANYWAY = 2  # however little time there is
# It has learned English. Of English texts two thirds of the words and more are known as a whole, of German and Spanish
# ones half and less.
_LEAST_FAMILIAR = 0.6
_MOST_THREADS = 4
_ERRORS_ONLY = 3


class OnnxReranker:
    """A model in a folder, loaded when it is first asked. Safe to share between threads."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._opening = threading.Lock()
        self._opened: tuple[Any, WordPieces] | None = None

    @property
    def name(self) -> str:
        """Which model it is."""
        try:
            with open(os.path.join(self._folder, "model.json"), encoding="utf-8") as file:
                return str(json.load(file)["name"])
        except (OSError, ValueError, KeyError) as error:
            raise _damaged(error) from error

    def log_odds(self, question: str, passages: Sequence[str], *, seconds: float) -> list[float | None]:
        """How likely each passage answers, as log-odds; None for one in a language that it does not know.

        Those for which there is no time are left out at the end. The first passages are read whatever the time.
        """
        session, pieces = self._open()
        until = time.monotonic() + seconds
        if pieces.familiarity(question) < _LEAST_FAMILIAR:
            return [None] * len(passages)
        found: list[float | None] = []
        asked = pieces.encode(question)[:_LONGEST_QUESTION]
        slowest = 0.0
        for at, passage in enumerate(passages):
            began = time.monotonic()
            if at >= _READ_ANYWAY and began + slowest > until:
                break
            if pieces.familiarity(passage) < _LEAST_FAMILIAR:
                found.append(None)
                continue
            found.append(float(session.run(None, _pair(pieces, asked, passage))[0][0]))
            slowest = max(slowest, time.monotonic() - began)
        return found

    def _open(self) -> tuple[Any, WordPieces]:
        with self._opening:
            if self._opened is None:
                try:
                    with open(os.path.join(self._folder, "pieces.txt"), encoding="utf-8") as file:
                        pieces = WordPieces(file.read().split("\n")[:-1])
                    self._opened = _session(os.path.join(self._folder, "model.onnx")), pieces
                except Exception as error:  # onnxruntime has a kind of its own for each thing that is wrong
                    raise _damaged(error) from error
            return self._opened


def _damaged(error: Exception) -> PlainmindError:
    why = str(error).partition("\n")[0]
    return PlainmindError(
        f"the reranker cannot be opened: {why}",
        hint=f"{weights_hint('plainmind-reranker')} installs it again",
    )


def _session(path: str) -> Any:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = min(_MOST_THREADS, usable_cores())
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    # Threads that wait must not burn the time of whoever else runs on this machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _pair(pieces: WordPieces, question: Sequence[int], passage: str) -> dict[str, Any]:
    """A question and a passage side by side, as the model reads them; alone, so that no other changes what it says."""
    import numpy as np

    end = pieces.number("[SEP]")
    head = [pieces.number("[CLS]"), *question, end]
    tokens = [*head, *pieces.encode(passage)[: _LONGEST_PAIR - len(head) - 1], end]
    kinds = [0] * len(head) + [1] * (len(tokens) - len(head))
    inputs = {"tokens": tokens, "kinds": kinds, "mask": [1] * len(tokens)}
    return {name: np.array([row], np.int32) for name, row in inputs.items()}


def model_folder() -> str | None:
    """Where the weights are; None: they are not installed, or what runs them is not."""
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations or find_spec("onnxruntime") is None:
        return None
    return found.submodule_search_locations[0]


def installed_reranker() -> OnnxReranker | None:
    """What can look a second time; None where it is not installed."""
    folder = model_folder()
    return None if folder is None else OnnxReranker(folder)
