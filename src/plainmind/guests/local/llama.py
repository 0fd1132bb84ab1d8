"""The provider `local`: a GGUF model of your own, run by llama.cpp on this machine.

`model` is a path, or `hf:org/repo/file.gguf`, which is downloaded once. The binding `xllamacpp`, which has wheels for
every platform, runs llama.cpp's own server as threads of this process and answers calls directly. It insists on
listening somewhere: it gets a socket file in a folder that only its owner may open, gone before the first text.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.extras import install_hint
from plainmind.base.lazy import pattern
from plainmind.base.model import EmbedderIdentity, ProgressCallback
from plainmind.base.value import value
from plainmind.embed.protocol import EmbeddingSettings, usable_cores
from plainmind.guests.local.gguf import GgufHeader, read_header
from plainmind.guests.local.hub import DEFAULT_CACHE_DIR, Hub, HubFile, is_hub_uri, parse_uri
from plainmind.guests.local.model_traits import PromptedEmbedder, Prompts, prompts_for

_LARGEST_WINDOW = 2048  # memory grows with its square, and our chunks are far smaller
_TOO_LONG = pattern(r"input \((\d+) tokens\) is (?:too large|larger)")
DEFAULT_MODEL = "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf"


@value
class LocalSettings:
    """Which model runs here and where downloaded ones are kept. `threads` None: as many as there are cores."""

    model_path: str | None = None
    model_cache_dir: str = DEFAULT_CACHE_DIR
    threads: int | None = None


class LocalEmbedder(PromptedEmbedder):
    """Embeds in this process; the model is downloaded and loaded when it is first asked for."""

    def __init__(
        self,
        settings: LocalSettings,
        *,
        hub: Hub | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self._named = settings.model_path or DEFAULT_MODEL
        self._hub_file = _hub_file(self._named)
        self._hub = hub or Hub(settings.model_cache_dir)
        self._progress = progress
        self._threads = settings.threads
        self._opening = threading.Lock()
        self._model: LlamaModel | None = None

    @property
    def is_ready(self) -> bool:
        """The model is on this machine: nothing has to be downloaded."""
        return os.path.exists(self._path_on_disk())

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """The file's fingerprint and the prompts stand as endpoint: others make other vectors."""
        header, prompts = self._header, self._prompts
        made_with = f"llama.cpp\0{header.fingerprint}\0{prompts.query}\0{prompts.document}"
        name = os.path.basename(header.path)
        return EmbedderIdentity(
            "local", name, endpoint=hashlib.sha256(made_with.encode()).hexdigest(), dims=header.dims
        )

    def describe(self) -> Mapping[str, object]:
        """Facts for `status`; none of them loads the model or downloads it."""
        facts: dict[str, object] = {
            "model": self._named,
            "file": self._path_on_disk(),
            "ready": self.is_ready,
        }
        if self._model is not None:
            facts["shortenedTexts"] = self._model.shortened
        return facts

    def close(self) -> None:
        """Free the model's memory; the next call loads it again."""
        with self._opening:
            model, self._model = self._model, None
        if model is not None:
            model.close()

    @cached_property
    def _header(self) -> GgufHeader:
        if self._hub_file is not None and not self.is_ready:
            self._hub.fetch(self._hub_file, progress=self._progress)
        header = read_header(self._path_on_disk())
        if not header.makes_embeddings:
            raise EmbeddingError(
                f"{header.path} is no embedding model: it is one for chat or ranking ({header.architecture})",
                hint="choose one that is made for embeddings, embeddinggemma or nomic-embed-text",
            )
        return header

    @cached_property
    def _prompts(self) -> Prompts:
        return prompts_for((*self._header.names, self._header.architecture))

    def _path_on_disk(self) -> str:
        if self._hub_file is not None:
            return self._hub.path_of(self._hub_file)
        return os.path.abspath(os.path.expanduser(self._named))

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        return self._open().embed(texts)

    def _open(self) -> LlamaModel:
        with self._opening:
            if self._model is None:
                self._model = LlamaModel(self._header, threads=self._threads)
            return self._model


def _hub_file(named: str) -> HubFile | None:
    if not is_hub_uri(named):
        return None
    file = parse_uri(named)
    if not file.path.endswith(".gguf"):
        raise ConfigError(
            f"`{named}` names no GGUF file",
            key="local.modelPath",
            hint=f"name the repository and the file: `{DEFAULT_MODEL}`",
        )
    return file


