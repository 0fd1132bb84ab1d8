"""How far files that are only added to are indexed, and what a further piece of one adds to that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.model import Chunk, EmbeddedChunk, FileState
from plainmind.base.value import replace, value
from plainmind.index.plan import WITHOUT_VECTORS, Patience
from plainmind.index.preparing import ChunksOnDemand
from plainmind.notes.discovery import FoundFile
from plainmind.notes.source import START, Extent, Mark, extent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.notes.source import GrowingSource, Piece, TextSource


def growing(source: TextSource) -> GrowingSource | None:
    """The source, if its files are added to at their end."""
    return source.growing


def known_extent(found: FoundFile, known: FileState | None) -> Extent:
    """How far a file is indexed; not at all if others may see it now than can find it, or it may show a secret."""
    if known is None or known.scope != found.scope:
        return Extent()
    extent = extent_by(known.hash)
    return Extent() if extent.reading.is_older_than(found.reading) else extent


def extent_by(known_hash: str | None) -> Extent:
    """How far a file is indexed that is known by such a hash; one of another kind tells nothing."""
    return (known_hash and extent_of(known_hash.removeprefix(WITHOUT_VECTORS))) or Extent()


def pending_bytes(found: FoundFile, known: FileState | None) -> int:
    """How much of a file there is to read, as far as its size tells."""
    pending = found.size - known_extent(found, known).whole.offset
    return pending if pending >= 0 else found.size


def is_due(
    source: GrowingSource,
    found: FoundFile,
    known: FileState | None,
    patience: Patience,
    clock: Callable[[], float],
) -> bool:
    """Whether a file is to be gone on with now. One that cannot be read is: whoever reads it says why not."""
    done = known_extent(found, known).whole
    try:
        return patience.is_due(
            found,
            done_bytes=done.offset,
            messages=lambda: source.messages_after(found, done),
            at_ns=int(clock() * 1e9),
        )
    except PlainmindError:
        return True


@value
class Growth:
    """What becomes of a file in the index when a piece of it is written."""

    keeping: int
    chunks: Sequence[EmbeddedChunk]
    after: Extent
    is_complete: bool  # all that should have vectors has them

    @property
    def hash(self) -> str:
        """What the file is known by afterwards."""
        return f"{'' if self.is_complete else WITHOUT_VECTORS}{self.after}"


def grown(
    before: Extent, begin: Mark, piece: Piece, chunks: Sequence[EmbeddedChunk], *, has_vectors: bool
) -> Growth:
    """Add a piece behind `begin`, a mark of the index, to what the index holds of its file."""
    keeping = begin.chunks
    finished = len(chunks)
    if piece.rest:
        finished = sum(each.start_line <= piece.end.lines for each in _cut(chunks))
    end = replace(piece.end, chunks=keeping + finished) if piece.end.lines else START
    goes_on_whole = before.whole.offset == begin.offset
    is_complete = goes_on_whole and (has_vectors or not chunks)
    reading = piece.reading if begin == START else before.reading
    after = Extent(end if is_complete else before.whole, end, piece.rest, reading)
    return Growth(keeping, _counted_from(keeping, chunks), after, is_complete)


def _cut(chunks: Sequence[EmbeddedChunk]) -> Iterable[Chunk]:
    """The chunks as they were cut: where they are made ready on demand, none is for this."""
    return chunks.chunks if isinstance(chunks, ChunksOnDemand) else (each.chunk for each in chunks)


def _counted_from(first: int, chunks: Sequence[EmbeddedChunk]) -> Sequence[EmbeddedChunk]:
    if not first:
        return chunks
    if isinstance(chunks, ChunksOnDemand):
        return chunks.counted_from(first)
    return [
        replace(each, chunk=replace(each.chunk, ordinal=ordinal))
        for ordinal, each in enumerate(chunks, first)
    ]
