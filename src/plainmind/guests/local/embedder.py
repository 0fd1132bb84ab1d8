"""The provider `local`: a GGUF model of your own, run by llama.cpp on this machine.

`model` is a path, or `hf:org/repo/file.gguf`, which is downloaded once.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.embed.gate import checked
from plainmind.embed.prompts import Prompts, prompts_for
from plainmind.embed.settings import EmbeddingSettings
from plainmind.guests.local.gguf import GgufHeader, read_header
from plainmind.guests.local.hub import DEFAULT_CACHE_DIR, Hub, HubFile, is_hub_uri, parse_uri
from plainmind.guests.local.hub_download import Fetched
from plainmind.guests.local.llama import LlamaModel

DEFAULT_MODEL = "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf"


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """Which model runs here and where downloaded ones are kept. `threads` None: as many as there are cores."""

    model_path: str | None = None
    model_cache_dir: str = DEFAULT_CACHE_DIR
    threads: int | None = None


class LocalEmbedder:
    """Embeds in this process; the model is downloaded and loaded when it is first asked for."""

    sends_text_to = None

    def __init__(
        self,
        settings: LocalSettings,
        *,
        hub: Hub | None = None,
        progress: Callable[[Fetched], None] | None = None,
    ) -> None:
        self._named = settings.model_path or DEFAULT_MODEL
        self._hub_file = _hub_file(self._named)
        self._hub = hub or Hub(settings.model_cache_dir)
        self._progress = progress
        self._threads = settings.threads
        self._opening = threading.Lock()
        self._model: LlamaModel | None = None

    @property
    def ready(self) -> bool:
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

    def embed_query(self, text: str) -> Vector:
        """Embed a question, with the words that the model's family wants before it."""
        if _blank(text):
            raise EmbeddingError("nothing to embed: the query has no words")
        return self._embedded([self._prompts.query + text])[0]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts; a blank one has no vector."""
        wanted = [self._prompts.document + text for text in texts if not _blank(text)]
        made = iter(self._embedded(wanted) if wanted else ())
        return [None if _blank(text) else next(made) for text in texts]

    def describe(self) -> Mapping[str, object]:
        """Facts for `status`; none of them loads the model or downloads it."""
        facts: dict[str, object] = {"model": self._named, "file": self._path_on_disk(), "ready": self.ready}
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
        if self._hub_file is not None and not self.ready:
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

    def _embedded(self, texts: Sequence[str]) -> list[Vector]:
        vectors = self._opened().embed(texts)
        return checked(vectors, expected_count=len(texts), expected_dims=self.identity.dims)

    def _opened(self) -> LlamaModel:
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


def _blank(text: str) -> bool:
    return not text or text.isspace()


def create(settings: EmbeddingSettings) -> LocalEmbedder:
    """Make the provider; `model` is a path or an `hf:` URI."""
    folder = settings.model_cache_dir or DEFAULT_CACHE_DIR
    return LocalEmbedder(LocalSettings(settings.model or None, folder), progress=settings.downloading)
