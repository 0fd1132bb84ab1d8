"""A document cut into chunks that are ready to embed and to store."""

from __future__ import annotations

from plainmind.base.model import Chunk, Document, Passage, split_lines
from plainmind.base.value import replace, value
from plainmind.text.dates import terms_of_day
from plainmind.text.terms import document_terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Literal, TypeAlias

Strategy: TypeAlias = "Literal['markdown', 'lines']"


@value
class ChunkingSettings:
    """How documents are cut."""

    strategy: Strategy = "markdown"
    tokens: int = 400
    overlap: int = 80  # only "lines" repeats text

    @property
    def text_tokens(self) -> int:
        """How much of a chunk is text: an eighth is left for the headings that are embedded with it."""
        return max(8, self.tokens * 7 // 8) if self.strategy == "markdown" else self.tokens

    @property
    def fingerprint(self) -> str:
        """What an index made with these settings is known by."""
        return f"{self.strategy}/{self.tokens}/{self.overlap}"


def chunks_of(document: Document, settings: ChunkingSettings) -> list[Chunk]:
    """Cut a document; the ids of machine notes are left out, line numbers stay."""
    from plainmind.text.notes import ID_MARK, without_note_ids  # not for a search that has nothing to cut

    text = document.text
    if ID_MARK in text:
        text = "\n".join(without_note_ids(line) for line in split_lines(text))
    days = document.days
    passages = _messages(text, settings) if document.source == "sessions" else _passages(text, settings)
    return [
        Chunk(
            path=document.path,
            source=document.source,
            ordinal=ordinal,
            start_line=_cited(document, passage.start_line),
            end_line=_cited(document, passage.end_line),
            text=passage.text,
            context=passage.context,
            day=document.day if days is None else days[passage.start_line - 1],
        )
        for ordinal, passage in enumerate(passages)
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


def terms_of(chunk: Chunk) -> tuple[str, ...]:
    """The keyword terms of a chunk: its text under its headings, and its day."""
    return (*document_terms(chunk.embedded_text), *terms_of_day(chunk.day))


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


def _cited(document: Document, line: int) -> int:
    return line if document.line_map is None else document.line_map[line - 1]
