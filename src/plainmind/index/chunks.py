"""Documents made ready to store: cut into chunks, filed under their terms, embedded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from plainmind.base.errors import EmbeddingError
from plainmind.base.lazy import Lock
from plainmind.base.model import Chunk, Document, EmbeddedChunk, Passage, split_lines
from plainmind.base.value import replace, value
from plainmind.embed.protocol import COMPUTED_HERE
from plainmind.index.plan import ChunkingSettings
from plainmind.text.terms import document_terms, terms_of_day, whole_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeAlias

    from plainmind.base.model import Vector
    from plainmind.embed.protocol import Embedder


_DRAWING_MARK = "excalidraw-plugin:"  # in the front matter of a note that is a drawing of Excalidraw
_FRONT_CHARS = 2_000  # that such a mark stands within


def chunks_of(document: Document, settings: ChunkingSettings) -> list[Chunk]:
    """Cut a document; the ids of machine notes and the data of drawings are left out, line numbers stay."""
    from plainmind.text.note_format import (  # not for a search that has nothing to cut
        ID_MARK,
        without_note_ids,
    )

    text = document.text
    if ID_MARK in text:
        text = "\n".join(without_note_ids(line) for line in split_lines(text))
    if _DRAWING_MARK in text[:_FRONT_CHARS]:
        from plainmind.text.markdown import without_drawing

        text = "\n".join(without_drawing(split_lines(text)))
    passages = _messages(text, settings) if document.source == "sessions" else _passages(text, settings)
    if document.source == "memory" and document.day is None and document.days is None:
        passages = [part for passage in passages for part in _by_day(passage)]
    return [
        Chunk(
            path=document.path,
            source=document.source,
            ordinal=ordinal,
            start_line=_cited_line(document, passage.start_line),
            end_line=_cited_line(document, passage.end_line),
            text=passage.text,
            context=passage.context,
            day=_day_of(document, passage),
        )
        for ordinal, passage in enumerate(passages)
    ]


def _day_of(document: Document, passage: Passage) -> str | None:
    """The day that a passage belongs to: its line's, its file's, or that of the headings above it, as in a diary."""
    if document.days is not None:
        return document.days[passage.start_line - 1]
    if document.day is not None or document.source != "memory":
        return document.day
    from plainmind.text.chunking import BREADCRUMB
    from plainmind.text.front_matter import day_of_headings, day_of_item

    day = day_of_item(passage.text)
    if day is not None or not passage.context:
        return day
    return day_of_headings(tuple(passage.context.split(BREADCRUMB)), document.path)


def _by_day(passage: Passage) -> list[Passage]:
    """A passage, cut where the day of its list items changes: what happened on other days is told apart."""
    lines = passage.text.split("\n")
    if len(lines) != passage.end_line - passage.start_line + 1:
        return [passage]
    from plainmind.text.front_matter import days_apart

    cuts = days_apart(lines)
    if not cuts:
        return [passage]
    return [
        replace(
            passage,
            start_line=passage.start_line + first,
            end_line=passage.start_line + last - 1,
            text="\n".join(lines[first:last]),
        )
        for first, last in zip([0, *cuts], [*cuts, len(lines)], strict=True)
    ]


def in_common(chunks: Sequence[Chunk], known: Iterable[Chunk]) -> int:
    """How many chunks at the beginning are the same as in the index."""
    count = 0
    for chunk, before in zip(chunks, known, strict=False):
        if _content(chunk) != _content(before):
            break
        count += 1
    return count


def _content(chunk: Chunk) -> tuple[object, ...]:
    return chunk.start_line, chunk.end_line, chunk.text, chunk.context, chunk.day


def embedded_text(chunk: Chunk) -> str:
    """The text that a vector stands for: the passage under its headings, in a note that has a name."""
    from plainmind.text.front_matter import words_of_path  # not for a search that has nothing to embed

    name = words_of_path(chunk.path) if chunk.source == "memory" else ""
    return f"{name}\n{chunk.headed_text}" if name else chunk.headed_text


def terms_of(chunk: Chunk) -> tuple[str, ...]:
    """The keyword terms of a chunk: its text under its headings, what it is called, and its day."""
    return _terms_of(chunk, embedded_text(chunk))


def _terms_of(chunk: Chunk, embedded: str) -> tuple[str, ...]:
    return (*document_terms(embedded), *_terms_of_names(chunk), *terms_of_day(chunk.day))


def _terms_of_names(chunk: Chunk) -> list[str]:
    """The terms of what a chunk is asked for by: the headings it begins with, and at the top the names of its note."""
    from plainmind.text.front_matter import (
        headings_of,
        name_as_written,
        name_terms,
        read_front_matter,
        words_of_name,
    )

    if chunk.source != "memory":
        return []
    if chunk.ordinal:
        headings = headings_of(chunk.text)
        return name_terms((), headings, ()) if headings else []
    matter = read_front_matter(chunk.text.split("\n"))
    names = (words_of_name(chunk.path), *matter.all("title", "aliases", "alias"))
    body = "\n".join(chunk.text.split("\n")[matter.line_count :])
    headings = headings_of(body)
    terms = name_terms(names, headings, matter.all("tags", "tag", "keywords"))
    names = (*names, name_as_written(chunk.path), *headings[:1])
    return [*terms, *dict.fromkeys([term for name in names for term in whole_names(name)])]


def _passages(text: str, settings: ChunkingSettings) -> list[Passage]:
    from plainmind.text.chunking import chunk

    return chunk(text, strategy=settings.strategy, tokens=settings.text_tokens, overlap=settings.overlap)


def _messages(text: str, settings: ChunkingSettings) -> list[Passage]:
    """One passage a message, which is one line of a transcript; a long one is cut, and no two share a passage."""
    from plainmind.text.chunking import chunk

    return [
        replace(passage, start_line=number, end_line=number)
        for number, line in enumerate(split_lines(text), 1)
        for passage in chunk(line, strategy=settings.strategy, tokens=settings.text_tokens, overlap=0)
    ]


def _cited_line(document: Document, line: int) -> int:
    return line if document.line_map is None else document.line_map[line - 1]


# A chunk's text under its headings, its day, and what else its vector and its terms depend on.
_Key: TypeAlias = "tuple[str, str | None, str, bool]"
_Made: TypeAlias = "tuple[Vector | None, tuple[str, ...]]"

# Some 5 MB: the chunks of the files that are being edited, most of which stay as they are from edit to edit.
_MOST_REMEMBERED = 1_024

# A document of more characters than this is embedded while it is written: its terms and vectors, all at once, would
# take many times the memory of its text. Not where a provider could fail half-way through.
LARGE = 2_000_000
_PORTION = 512


@value
class Prepared:
    """The chunks of each document in turn; `failure` says why none of them has a vector.

    The first chunks of a document are left out that the index has already: as many as `kept` says.
    """

    documents: Sequence[Sequence[EmbeddedChunk]]
    failure: str | None = None
    kept: Sequence[int] = ()


class Preparation:
    """Prepares documents in this process, and remembers the chunks it made last."""

    def __init__(self, chunking: ChunkingSettings, embedder: Embedder) -> None:
        self.chunking = chunking
        self.embedder = embedder
        self.identity = embedder.identity  # of all the vectors that are remembered
        self._remembered: dict[_Key, _Made] = {}
        self._remembering = Lock()  # a provider that is far away is asked by several threads

    @classmethod
    def without_vectors(cls, chunking: ChunkingSettings) -> Preparation:
        """Prepare documents for words alone: that is all they are to be found by."""
        from plainmind.embed.protocol import NoEmbedder

        return cls(chunking, NoEmbedder())

    def refuse(self, why: str) -> Preparation:
        """Prepare documents that are to have vectors, but not now."""
        from plainmind.embed.protocol import Withheld

        return Preparation(self.chunking, Withheld(self.embedder.identity, EmbeddingError(why)))

    @property
    def is_refused(self) -> bool:
        """Whether it is known beforehand that there are no vectors to be had."""
        from plainmind.embed.protocol import Withheld

        return isinstance(self.embedder, Withheld)

    def prepare(self, documents: Sequence[Document], known: Sequence[Iterable[Chunk]] = ()) -> Prepared:
        """Embed what the documents say, each text once. Without a provider they are found by words alone.

        `known` are the chunks of each document as they are in the index: those at the beginning that are the same are
        not made again.
        """
        cut: list[list[Chunk]] = []
        kept: list[int] = []
        for document, before in zip(documents, known or repeat(()), strict=False):
            chunks = chunks_of(document, self.chunking)
            kept.append(in_common(chunks, before))
            cut.append(chunks[kept[-1] :])
        is_large = [
            len(document.text) > LARGE and self.embedder.identity.provider in COMPUTED_HERE
            for document in documents
        ]
        small = self._prepare_chunks(
            [chunks for chunks, large in zip(cut, is_large, strict=True) if not large]
        )
        made = iter(small.documents)
        return Prepared(
            [
                ChunksOnDemand(chunks, self) if large else next(made)
                for chunks, large in zip(cut, is_large, strict=True)
            ],
            small.failure,
            kept if known else (),
        )

    def embed(self, chunks: Sequence[Chunk]) -> Sequence[EmbeddedChunk]:
        """Make chunks of one document ready. Raises EmbeddingError."""
        prepared = self._prepare_chunks([chunks])
        if prepared.failure is not None:
            raise EmbeddingError(prepared.failure)
        return prepared.documents[0]

    def _prepare_chunks(self, cut: Sequence[Sequence[Chunk]]) -> Prepared:
        keyed = [[(_key(chunk), chunk) for chunk in chunks] for chunks in cut]
        keys = {key: chunk for chunks in keyed for key, chunk in chunks}
        remembered = self._remembered
        made = {key: known for key in keys if (known := remembered.get(key)) is not None}
        unknown = {key: chunk for key, chunk in keys.items() if key not in made}
        failure = None
        try:
            vectors = self._embed_texts([text for text, *_ in unknown])
        except EmbeddingError as error:
            failure, vectors = f"embedding: {error}", {}
        for key, chunk in unknown.items():
            made[key] = vectors.get(key[0]), _terms_of(chunk, key[0])
        if failure is None:
            self._remember(made)
        documents = [[EmbeddedChunk(chunk, *made[key]) for key, chunk in chunks] for chunks in keyed]
        return Prepared(documents, failure)

    def _embed_texts(self, texts: Sequence[str]) -> dict[str, Vector | None]:
        if not self.embedder.identity.dims or not texts:
            return {}
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self.embedder.embed_documents(distinct), strict=True))

    def _remember(self, made: dict[_Key, _Made]) -> None:
        """Keep the latest; a whole workspace that passes by is not what will be edited next."""
        if len(made) > _MOST_REMEMBERED // 4:
            return
        remembered = self._remembered
        with self._remembering:
            for key, one in made.items():
                remembered.pop(key, None)  # or it would keep its place among the older ones
                remembered[key] = one
            while len(remembered) > _MOST_REMEMBERED:
                del remembered[next(iter(remembered))]


class ChunksOnDemand(Sequence[EmbeddedChunk]):
    """The chunks of a large document, made ready a few at a time while they are gone through."""

    def __init__(self, chunks: Sequence[Chunk], preparation: Preparation) -> None:
        self.chunks = chunks
        self._preparation = preparation

    def counted_from(self, first: int) -> ChunksOnDemand:
        """Give the same chunks other ordinals."""
        chunks = [replace(chunk, ordinal=ordinal) for ordinal, chunk in enumerate(self.chunks, first)]
        return ChunksOnDemand(chunks, self._preparation)

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return self._preparation.embed(self.chunks[at])
        return self._preparation.embed([self.chunks[at]])[0]

    def __iter__(self) -> Iterator[EmbeddedChunk]:
        for first in range(0, len(self.chunks), _PORTION):
            yield from self._preparation.embed(self.chunks[first : first + _PORTION])


def _key(chunk: Chunk) -> _Key:
    from plainmind.text.front_matter import words_of_name

    return embedded_text(chunk), chunk.day, words_of_name(chunk.path), not chunk.ordinal
