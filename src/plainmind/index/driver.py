"""What a place that keeps an index does for the engine: a driver stores and reads, the engine decides and computes.

The engine is `reader.py` (questions, and what was read stays in memory), `store.py` and `writer.py` (changes, rebuilds)
and `digest.py`; it is the same for SQLite, PostgreSQL, LanceDB and for dicts. A driver gives it four kinds of object:

    Driver     an index that can be opened, changed, rebuilt and erased from
    View       one consistent state of it, to be read: the calls of a search
    Change     one change of it, all or nothing: the calls of a sync
    Contents   all that it holds, once, in order: for its digest

Chunks of a segment have positions, counted from 0. All positions of a view together have places: the place of a
position is the segment's `first_place` and the position. Arithmetic works on places; what leaves a reader are ids.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from plainmind.base.model import (
    Chunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    Source,
    Vector,
)
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias, TypeVar

    from plainmind.index.bm25 import Postings
    from plainmind.index.reader import Cache, IndexCounts, Reader

    S = TypeVar("S", bound="Segment")
    A = TypeVar("A", bound=Hashable)
    Part: TypeAlias = tuple[S, A | None]
else:
    S = A = None

    class Protocol:
        """Stands in for `typing.Protocol`, which a cold start does not load."""

        def __class_getitem__(cls, _parameters):
            return cls


class Segment(Protocol):
    """A run of chunks whose postings are kept together. Drivers have their own, with more in it."""

    @property
    def number(self) -> int:
        """By which the driver finds it; never given to another segment of the same generation."""

    @property
    def first_place(self) -> int:
        """The place of its position 0; the places of two segments of one view do not overlap."""

    @property
    def used(self) -> int:
        """How many positions it has, holes among them."""

    @property
    def has_stale_postings(self) -> bool:
        """Whether there are postings of chunks that are no more."""

    @property
    def revision(self) -> int:
        """Another number whenever a chunk of it has come or gone: what was read of it is kept under this."""

    @property
    def posted(self) -> int:
        """Another number whenever its postings have changed."""


class Overview(Protocol):
    """What a view holds, in numbers. A driver reads it once for each state, not once for each view."""

    @property
    def generation(self) -> int:
        """Which rebuild this is."""

    @property
    def revision(self) -> int:
        """Which state of it: every change of a file adds one."""

    @property
    def fingerprint(self) -> IndexFingerprint | None:
        """How it was made; None when it was never built. Then there are no segments."""

    @property
    def dims(self) -> int:
        """How many numbers a vector has; 0 for none."""

    @property
    def counts(self) -> IndexCounts:
        """Files and chunks by source."""

    @property
    def chunk_count(self) -> int:
        """How many chunks there are in all."""

    @property
    def average_length(self) -> float:
        """How many terms a chunk has on average, all chunks counted."""

    @property
    def segments(self) -> Sequence[Any]:
        """Every segment with a position in use."""


class View(Protocol[S, A]):
    """One consistent state of an index. What it is asked for more than once, the engine keeps in `cache`.

    A part is a segment and an audience, which tells how much of it may be seen: None for all of it, else whatever the
    driver has put there in `admitted`; the engine only compares audiences, and hands them back.
    """

    @property
    def overview(self) -> Overview:
        """What it holds, in numbers."""

    @property
    def cache(self) -> Cache:
        """What the process has read of this generation: one for all views of it."""

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""

    def admitted(self, where: SearchFilter) -> Sequence[Part[S, A]]:
        """What a filter lets through: without segments of which it lets through nothing."""

    def postings(self, wanted: Sequence[tuple[S, str]]) -> Sequence[Postings | None]:
        """The postings of terms in segments, in the order in which they are wanted; None where a term is not there."""

    def lengths(self, parts: Sequence[Part[S, A]]) -> Sequence[memoryview]:
        """For each part, how many terms each position has (uint16): 0 for a hole, and for what may not be seen."""

    def ids_at(self, places: Sequence[int]) -> Sequence[int]:
        """The ids of the chunks at some places."""

    def locate(self, ids: Sequence[int]) -> Iterable[tuple[S, Sequence[int], Sequence[int]]]:
        """Where chunks are that this view has given out: each segment with its ids, and the position of each id."""

    def expect(self, query: bytes, parts: Sequence[Part[S, A]], where: SearchFilter, limit: int) -> None:
        """Begin with `near`, which will be asked next of a vector, if that can be done while words are weighed."""

    def near(
        self,
        query: bytes,
        parts: Sequence[Part[S, A]],
        where: SearchFilter,
        limit: int,
        *,
        besides: Sequence[int],
        compare: Callable[[Sequence[int]], Mapping[int, float]],
    ) -> Mapping[int, float]:
        """Cosines of chunks among which the `limit` nearest to a packed vector are; there may be more.

        `compare` gives the exact cosines of some ids, but for those without a vector, and asks `vectors` for them.
        `besides` are chunks that were found with the same scopes, and whose vectors will be asked for next: a driver
        whose every question is a round trip may fetch them along, into the cache.
        """

    def cosines(self, query: bytes, ids: Sequence[int]) -> Mapping[int, float]:
        """The exact cosines of those of some ids whose vectors this process has in memory anyway."""

    def vectors(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        """Packed vectors by id; chunks without one are left out."""

    def chunks(self, ids: Sequence[int], scopes: frozenset[str]) -> Mapping[int, tuple[Chunk, int]]:
        """Chunks by id, each with about how many bytes it takes in memory; neighbours may come along.

        `scopes` are those of the filter that has found them. A driver whose server can check it makes sure that they
        are of these, and raises IndexCorrupt otherwise.
        """

    def confirm(self, ids: Sequence[int], where: SearchFilter) -> None:
        """Make sure by their files, not by their segments, that a filter admits chunks which are about to be proposed.

        Raises IndexCorrupt. Nothing to do for a driver that makes sure of it in `chunks`.
        """

    def ids_of(self, names: Sequence[tuple[Source, str]]) -> Sequence[int]:
        """The ids of all chunks of some files, in any order."""

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""

    def vectors_of(self, source: Source, path: str) -> list[bytes | None]:
        """The packed vectors of the chunks of one file, in their order."""


@value
class KnownFile:
    """What an index holds of a file."""

    number: int  # by which the driver finds it
    hash: str
    scope: str
    chunks: int
    tallest: int = 0  # how many lines its tallest chunk has beyond the first


@value
class PreparedChunk:
    """A chunk made ready before anything waits for the index."""

    chunk: Chunk
    body: Any  # what `Driver.body_of` made of it
    counted: Mapping[str, int]  # how often each term stands in it
    length: int
    vector: Vector | None


class Change(Protocol):
    """One change of an index, all or nothing: its driver begins and ends it."""

    def fingerprint(self) -> IndexFingerprint | None:
        """How the index is made that is being changed; None when it was never built."""

    def known(self, source: Source, path: str) -> KnownFile | None:
        """What it holds of a file."""

    def put(
        self,
        file: FileState,
        known: KnownFile | None,
        portions: Iterable[Sequence[PreparedChunk]],
        *,
        keeping: int,
        dims: int,
    ) -> None:
        """Take out all but the first `keeping` chunks of a file, and put these behind them. One change of revision."""

    def touch(self, file: FileState) -> None:
        """Note size, mtime and inode, if hash and scope are what is known. One change of revision in any case."""

    def remove(self, source: Source, path: str) -> None:
        """Take out a file and its chunks, if it is there. One change of revision in any case.

        Of an index that was never built, nothing can be taken out: nothing is done.
        """


@value
class ChunkContents:
    """A chunk as rows of the driver hold it, with where its terms are."""

    chunk: Chunk
    length: int
    vector: bytes | None
    segment: int  # which of `Contents.segments`
    position: int


@value
class SegmentContents:
    """A segment as rows of the driver hold it."""

    lengths: bytes | memoryview  # uint16 for each position
    living: int  # how many positions are chunks
    postings: Iterable[tuple[str, Postings]]
    has_stale_postings: bool = True


class Contents(Protocol):
    """All that an index holds, from its rows: what a driver knows twice it compares, and raises IndexCorrupt."""

    def fingerprint(self) -> IndexFingerprint | None:
        """How it was made."""

    def segments(self) -> Iterator[SegmentContents]:
        """Every segment."""

    def files(self) -> Iterator[tuple[FileState, Iterable[ChunkContents]]]:
        """Every file with its chunks by their ordinals; asked for after the segments."""

    def check(self) -> None:
        """Look for what belongs to nothing, and for sums that are wrong; asked for at the end."""


class Driver(Protocol):
    """An index in its place. Safe to share between threads."""

    def reading(self) -> AbstractContextManager[Reader]:
        """One consistent view of what is published, in a reader."""

    def changing(self, operation: str) -> AbstractContextManager[Change]:
        """Begin a change, with the lock that lets only one process change the index; the end of the block commits it.

        `operation` says in words what is done, for those who wait.
        """

    def joined(self) -> AbstractContextManager[None]:
        """Make the changes of a block in one, where that is cheaper."""

    def body_of(self, chunk: Chunk) -> Any:
        """What is stored of a chunk's text: made before the lock is taken, for it may take long."""

    @property
    def is_being_built(self) -> bool:
        """Whether nothing waits for a change: then chunks are prepared as they are written, in portions."""

    def build(self, fingerprint: IndexFingerprint, reason: str) -> AbstractContextManager[NewIndex]:
        """Begin a new index beside this one; an exception in the block discards it, unless it was published."""

    def erase(self, source: Source, paths: Sequence[str]) -> None:
        """Drop files so that their text is in no byte, of this index and of others beside it that are being built."""

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part."""

    def contents(self) -> AbstractContextManager[Contents]:
        """All that it holds, as one view."""

    def close(self) -> None:
        """Let go of files, connections and locks; the next use opens them again."""


class NewIndex(Driver, Protocol):
    """An index that is being built: only its builder sees it."""

    def finish(self) -> None:
        """Do all that takes long and can be done while the old index still changes."""

    def publishing(self) -> AbstractContextManager[None]:
        """Let nothing change the old index in the block; at its end this one answers in its place."""
