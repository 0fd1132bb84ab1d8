"""The provider `local`: a GGUF model of your own, run by llama.cpp on this machine.

`model` is a path, or `hf:org/repo/file.gguf`, which is downloaded once. The binding `xllamacpp`, which has wheels for
every platform, runs llama.cpp's own server as threads of this process and answers calls directly. It insists on
listening somewhere: it gets a socket file in a folder that only its owner may open, gone before the first text.
"""

from __future__ import annotations

import atexit
import hashlib
import mmap
import os
import struct
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, NoReturn

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.extras import install_hint
from plainmind.base.lazy import pattern
from plainmind.base.model import EmbedderIdentity, ProgressCallback
from plainmind.base.value import field, record, value
from plainmind.embed.protocol import EmbeddingSettings, usable_cores
from plainmind.files.safe_open import expand_user
from plainmind.guests.local.model_files import (
    DEFAULT_CACHE_DIR,
    Hub,
    HubFile,
    PromptedEmbedder,
    Prompts,
    fingerprint,
    is_hub_uri,
    parse_uri,
    prompts_for,
)

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
        return os.path.abspath(expand_user(self._named))

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


# --- what a GGUF file says about itself, read before llama.cpp sees it, so that a wrong file gets a clear error ---
# The format: magic, version, counts, then key-value pairs, then one description a tensor, then the tensors.


_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_READERS = {kind: struct.Struct("<" + code) for kind, code in _SCALARS.items()}
_U32, _U64 = _READERS[4], _READERS[10]
_MOST_DIMS = 8
# Bytes and values of one block, by the type's number. A type that is missing here counts as one byte a block of
# 256: the check for a cut file gets weaker with it, never wrong.
_BLOCKS = {
    0: (4, 1), 1: (2, 1), 2: (18, 32), 3: (20, 32), 6: (22, 32), 7: (24, 32), 8: (34, 32), 10: (84, 256),
    11: (110, 256), 12: (144, 256), 13: (176, 256), 14: (210, 256), 30: (2, 1),
}  # fmt: skip

_ENCODERS = frozenset(
    (
        "bert", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "modern-bert", "neo-bert",
        "nomic-bert", "nomic-bert-moe", "t5encoder",
    )
)  # fmt: skip
_POOLING_NONE, _POOLING_MEAN, _POOLING_LAST, _POOLING_RANK = 0, 1, 3, 4  # llama.cpp's numbers


@value
class GgufHeader:
    """The facts that decide how a model is used. `pooling` None: the file leaves it open."""

    path: str
    architecture: str
    names: tuple[str, ...]
    window_tokens: int
    dims: int
    pooling: int | None
    fingerprint: (
        str  # of the size and of samples spread over the whole file: reading 300 MB would take a second
    )

    @property
    def makes_embeddings(self) -> bool:
        """A chat model has neither a pooling of its own nor an encoder's architecture."""
        if self.pooling is not None:
            return self.pooling != _POOLING_RANK
        return self.architecture in _ENCODERS or any("embed" in name.lower() for name in self.names)

    @property
    def pooling_to_ask_for(self) -> int | None:
        """What to set where the file says nothing: encoders use the mean, decoders their last token."""
        if self.pooling is not None:
            return None
        return _POOLING_MEAN if self.architecture in _ENCODERS else _POOLING_LAST


