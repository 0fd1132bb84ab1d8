"""The reranker: reads a question and a passage at once, and says how likely the one answers the other."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from plainmind.base.errors import PlainmindError
from plainmind.base.extras import weights_hint
from plainmind.embed.protocol import usable_cores
from plainmind.guests.rerank.word_pieces import WordPieces

if TYPE_CHECKING:
    from plainmind.memory.doctor import Check
    from plainmind.memory.memory import Memory

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
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damaged(error) from error

    def log_odds(self, question: str, passages: Sequence[str], *, seconds: float) -> list[float | None]:
        """How likely each passage answers, as log-odds; None for one whose language, or the question's, is not known.

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
            found.append(_read(session, _pair(pieces, asked, passage)))
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


def _read(session: Any, pair: Mapping[str, Any]) -> float:
    try:
        return float(session.run(None, pair)[0][0])
    except Exception as error:  # the weights open, and are not those of the pieces
        raise _damaged(error) from error


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


def status_facts(memory: Memory, *, deep: bool) -> dict[str, Any]:  # noqa: ARG001 (as every guest is asked)
    """What `status` says of the second look: which model reads, and in whose searches; what is wrong is `problem`."""
    reranker, mode = memory.index.installed_reranker, memory.index.values.rerank.mode
    facts: dict[str, Any] = {
        "installed": reranker is not None,
        "model": None,
        "mode": mode,
        "agents": reranker is not None and mode != "off",
        "problem": None,
        "hint": None,
    }
    try:
        facts["model"] = None if reranker is None else reranker.name
    except PlainmindError as error:
        facts |= {"problem": str(error), "hint": error.hint}
    return {"reranker": facts}


def in_words(facts: Mapping[str, Any]) -> str:
    """The same on one line."""
    if facts["installed"]:
        return str(facts["problem"] or f"{facts['model']} reads again {_WHOSE[facts['mode']]}")
    if facts["mode"] == "always":
        return "not installed, and `rerank.mode` is always: no search works"
    return "not installed: agents and people look once"


_WHOSE = {
    "auto": "for agents, and for people with --deep",
    "always": "in every search",
    "off": "for people with --deep alone",
}
# About as much as is read of a result at once, in plain English.
_SAMPLE = "The harbour master said that the gateway must be restarted whenever the tide gauge is silent. " * 5


def examine_reranker(memory: Memory) -> Iterator[Check]:
    """Let it read as many passages as a search has, and say for how many there is time on this machine."""
    from plainmind.memory.doctor import Check
    from plainmind.search.second_look import ENOUGH, most_windows

    facts = status_facts(memory, deep=True)["reranker"]
    told, values, reranker = in_words(facts), memory.index.values.rerank, memory.index.installed_reranker
    if reranker is None:
        hint = f"{weights_hint('plainmind-reranker')} installs it"
        yield Check("reranker", "problem" if facts["mode"] == "always" else "ok", told, hint)
        return
    passages = [_SAMPLE] * most_windows(values.results)
    reranker.log_odds(_SAMPLE, passages[:1], seconds=0)  # opening it is not counted
    read = len(reranker.log_odds(_SAMPLE, passages, seconds=values.seconds))
    told += f": {read} passages of {len(passages)} in {values.seconds * 1000:.0f} ms"
    if facts["problem"]:
        yield Check("reranker", "problem", told, facts["hint"])
    elif read >= min(ENOUGH, values.results):
        yield Check("reranker", "ok", told)
    else:
        hint = "a higher `rerank.deadlineMs` lets it read more, `rerank.mode` off spares agents the wait"
        yield Check("reranker", "warning", told, hint)
