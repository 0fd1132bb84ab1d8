"""The provider `onnx`: a sentence model in ONNX format, from a folder or a hub, run on this machine."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.embed.cores import usable_cores
from plainmind.embed.fingerprint import fingerprint
from plainmind.embed.gate import checked
from plainmind.embed.settings import EmbeddingSettings
from plainmind.guests.local.hub import DEFAULT_CACHE_DIR, Hub, is_hub_name
from plainmind.guests.local.hub_download import Fetched
from plainmind.guests.local.onnx_folder import (
    ADVICE_FILES,
    MODEL_FILES,
    TOKENIZER_FILE,
    WEIGHT_FILES,
    OnnxFolder,
    read_folder,
)
from plainmind.guests.local.onnx_model import OnnxModel

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"


@dataclass(frozen=True, slots=True)
class OnnxSettings:
    """Which model runs here: a folder, or a name on the hub. `threads` None: as many as there are cores."""

    model: str | None = None
    model_cache_dir: str = DEFAULT_CACHE_DIR
    threads: int | None = None


class OnnxEmbedder:
    """Embeds in this process; the model is downloaded and loaded when it is first asked for."""

    sends_text_to = None

    def __init__(
        self,
        settings: OnnxSettings,
        *,
        hub: Hub | None = None,
        progress: Callable[[Fetched], None] | None = None,
    ) -> None:
        self._named = settings.model or DEFAULT_MODEL
        self._hub = hub or Hub(settings.model_cache_dir)
        self._progress = progress
        self._threads = settings.threads or usable_cores()
        self._opening = threading.Lock()
        self._model: OnnxModel | None = None
        written = os.path.expanduser(self._named)
        self._path = os.path.abspath(written) if os.path.isdir(written) else None
        if self._path is None and not is_hub_name(self._named):
            raise ConfigError(
                f"`{self._named}` is neither a folder nor the name of a model",
                key="model",
                hint=f"name a folder with model.onnx and tokenizer.json, or a model such as `{DEFAULT_MODEL}`",
            )

    @property
    def ready(self) -> bool:
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
            dims=folder.dims or len(self._opened().embed("how many dimensions?")),
        )

    def embed_query(self, text: str) -> Vector:
        """Embed a question, with the words that the model's family wants before it."""
        if _blank(text):
            raise EmbeddingError("nothing to embed: the query has no words")
        return self._embedded([self._folder.prompts.query + text])[0]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts; a blank one has no vector."""
        wanted = [self._folder.prompts.document + text for text in texts if not _blank(text)]
        made = iter(self._embedded(wanted) if wanted else ())
        return [None if _blank(text) else next(made) for text in texts]

    def describe(self) -> Mapping[str, object]:
        """Facts for `status`; none of them loads the model or downloads it."""
        folder = self._path or self._hub.folder_of(self._named)
        return {"model": self._named, "folder": folder, "ready": self.ready}

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

    def _embedded(self, texts: Sequence[str]) -> list[Vector]:
        model = self._opened()
        vectors = [model.embed(text) for text in texts]
        return checked(vectors, expected_count=len(texts), expected_dims=self.identity.dims)

    def _opened(self) -> OnnxModel:
        with self._opening:
            if self._model is None:
                self._model = OnnxModel(self._folder, threads=self._threads)
            return self._model


def _blank(text: str) -> bool:
    return not text or text.isspace()


def create(settings: EmbeddingSettings) -> OnnxEmbedder:
    """Make the provider; `model` is a folder or a name on the hub."""
    folder = settings.model_cache_dir or DEFAULT_CACHE_DIR
    return OnnxEmbedder(OnnxSettings(settings.model or None, folder), progress=settings.downloading)
