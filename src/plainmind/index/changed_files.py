"""The files that a sync has to do with: those that may have changed are read, those that were prepared are written.

What says the same as the index is left out; so is what another process wrote first, or what was erased meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.model import Chunk, Document, EmbeddedChunk, FileFailure, FileState
from plainmind.base.value import replace, value
from plainmind.files.system import Erasures
from plainmind.index.chunks import ChunksOnDemand, Prepared, chunks_of, embedded_text
from plainmind.index.plan import (
    NEVER,
    WITHOUT_VECTORS,
    ChunkingSettings,
    Left,
    Patience,
    RebuildGivenUp,
    Run,
    is_incomplete,
    mtime_to_record,
    unmatched_mtime,
)
from plainmind.notes.discovery import FoundFile
from plainmind.notes.source import NO_TEXT, START, Extent, Mark, extent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.notes.source import GrowingSource, Piece, TextSource


_ALL_LINES = 1 << 53


@value
class ReadFile:
    """A file that was read and waits to be prepared and written."""

    state: FileState
    document: Document
    replacing: str | None  # the hash that the index held for it
    erasures: object  # what `Erasures.stamp` was before it was read
    known: Sequence[Chunk] = ()  # its chunks in the index, of which the first may stay
    piece: Piece | None = None  # of a transcript: then it has no hash yet, and only the first replaces


class FileReader:
    """Reads the files of one source for one run."""

    def __init__(
        self,
        run: Run,
        source: TextSource,
        *,
        erasures: Erasures,
        clock: Callable[[], float],
        by_words: bool = False,
    ) -> None:
        """`by_words` when there are no vectors to be had now: what can be found by words is as it can be."""
        self._run = run
        self._source = source
        self._growing = source.growing
        self._erasures = erasures
        self._clock = clock
        self._by_words = by_words

    def read_changed(self, files: Iterable[FoundFile]) -> Iterator[ReadFile]:
        """Read files one after the other; those whose text did not change are only touched."""
        if self._growing is None:
            return self._read_whole(files)
        return self._read_on(self._growing, files)

    def texts(self, files: Iterable[FoundFile], chunking: ChunkingSettings) -> Iterator[str]:
        """Read what would be embedded of files; what cannot be read is reported when it is indexed."""
        for found in files:
            try:
                for document in self._documents(found):
                    yield from (embedded_text(chunk) for chunk in chunks_of(document, chunking))
            except PlainmindError:
                continue

    def _documents(self, found: FoundFile) -> Iterator[Document]:
        if self._growing is None:
            yield self._source.read(found)[0]
            return
        known = self._run.known.get((self._source.source, found.path))
        for piece in self._growing.read_on(found, known, known_extent(found, known).whole):
            yield piece.document

    def _read_whole(self, files: Iterable[FoundFile]) -> Iterator[ReadFile]:
        """Read each file in one go."""
        without_vectors = self._run.tally.without_vectors
        for found in files:
            erasures = self._erasures.stamp()
            try:
                document, state = self._source.read(found)
            except PlainmindError as error:
                self._note_failure(found, error)
                continue
            if state.size and not document.text:
                self._run.tally.unreadable.append(FileFailure(found.path, NO_TEXT))
            state = self._with_time(state)
            key = state.source, state.path
            before = self._run.known.get(key)
            if before is None or before.scope != state.scope:
                yield ReadFile(state, document, before.hash if before else None, erasures)
                continue
            if self._by_words and before.hash == WITHOUT_VECTORS + state.hash:
                without_vectors[key] = state.hash
            if state.hash in {before.hash, without_vectors.get(key)}:
                self._note_unchanged(before, state)
            else:
                yield ReadFile(state, document, before.hash, erasures, self._known_chunks(before))

    def _read_on(self, source: GrowingSource, files: Iterable[FoundFile]) -> Iterator[ReadFile]:
        for found in files:
            yield from self._read_new(source, found)

    def _read_new(self, source: GrowingSource, found: FoundFile) -> Iterator[ReadFile]:
        """Read what is new of a file that is added to; from where vectors are missing, if they may be had."""
        key = self._source.source, found.path
        before = self._run.known.get(key)
        by_words = self._by_words or key in self._run.tally.without_vectors
        extent = known_extent(found, before)
        begin = extent.words if by_words else extent.whole
        is_wanting = before is None or before.scope != found.scope or (not by_words and is_incomplete(before))
        replacing = before.hash if before else None
        erasures = self._erasures.stamp()
        pieces = source.read_on(found, self._earlier_look(before), begin)
        damaged = too_long = 0
        is_first = True
        while True:
            try:
                piece = next(pieces, None)
            except PlainmindError as error:
                self._note_failure(found, error)
                break
            if piece is None:
                break
            state = self._with_time(piece.state) if piece.is_last else piece.state
            if is_first and before and not is_wanting and _adds_nothing(piece, begin, extent):
                self._note_unchanged(before, replace(state, hash=before.hash))
            else:
                yield ReadFile(state, piece.document, replacing, erasures, piece=piece)
            damaged += piece.unreadable.damaged
            too_long += piece.unreadable.too_long
            is_first = False
        self._tell_unreadable(found.path, damaged, too_long)

    def _earlier_look(self, before: FileState | None) -> FileState | None:
        """What a file looked like when it was indexed; where a person asked for this sync, like another file.

        Then all its bytes are compared: a word may have been masked in place before more was added. Not so before a
        search and in the background, where only what is new is read, nor for an index that was begun just now.
        """
        is_asked = self._run.conditions.patience is None and not self._run.is_fresh
        return replace(before, inode=NEVER) if before is not None and is_asked else before

    def _note_failure(self, found: FoundFile, error: PlainmindError) -> None:
        """Note why a file cannot be read: one bad file never stops the others."""
        if isinstance(error, NotFound):
            return  # deleted since it was listed: the next sync sees it missing
        self._run.tally.failed.append(FileFailure(found.path, str(error)))
        self._run.tally.step(found.path)

    def _with_time(self, state: FileState) -> FileState:
        return replace(state, mtime_ns=mtime_to_record(state.mtime_ns, read_at_ns=int(self._clock() * 1e9)))

    def _note_unchanged(self, before: FileState, state: FileState) -> None:
        """Note what a file looks like now whose text is the one that is indexed."""
        run = self._run
        if before.hash == state.hash and before != state and not is_incomplete(before):
            run.store.touch_file(state)
            run.tally.wrote((state.source, state.path), state)
        run.tally.unchanged += 1
        run.tally.step(state.path)

    def _known_chunks(self, before: FileState) -> Sequence[Chunk]:
        """What the index holds of a file, of which the beginning may stay."""
        if self._run.is_fresh or is_incomplete(before):
            return ()
        with self._run.store.reading() as reader:
            return reader.chunks_between(before.source, before.path, 1, _ALL_LINES)

    def _tell_unreadable(self, path: str, damaged: int, too_long: int) -> None:
        told = [
            f"{count:,} {'line' if count == 1 else 'lines'} {what}"
            for count, what in ((damaged, "cannot be read"), (too_long, "too long to be read"))
            if count
        ]
        if told:
            self._run.tally.unreadable.append(FileFailure(path, ", ".join(told)))


def _adds_nothing(piece: Piece, begin: Mark, extent: Extent) -> bool:
    is_continued = piece.begin == begin
    return is_continued and piece.end.offset == begin.offset and piece.rest == extent.rest


def known_extent(found: FoundFile, known: FileState | None) -> Extent:
    """How far a file is indexed; not at all if others may see it now than can find it, or it may show a secret."""
    if known is None or known.scope != found.scope:
        return Extent()
    extent = extent_known_by(known.hash)
    return Extent() if extent.reading.is_older_than(found.reading) else extent


def extent_known_by(known_hash: str | None) -> Extent:
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
    """Whether a file is to be gone on with now. One that cannot be read is: reading it says why not."""
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