def read_header(path: str) -> GgufHeader:
    """Read and check the header. Raises EmbeddingError for a file that is missing, foreign or cut short."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                _raise_damaged(path, "it is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _header(path, data, size)
    except FileNotFoundError as error:
        raise EmbeddingError(
            f"the embedding model {path} does not exist",
            hint="check `local.modelPath`, or download the model again",
        ) from error
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"the embedding model {path} cannot be read: {error}", hint="check that it is a file you may read"
        ) from error


def _header(path: str, data: mmap.mmap, size: int) -> GgufHeader:
    if data[:4] != _MAGIC:
        raise EmbeddingError(
            f"{path} is not a GGUF model: it begins with {data[:4]!r}",
            hint="`local` reads GGUF files; for a folder with model.onnx set `provider` to `onnx`",
        )
    reader = _Reader(path, data)
    version = reader.number(_U32)
    if version not in _VERSIONS:
        raise EmbeddingError(
            f"{path} is a GGUF file of version {version}; versions 2 and 3 are known",
            hint="convert the model again with a current llama.cpp, or update plainmind",
        )
    tensors, pairs = reader.number(_U64), reader.number(_U64)
    facts = dict(reader.facts(pairs))
    if reader.end_of_tensors(tensors, _whole(facts, "general.alignment") or 32) > size:
        _raise_damaged(path, "it is shorter than its header says, as after a download that broke off")
    return _header_from(path, facts)


def _header_from(path: str, facts: Mapping[str, object]) -> GgufHeader:
    architecture = str(facts.get("general.architecture", ""))
    dims = _whole(facts, f"{architecture}.embedding_length_out") or _whole(
        facts, f"{architecture}.embedding_length"
    )
    if not architecture or not dims:
        _raise_damaged(path, "it does not say which model it holds")
    keys = ("general.name", "general.basename", "general.base_model.0.name")
    names = (*(str(facts[key]) for key in keys if key in facts), os.path.basename(path))
    pooling = facts.get(f"{architecture}.pooling_type")
    return GgufHeader(
        path=path,
        architecture=architecture,
        names=names,
        window_tokens=_whole(facts, f"{architecture}.context_length") or 512,
        dims=dims,
        # "None" in a file means that its converter did not know.
        pooling=pooling if isinstance(pooling, int) and pooling != _POOLING_NONE else None,
        fingerprint=fingerprint(path),
    )


def _whole(facts: Mapping[str, object], key: str) -> int:
    value = facts.get(key)
    return value if isinstance(value, int) and value > 0 else 0


def _raise_damaged(path: str, why: str) -> NoReturn:
    raise EmbeddingError(
        f"the embedding model {path} is damaged: {why}", hint="delete the file and download it again"
    )


@record
class _Reader:
    """Walks through the header; a length that points past the end of the file is damage, not memory to reserve."""

    path: str
    data: mmap.mmap
    at: int = field(default=4)

    def facts(self, count: int) -> Iterator[tuple[str, object]]:
        """Every pair that holds one value; lists (vocabularies, mostly) are stepped over."""
        for _ in range(count):
            key = self.text()
            kind = self.number(_U32)
            if kind == _ARRAY:
                self.skip_list()
            else:
                yield key, self.text() if kind == _STRING else self.scalar(kind)

    def end_of_tensors(self, count: int, alignment: int) -> int:
        """Where the last tensor ends, in bytes from the start of the file."""
        end = 0
        for _ in range(count):
            self.skip(self.number(_U64))
            dims = self.number(_U32)
            if dims > _MOST_DIMS:
                _raise_damaged(self.path, f"one of its tensors claims {dims} dimensions")
            values = 1
            for _ in range(dims):
                values *= self.number(_U64)
            bytes_a_block, values_a_block = _BLOCKS.get(self.number(_U32), (1, 256))
            end = max(end, self.number(_U64) + values // values_a_block * bytes_a_block)
        return -(-self.at // alignment) * alignment + end

    def number(self, reader: struct.Struct) -> int:
        """The next number."""
        start = self.at
        self.skip(reader.size)
        value: int = reader.unpack_from(self.data, start)[0]
        return value

    def scalar(self, kind: int) -> object:
        """The next number or truth value of this kind."""
        reader = _READERS.get(kind)
        if reader is None:
            _raise_damaged(self.path, f"it has a value of an unknown kind, {kind}")
        return self.number(reader)

    def text(self) -> str:
        """The next text; what is not UTF-8 in it is replaced."""
        length = self.number(_U64)
        start = self.at
        self.skip(length)
        return self.data[start : self.at].decode("utf-8", "replace")

    def skip_list(self) -> None:
        """Step over a list of numbers or texts."""
        kind, count = self.number(_U32), self.number(_U64)
        if kind in _READERS:
            self.skip(count * _READERS[kind].size)
        elif kind == _STRING:
            for _ in range(count):
                self.skip(self.number(_U64))
        else:
            _raise_damaged(self.path, f"it has a list of an unknown kind, {kind}")

    def skip(self, count: int) -> None:
        """Step over so many bytes."""
        self.at += count
        if self.at > len(self.data):
            _raise_damaged(self.path, "its header breaks off")
