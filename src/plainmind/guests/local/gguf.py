"""What a GGUF file says about itself: read before llama.cpp sees it, so that a wrong file gets a clear error.

The format: magic, version, counts, then key-value pairs, then one description a tensor, then the tensors.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from typing import NoReturn

from plainmind.base.errors import EmbeddingError
from plainmind.base.value import field, record, value
from plainmind.guests.local.model_traits import fingerprint

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
