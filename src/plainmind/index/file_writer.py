"""Writes files to the index that were read and prepared, unless another process was quicker or text was erased."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plainmind.base.model import Chunk, EmbeddedChunk, FileState
from plainmind.base.value import replace, value
from plainmind.files.system import Erasures
from plainmind.index.chunks import ChunksOnDemand, Prepared
from plainmind.index.file_reader import ReadFile, extent_known_by
from plainmind.index.plan import NEVER, WITHOUT_VECTORS, Left, RebuildGivenUp, Run, unmatched_mtime
from plainmind.notes.source import START, Extent, Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.notes.source import Piece


class FileWriter:
    """Writes what one run has read of one source."""

    def __init__(self, run: Run, erasures: Erasures, *, is_patient: bool = False) -> None:
        """`is_patient` when vectors are left for later on purpose, and nothing is amiss without them."""
        self._run = run
        self._erasures = erasures
        self._is_patient = is_patient
        self.left: dict[str, Left] = {}  # by path: what was not written, and why
        # Of files that are written piece by piece: what the index holds of them by now.
        self._grown: dict[str, tuple[str, Extent]] = {}

    def write(self, batches: Iterable[tuple[Sequence[ReadFile], Prepared]]) -> None:
        """Write files; those that could not be written are left, each with the reason.

        A batch may lack its vectors, and then says why; an index that has to be whole is given up: RebuildGivenUp.
        """
        for batch, prepared in batches:
            if prepared.failure is not None:
                if self._run.is_whole:
                    raise RebuildGivenUp(prepared.failure)
                self._run.tally.degraded[prepared.failure] = None
            self._write_batch(batch, prepared, has_vectors=prepared.failure is None and not self._is_patient)

    def _write_batch(self, batch: Sequence[ReadFile], prepared: Prepared, *, has_vectors: bool) -> None:
        kept = prepared.kept or [0] * len(batch)
        # Nothing is erased between this look and the last commit, so forgotten text cannot come back here.
        with self._erasures.hold_off(), self._run.store.joined():
            erasures = self._erasures.stamp()
            for file, chunks, keeping in zip(batch, prepared.documents, kept, strict=True):
                path = file.state.path
                if erasures != file.erasures:
                    self.left[path] = "erased"
                elif path not in self.left and not self._write_file(
                    file, chunks, keeping, has_vectors=has_vectors
                ):
                    self.left[path] = "overtaken"
                if file.piece is None or file.piece.is_last:
                    self._run.tally.step(path)

    def _write_file(
        self, file: ReadFile, chunks: Sequence[EmbeddedChunk], keeping: int, *, has_vectors: bool
    ) -> bool:
        if file.piece is not None:
            return self._write_piece(file, file.piece, chunks, has_vectors=has_vectors)
        state = file.state
        is_complete = has_vectors or not chunks
        if not is_complete:
            # Those that stay have theirs, but all are tried again.
            state = replace(state, hash=WITHOUT_VECTORS + state.hash, mtime_ns=NEVER)
        if not self._replace(state, chunks, file.replacing, keeping):
            return False
        if not is_complete:
            self._missing_vectors(state, file.state.hash)
        return True

    def _write_piece(
        self, file: ReadFile, piece: Piece, chunks: Sequence[EmbeddedChunk], *, has_vectors: bool
    ) -> bool:
        state, path = file.state, file.state.path
        replacing, before, begin = self._place_of(file, piece)
        growth = grow(before, begin, piece, chunks, has_vectors=has_vectors)
        seen_ns = state.mtime_ns if growth.is_complete else unmatched_mtime(state.mtime_ns)
        state = replace(state, hash=growth.hash, mtime_ns=seen_ns)
        is_growth = begin != START
        if not self._replace(state, growth.chunks, replacing, growth.keeping, is_growth=is_growth):
            return False
        self._grown[path] = growth.hash, growth.after
        if not growth.is_complete:
            self._missing_vectors(state, growth.hash)
        return True

    def _missing_vectors(self, state: FileState, read_as: str) -> None:
        if not self._is_patient:
            self._run.tally.without_vectors[state.source, state.path] = read_as

    def _place_of(self, file: ReadFile, piece: Piece) -> tuple[str | None, Extent, Mark]:
        """What a piece follows on: the hash that the index knows the file by, how far that is, and where it goes."""
        grown_so_far = self._grown.get(file.state.path)
        if grown_so_far is not None:
            replacing, extent = grown_so_far
            return replacing, extent, extent.words
        if piece.begin == START:
            return file.replacing, Extent(), START
        return file.replacing, extent_known_by(file.replacing), piece.begin

    def _replace(
        self,
        state: FileState,
        chunks: Sequence[EmbeddedChunk],
        replacing: str | None,
        keeping: int,
        *,
        is_growth: bool = False,
    ) -> bool:
        run = self._run
        if not run.store.replace_file(
            state, chunks, expecting=run.made, replacing=replacing, keeping=keeping
        ):
            return False
        tally = run.tally
        tally.wrote((state.source, state.path), state)
        tally.has_taken_out |= replacing is not None and not is_growth
        if not tally.indexed or tally.indexed[-1] != state.path:
            tally.indexed.append(state.path)
        tally.chunks += len(chunks)
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


def grow(
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
