"""Documents made ready to store: cut into chunks, filed under their terms, embedded."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.errors import CommonplaceError, EmbeddingError
from commonplace.indexing.chunks import ChunkingSettings, chunks_of, terms_of
from commonplace.model import Chunk, Document, EmbeddedChunk
from commonplace.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeAlias

    from commonplace.embedding.protocol import Embedder
    from commonplace.model import Vector
    from commonplace.sources.discovery import FoundFile
    from commonplace.sources.protocol import TextSource

# A chunk's text under its headings, and its day: all that its vector and its terms depend on.
_Key: TypeAlias = "tuple[str, str | None]"
_Made: TypeAlias = "tuple[Vector | None, tuple[str, ...]]"

# Some 5 MB: the chunks of the files that are being edited, most of which stay as they are from edit to edit.
_MOST_REMEMBERED = 1_024

# A document of more characters than this is embedded while it is written: its terms and vectors, all at once, would
# take many times the memory of its text. Not where a provider could fail half-way through.
LARGE = 2_000_000
COMPUTED_HERE = frozenset({"builtin", "none"})
_PORTION = 512


@value
class Prepared:
    """The chunks of each document in turn; `failure` says why none of them has a vector."""

    documents: Sequence[Sequence[EmbeddedChunk]]
    failure: str | None = None


class Preparation:
    """Prepares documents in this process, and remembers the chunks it made last."""

    def __init__(self, chunking: ChunkingSettings, embedder: Embedder) -> None:
        self.chunking = chunking
        self.embedder = embedder
        self.identity = embedder.identity  # of all the vectors that are remembered
        self._remembered: dict[_Key, _Made] = {}

    @classmethod
    def without_vectors(cls, chunking: ChunkingSettings) -> Preparation:
        """Prepare documents for words alone: that is all they are to be found by."""
        from commonplace.embedding.none import NoEmbedder

        return cls(chunking, NoEmbedder())

    def refused(self, why: str) -> Preparation:
        """Prepare documents that are to have vectors, but not now."""
        from commonplace.embedding.fallback import Withheld

        return Preparation(self.chunking, Withheld(self.embedder.identity, EmbeddingError(why)))

    @property
    def is_refused(self) -> bool:
        """Whether it is known beforehand that there are no vectors to be had."""
        return getattr(self.embedder, "refusal", None) is not None

    def prepare(self, documents: Sequence[Document]) -> Prepared:
        """Embed what the documents say, each text once. Without a provider they are found by words alone."""
        if self.embedder.identity.provider not in COMPUTED_HERE:
            return self._prepared([chunks_of(document, self.chunking) for document in documents])
        cut = [chunks_of(document, self.chunking) for document in documents if len(document.text) <= LARGE]
        small = iter(self._prepared(cut).documents)
        return Prepared(
            [
                ChunksOnDemand(chunks_of(document, self.chunking), self)
                if len(document.text) > LARGE
                else next(small)
                for document in documents
            ]
        )

    def embedded(self, chunks: Sequence[Chunk]) -> Sequence[EmbeddedChunk]:
        """Make chunks of one document ready. Raises EmbeddingError."""
        prepared = self._prepared([chunks])
        if prepared.failure is not None:
            raise EmbeddingError(prepared.failure)
        return prepared.documents[0]

    def _prepared(self, cut: Sequence[Sequence[Chunk]]) -> Prepared:
        keys = {(chunk.embedded_text, chunk.day): chunk for chunks in cut for chunk in chunks}
        made = {key: self._remembered[key] for key in keys if key in self._remembered}
        unknown = {key: chunk for key, chunk in keys.items() if key not in made}
        failure = None
        try:
            vectors = self._embedded([text for text, _ in unknown])
        except EmbeddingError as error:
            failure, vectors = f"embedding: {error}", {}
        for key, chunk in unknown.items():
            made[key] = vectors.get(key[0]), terms_of(chunk)
        if failure is None:
            self._remember(made)
        return Prepared([[_embedded(chunk, made) for chunk in chunks] for chunks in cut], failure)

    def _embedded(self, texts: Sequence[str]) -> dict[str, Vector | None]:
        if not self.embedder.identity.dims or not texts:
            return {}
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self.embedder.embed_documents(distinct), strict=True))

    def _remember(self, made: dict[_Key, _Made]) -> None:
        """Keep the latest; a whole workspace that passes by is not what will be edited next."""
        if len(made) > _MOST_REMEMBERED // 4:
            return
        remembered = {key: known for key, known in self._remembered.items() if key not in made} | made
        excess = len(remembered) - _MOST_REMEMBERED
        self._remembered = dict(list(remembered.items())[max(0, excess) :])


class ChunksOnDemand(Sequence[EmbeddedChunk]):
    """The chunks of a large document, made ready a few at a time whenever somebody goes through them."""

    def __init__(self, chunks: Sequence[Chunk], preparation: Preparation) -> None:
        self._chunks = chunks
        self._preparation = preparation

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return self._preparation.embedded(self._chunks[at])
        return self._preparation.embedded([self._chunks[at]])[0]

    def __iter__(self) -> Iterator[EmbeddedChunk]:
        for first in range(0, len(self._chunks), _PORTION):
            yield from self._preparation.embedded(self._chunks[first : first + _PORTION])


def texts_of(source: TextSource, files: Iterable[FoundFile], chunking: ChunkingSettings) -> Iterator[str]:
    """Read what would be embedded of files; what cannot be read is left to whoever indexes it."""
    for found in files:
        try:
            document, _ = source.read(found)
        except CommonplaceError:
            continue
        yield from (chunk.embedded_text for chunk in chunks_of(document, chunking))


def _embedded(chunk: Chunk, made: dict[_Key, _Made]) -> EmbeddedChunk:
    vector, terms = made[chunk.embedded_text, chunk.day]
    return EmbeddedChunk(chunk, vector, terms)