def create(settings: EmbeddingSettings) -> LocalEmbedder:
    """Make the provider; `model` is a path or an `hf:` URI."""
    folder = settings.model_cache_dir or DEFAULT_CACHE_DIR
    return LocalEmbedder(LocalSettings(settings.model or None, folder), progress=settings.downloading)


class LlamaModel:
    """One loaded model, safe to share between threads: its texts queue up one by one, a question among them.

    Nothing is computed together, so a text has the same vector alone and in company.
    """

    def __init__(self, header: GgufHeader, *, threads: int | None = None) -> None:
        self._path = header.path
        self._window = min(header.window_tokens, _LARGEST_WINDOW)
        self._calls = 0
        self._changed = threading.Condition()
        self._closing = False
        self._server: Any = _start_server(header, self._window, threads or usable_cores())
        self.shortened = 0  # texts that did not fit into the window
        _to_close.add(self)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts as they are, prompts included; the vectors are as the model made them."""
        with self._changed:
            self._calls += 1
        try:
            return [self._embed_one(text) for text in texts]
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Free the model, after the text that is being embedded; calls that want more texts fail."""
        with self._changed:
            self._closing = True
            self._changed.wait_for(lambda: not self._calls)
            # The server ends with its last reference. One that is alive when Python takes itself apart can hang.
            self._server = None

    def _embed_one(self, text: str) -> list[float]:
        # Lone surrogates are legal in Python's text and nowhere else.
        text = text.encode("utf-8", "replace").decode("utf-8")
        cut = text
        while True:
            if self._closing:
                raise EmbeddingError("the embedding model was closed while it was asked")
            answer = _ask(self._server, cut)
            if "error" not in answer:
                self.shortened += len(cut) < len(text)
                vector: list[float] = answer["data"][0]["embedding"]
                return vector
            cut = self._shorter(cut, str(answer["error"].get("message", "")))

    def _shorter(self, text: str, complaint: str) -> str:
        """Cut to what should fit: its share of the text, and a little less."""
        found = _TOO_LONG.search(complaint)
        if found is None or len(text) < 2:
            raise EmbeddingError(
                f"llama.cpp could not embed a text with {os.path.basename(self._path)}: {complaint[:200]}",
                hint="check the model with `plainmind doctor`, or choose another one in `local.modelPath`",
            )
        share = self._window / max(int(found[1]), self._window)
        return text[: max(1, int(len(text) * share * 0.97))]


def _start_server(header: GgufHeader, window: int, threads: int) -> Any:
    llama = _binding()
    wanted = llama.CommonParams()
    wanted.model.path = header.path
    wanted.embedding = True
    wanted.n_ctx = wanted.n_batch = wanted.n_ubatch = window
    wanted.n_parallel = wanted.n_threads_http = 1
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = threads
    wanted.warmup = False
    wanted.verbosity = -1  # nothing on standard output or error, from C++ either
    if header.pooling_to_ask_for is not None:
        wanted.pooling_type = llama.llama_pooling_type(header.pooling_to_ask_for)
    # A socket's path has room for some 100 bytes.
    short = tempfile.gettempdir() if len(os.fsencode(tempfile.gettempdir())) < 64 else "/tmp"  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="plainmind-", dir=short) as private:
        wanted.hostnames = [os.path.join(private, "llama.sock")]
        try:
            return llama.Server(wanted)
        except RuntimeError as error:
            raise EmbeddingError(
                f"llama.cpp could not load {header.path}: {error}",
                hint="the file may be damaged, too large for the memory, or newer than the installed llama.cpp: "
                "`pip install --upgrade xllamacpp`",
            ) from error


def _ask(server: Any, text: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = server.handle_embeddings({"input": [text], "model": "local"})
    except RuntimeError as error:
        raise EmbeddingError(
            f"llama.cpp failed: {str(error)[:200]}", hint="run it again; if it stays, choose another model"
        ) from error
    return answer


def _binding() -> Any:
    try:
        return import_module("xllamacpp")
    except ModuleNotFoundError as error:
        raise EmbeddingError(
            "the provider `local` needs llama.cpp, which is not installed",
            hint=f"install it: {install_hint('local')}",
        ) from error
    except ImportError as error:
        raise EmbeddingError(
            f"llama.cpp is installed but cannot be loaded: {error}",
            hint=f"reinstall it: {install_hint('local')}",
        ) from error


_to_close: weakref.WeakSet[LlamaModel] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for model in list(_to_close):
        model.close()
